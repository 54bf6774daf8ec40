"""Cutting a big file into chunk files. Imports only ``sources`` and ``errors``."""

from stoker.splitting.split import split

__all__ = ["split"]
