"""Classes of errors that are hard to carry from one process to another, or end the one that tries."""

from __future__ import annotations

import os
import sys


class Silent(ValueError):
    def __str__(self):
        raise RuntimeError("no words")


class Secretive(ValueError):
    def __repr__(self):
        raise RuntimeError("no words")


class Stubborn(ValueError):
    def __reduce__(self):
        raise RuntimeError("stays here")


class Exiting(ValueError):
    def __reduce__(self):
        return sys.exit, (3,)


class Killing(ValueError):
    def __reduce__(self):
        return os._exit, (3,)


class Interrupting(ValueError):
    def __reduce__(self):
        return exec, ("raise KeyboardInterrupt",)


class Choosy(ValueError):
    """Would end the program if it were made again as pickle does it."""

    def __init__(self, message, code=None):
        if code is None:
            sys.exit(4)
        super().__init__(message)
        self.code = code


class Slotted(ValueError):
    __slots__ = ("code",)

    def __init__(self, code):
        super().__init__()
        self.code = code

    def __str__(self):
        return f"code {self.code}"


class MyGroup(ExceptionGroup):
    def __new__(cls, message, errors, code):
        made = super().__new__(cls, message, errors)
        made.code = code
        return made

    def __init__(self, *_):
        pass


class TwoBases(LookupError, OSError):
    pass


class Unstable(ValueError):
    def __str__(self):
        return f"at {id(self)}"


class Closed(ValueError):
    def __getattribute__(self, name):
        raise KeyError(name)
