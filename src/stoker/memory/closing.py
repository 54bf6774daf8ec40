"""Descriptors that are closed when their owner is gone, whatever happens at that moment."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from functools import partial
from operator import methodcaller
from typing import Any


class Closing(weakref.ref[Any]):
    """Closes a descriptor when its owner is garbage collected, unless it is let go of before.

    No line of Python is run for that. In ``weakref.finalize`` an interrupt can come in between: Python ignores it, and
    nobody closes the descriptor any more.
    """

    __slots__ = ("close",)

    close: Callable[[], object]

    @classmethod
    def together(cls, owner: object, fd: int) -> Closing:
        """Of an owner and its descriptor. To be called within ``put_off``."""
        closing = cls(owner, methodcaller("close"))
        closing.close = partial(os.close, fd)
        _all.difference_update([one for one in list(_all) if one() is None])  # another thread may add one
        _all.add(closing)
        return closing

    def let_go(self) -> None:
        """The descriptor is somebody else's to close from now on."""
        self.close = _NOTHING  # another thread may be looking through all of them, and so keep this one
        _all.discard(self)


_NOTHING = partial(bool)
_all: set[Closing] = set()  # a reference that is gone itself calls nobody
