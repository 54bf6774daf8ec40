"""Loose samples: too few for a batch in their group, so they wait for those of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from stoker.collation import collate as default_collate
from stoker.collation.columns import made
from stoker.collation.tensors import copied
from stoker.collation.tree import map_leaves
from stoker.errors import StateError
from stoker.sources.chunks import Row, joined_rows


class Waiting(NamedTuple):
    """A sample that waits for others to make a batch with: the nth loose one of the group at ``place``."""

    place: int
    nth: int
    sample: Any


def not_there(what: str, place: int) -> StateError:
    return StateError(
        f"the state is damaged, or of other files: it says that {what} of place {place} was read, and there are fewer. "
        f"Load one as it was saved, or go on from the beginning of an epoch with loader.set_epoch()"
    )


def copies(place: int, samples: list[Any], first: int) -> list[Waiting]:
    """Loose samples, the ``first`` and those after it, to wait; as copies, as the memory of their group is wanted."""
    return [
        Waiting(place, nth, one if isinstance(one, Row) else map_leaves(copied, one))
        for nth, one in enumerate(samples, first)
    ]


def batch_of(samples: list[Any], collate: Callable[[list[Any]], Any] | None, *, as_columns: bool) -> Any:
    """Samples of several groups, in the form of all other batches. ``as_columns``: see ``joined_rows``."""
    rows = [one for one in samples if isinstance(one, Row)]
    if len(rows) == len(samples):
        return joined_rows(rows, as_columns=as_columns)
    plain = [one.sample() if isinstance(one, Row) else one for one in samples]
    return made(default_collate(plain)) if collate is None else collate(plain)
