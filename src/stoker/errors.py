"""What can go wrong, in one tree.

    StokerError
    ├── ClosedError      you closed it: the loader, or an iterator that a newer one replaced
    ├── WorkerDied       the world broke it: a worker process ended without answering
    ├── TooManyErrors    more samples were skipped than max_errors allows
    ├── CollateError     samples of one batch that do not fit together (a ValueError)
    ├── StateError       a checkpoint that is not of this plan, or damaged (a ValueError)
    ├── CacheError       a cache that is another dataset's, or cannot be used (a ValueError)
    ├── ChunkError       a file that cannot be read to its end: corrupt, cut short, or of another kind (a ValueError)
    ├── ShippingError    a dataset or a batch that cannot travel between processes (a TypeError)
    └── BugError         a mistake in Stoker itself: please report it

Bad arguments are plain ``ValueError`` and ``TypeError``, raised by the constructor. Errors of the user's own code
(dataset, collate) keep their own type: where they happened is added as a note.
"""

from __future__ import annotations

from collections.abc import Sequence


class StokerError(Exception):
    """The base of every error that Stoker defines."""


class ClosedError(StokerError, RuntimeError):
    """The loader or iterator was closed by its owner and is used again."""


class WorkerDied(StokerError, RuntimeError):
    """Workers ended without answering, again and again: killed, crashed, out of memory, or hung for ``timeout``.

    Attributes:
        indices: The samples of the batch that they were making; empty if they had not begun any.
        epoch: The epoch it belongs to, or None.
    """

    indices: Sequence[int] = ()
    epoch: int | None = None


class TooManyErrors(StokerError, RuntimeError):
    """More samples failed than ``max_errors`` allows: the dataset is broken, not a few samples of it."""


class CollateError(StokerError, ValueError):
    """The samples of one batch have different shapes, keys or types."""


class StateError(StokerError, ValueError):
    """A saved state does not belong to this loader, or is damaged."""


class CacheError(StokerError, ValueError):
    """A cache is of another dataset, or its folder cannot be used."""


class ChunkError(StokerError, ValueError):
    """A file cannot be read to its end. The message names it, and where in it reading failed."""


class ShippingError(StokerError, TypeError):
    """Something cannot be pickled and so cannot travel between processes."""


class BugError(StokerError, AssertionError):
    """Stoker has reached a state that it should not have: a bug of ours, not of yours."""
