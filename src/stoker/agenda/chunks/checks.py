"""Whether a consumer of chunk files can be where a state says, of values that somebody else has written down."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, NoReturn

from stoker.agenda.chunks.epochs import Epoch
from stoker.errors import StateError
from stoker.plan import ChunkCursor, Plan
from stoker.sources.chunks import Chunks

_MOST = 2**63 - 2  # of any number: what comes after it still fits 64 bits
_LONGEST_SEED = 2**13  # bits; Python writes down ints of up to 4,300 digits
_COUNTS = ("epoch", "place", "left_out", "check")


def checked_form(state: dict[Any, Any], keys: Set[str], kind: str = "stoker_chunks") -> ChunkCursor:
    """Of a state with just these keys, and values of the right types. Else ``StateError``.

    ``kind``: the key of its format.
    """
    check_keys("it", state, keys)
    for name in (kind, *_COUNTS):
        if not is_count(state[name]):
            damaged(f"its {name} is {told(state[name])}, not a count")
    for name, cls in (("plan", dict), ("files", str), ("parts", str)):
        if name in keys and type(state[name]) is not cls:
            damaged(f"its {name} is {told(state[name])}, not a {cls.__name__}")
    for name, value in state["plan"].items():
        if type(name) is not str or not _is_plain(value):
            damaged(f"a value of its plan is {told(value)}")
    shard = _counts(state, "shard")
    if len(shard) != 2 or shard[0] >= shard[1]:
        damaged(f"its shard is {list(shard)}, not an index and a count")
    taken, partly, waiting = _counts(state, "taken"), _pairs(state, "partly"), _pairs(state, "waiting")
    where = ChunkCursor(state["epoch"], state["place"], taken, partly, waiting, state["left_out"])
    if bool(state.get("files", where.is_within)) != where.is_within or (state.get("parts") and not where.is_within):
        damaged("its files are those of another place")
    return where


def check_within(where: ChunkCursor, epoch: Epoch | None, chunks: Chunks, plan: Plan, *, packs: bool) -> None:
    """Whether a consumer can have been there in that epoch; None: at its beginning. Else ``StateError``.

    ``packs``: batches are of rows, of which a group may have any number.
    """
    if epoch is None:
        if where.left_out:
            damaged(f"it has left out {where.left_out} parts of files before the first")
        return
    if where.left_out > len(epoch.parts):
        damaged(f"it has left out {where.left_out} of {len(epoch.parts)} parts of files")
    if where.waiting and not chunks.across_chunks:
        damaged(f"{len(where.waiting)} samples are waiting for others, though no batch has those of two files")
    check_cursor(where, len(epoch.shares), plan)
    size = plan.batch_size or 1
    for place, handed in where.partly:
        share = epoch.shares[place]
        if (
            share.stop is not None
            and not packs
            and handed
            and handed >= (share.stop - share.start - share.lead) // size
        ):
            damaged(f"it has taken {handed} batches of place {place}, where there are no more")


def check_cursor(where: ChunkCursor, count: int, plan: Plan) -> None:
    """Whether a consumer can have been there in an epoch of so many places. Else ``StateError``."""
    size = plan.batch_size or 1
    has_last = len(where.waiting) >= (size if plan.drop_last else 1)
    if where.place > count or (where.place == count and not has_last):
        damaged(f"its place is {where.place} of {count}")
    _check_places("taken", where.taken, where.place + 1, count)
    begun = [place for place, _ in where.partly]
    _check_places("partly", begun, where.place, count)
    if set(begun) & set(where.taken):
        damaged("its partly and its taken have places in common")
    _check_waiting(where, {*begun, *where.taken}, size)


def _check_waiting(where: ChunkCursor, begun: set[int], size: int) -> None:
    """Less than a batch was waiting when the last group came, which may have had as much at both of its ends."""
    if len(set(where.waiting)) != len(where.waiting):
        damaged("some of its waiting are there twice")
    if len(where.waiting) >= 3 * size or (where.waiting and size == 1):
        damaged(f"{len(where.waiting)} samples are waiting for a batch of {size}")
    for place, nth in where.waiting:
        if (place >= where.place and place not in begun) or nth >= 2 * size:
            damaged(f"sample {nth} of place {place} is waiting, which was not read")


def _check_places(name: str, places: Sequence[int], first: int, end: int) -> None:
    if list(places) != sorted(set(places)):
        damaged(f"its {name} do not rise")
    if places and (places[0] < first or places[-1] >= end):
        damaged(f"its {name} are not from {first} to {end - 1}")


def _counts(state: dict[Any, Any], name: str) -> tuple[int, ...]:
    found = state[name]
    if not isinstance(found, list | tuple) or not all(map(is_count, found)):
        damaged(f"its {name} is {told(found)}, not a list of counts")
    return tuple(found)


def _pairs(state: dict[Any, Any], name: str) -> tuple[tuple[int, int], ...]:
    found = state[name]
    if not isinstance(found, list | tuple):
        damaged(f"its {name} is {told(found)}, not a list")
    pairs = [one for one in found if isinstance(one, list | tuple) and len(one) == 2 and all(map(is_count, one))]
    if len(pairs) != len(found):
        damaged(f"its {name} are not pairs of counts")
    return tuple((place, number) for place, number in pairs)


def check_keys(what: str, found: dict[Any, Any], expected: Set[str]) -> None:
    if found.keys() != expected:
        missing = ", ".join(sorted(expected - found.keys()))
        damaged(f"{what} lacks {missing}" if missing else f"{what} has {len(found) - len(expected)} unknown keys")


def is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MOST


def _is_plain(value: object) -> bool:
    """A seed may be any number that can be written down."""
    return isinstance(value, str | bool | None) or (type(value) is int and value.bit_length() < _LONGEST_SEED)


def told(value: object) -> str:
    """What it is, in a few words: it may be anything, as deep or long as can be."""
    return str(value) if is_count(value) else f"a {type(value).__name__}"


def damaged(what: str) -> NoReturn:
    raise StateError(f"the state is damaged: {what}. Load one as it was saved, not edited or cut short")
