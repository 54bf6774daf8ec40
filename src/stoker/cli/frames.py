"""Tracebacks that begin where the user's code does."""

from __future__ import annotations

import importlib
import os
import traceback
from types import TracebackType

import stoker

_FROZEN = "<frozen importlib"
_OF_ARGUMENTS = (TypeError, ValueError)  # whose message says what to pass instead
_NOT_THE_USERS = (os.path.dirname(stoker.__file__) + os.sep, os.path.dirname(importlib.__file__) + os.sep, _FROZEN)


def trimmed(error: BaseException) -> TracebackType | None:
    """The error's traceback without Stoker's and importlib's frames on top; all of it if there are no others."""
    return _of_the_user(error) or error.__traceback__


def _of_the_user(error: BaseException) -> TracebackType | None:
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frames = frames.tb_next
    return frames


def story(error: BaseException) -> str:
    """The traceback as Python would print it, from the user's first frame on; no frames of a refused argument."""
    if isinstance(error, _OF_ARGUMENTS) and error.__cause__ is None and _of_the_user(error) is None:
        return "".join(traceback.format_exception_only(error)).rstrip()
    kept = error.__traceback__
    try:
        return "".join(traceback.format_exception(error.with_traceback(trimmed(error)))).rstrip()
    finally:
        error.__traceback__ = kept
