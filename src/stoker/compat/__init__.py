"""Loaders with other people's signatures, for code that is to be moved by changing an import.

A package for each library; what several need is in ``arguments``. Built on the public API, ``import stoker``, alone.
"""
