"""Loaders with other people's signatures, for code that is to be moved by changing an import.

One front a library, and its parts beside it, each named after it; what several need is in ``arguments``. Built on the
public API, ``import stoker``, alone.
"""
