"""Cutting a big file into chunk files. Imports only ``sources`` and ``errors``."""

from stoker.splitting.splitter import split

__all__ = ["split"]
