"""Cutting a big file into chunk files. Imports only ``sources`` and ``errors``."""

from stoker.splitting.face import split

__all__ = ["split"]
