"""All errors that Stoker defines, in one tree.

    StokerError
    ├── ClosedError      you closed the loader, or replaced the iterator by a newer one
    ├── WorkerDied       a worker process was killed, crashed or hung
    ├── TooManyErrors    more samples were skipped than max_errors allows
    ├── CollateError     the samples of a batch do not fit together (a ValueError)
    ├── StateError       a checkpoint is damaged, or belongs to another loader (a ValueError)
    ├── CacheError       a cache belongs to another dataset, or cannot be used (a ValueError)
    ├── ChunkError       a file cannot be read to its end: damaged, cut short, or of another kind (a ValueError)
    ├── StartError       workers cannot be started: a worker imports a module, or there is no Python to start
    ├── ShippingError    a dataset or a batch cannot be pickled for another process (a TypeError)
    └── BugError         a mistake in Stoker itself: please report it

Bad arguments are plain ``ValueError`` and ``TypeError``, raised by the constructor. Errors of the user's own code
(dataset, collate) keep their own type: where they happened is added as a note.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence


class StokerError(Exception):
    """The base class of all errors that Stoker defines."""


class ClosedError(StokerError, RuntimeError):
    """A loader or iterator is used after it was closed."""


class WorkerDied(StokerError, RuntimeError):
    """Workers died over the same batch again and again: killed, crashed, out of memory, or hung for ``timeout``.

    Attributes:
        indices: The samples of the batch that they were making. Empty if they had not begun a batch.
        epoch: The epoch of the batch, or None.
        pid: The id of the last process that died, or None where it is not known.
    """

    indices: Sequence[int] = ()
    epoch: int | None = None
    pid: int | None = None


class StartError(StokerError, RuntimeError):
    """Workers cannot be started: a module starts a loader while a worker imports it, or no process comes up at all."""


class TooManyErrors(StokerError, RuntimeError):
    """More samples failed than ``max_errors`` allows, so the dataset as a whole seems to be broken."""


class CollateError(StokerError, ValueError):
    """The samples of a batch do not fit together: they have different shapes, keys or types."""


class StateError(StokerError, ValueError):
    """A saved state is damaged, or was saved by a loader with other arguments."""


class CacheError(StokerError, ValueError):
    """A cache belongs to another dataset, or its folder cannot be used."""


class ChunkError(StokerError, ValueError):
    """A file cannot be read to its end. The message names the file and the position where reading failed."""


class ShippingError(StokerError, TypeError):
    """A dataset, function or batch cannot be pickled, so it cannot be sent to another process."""


class BugError(StokerError, AssertionError):
    """Stoker has reached a state that should be impossible. This is a bug in Stoker: please report it."""


def message_of(error: BaseException) -> str:
    """What it says, whatever its ``__str__`` does."""
    try:
        return str(error)
    except BaseException:
        return "<exception str() failed>"  # as Python itself has it


def add_note(error: BaseException, note: str) -> None:
    """Adds a note to an error of the user's, whatever its class makes of that."""
    with contextlib.suppress(Exception):
        notes = getattr(error, "__notes__", None)
        if notes is not None and not isinstance(notes, list):
            error.__notes__ = [str(notes)]  # Python itself would refuse to add another
        BaseException.add_note(error, note)
