"""Files, wherever they are: listing them, opening them, and reading samples out of them.

Imports only the errors. fsspec, pyarrow, zstandard and Pillow are imported where a file needs them, never before.
"""
