"""Whole numbers that users pass: how many, and not fewer than so many."""

from __future__ import annotations

import operator

import numpy as np

BOOLS = bool, np.bool_  # which have an index, NumPy's up to its version 2, and are no numbers


def checked_count(name: str, value: object, remedy: str, *, of: str = "", least: int = 1) -> int:
    """The number that was passed for an argument, as an int. Numbers of NumPy count as well; True and False do not.

    Args:
        name: The argument.
        value: What was passed.
        remedy: What to pass instead, as it follows on "pass".
        of: What it is an argument of, for the message.
        least: The smallest number that will do.

    Raises:
        ValueError: It is not a whole number, or too small.

    >>> checked_count("size", 0, "a number of samples, 1 or more", of="Rotation")
    Traceback (most recent call last):
    ValueError: Rotation(size=0): pass a number of samples, 1 or more
    """
    if not isinstance(value, BOOLS) and hasattr(value, "__index__"):
        number = operator.index(value)
        if number >= least:
            return number
    given = f"{name}={value!r}"
    raise ValueError(f"{f'{of}({given})' if of else given}: pass {remedy}")
