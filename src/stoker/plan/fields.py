"""What a plan can be made of: the checks of its fields."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

from stoker.counts import BOOLS

if TYPE_CHECKING:
    from stoker.plan.plan import Plan

_LARGEST = 2**63 - 1  # of any number but the seed: they travel to workers as 64 bits
_REORDERED = 2**62  # positions, where they are shuffled or rotate: what permutation.py can do
_SEED_BITS = 4096  # of a seed: Python refuses to write much longer numbers as text, which a state is


def checked_fields(plan: Plan) -> dict[str, Any]:
    """Those that are numbers, as plain ints."""
    for flag in ("drop_last", "even_shards"):
        if not isinstance(getattr(plan, flag), bool):
            raise TypeError(f"{flag} is {getattr(plan, flag)!r}: pass True or False")
    return {
        "length": _integer("length", plan.length, least=0, remedy="the number of samples, 0 or more"),
        "batch_size": None
        if plan.batch_size is None
        else _integer("batch_size", plan.batch_size, least=1, remedy="1 or more, or None for single samples"),
        "shuffle": _checked_shuffle(plan.shuffle),
        "seed": checked_seed(plan.seed),
        "shard": _checked_shard(plan.shard),
        "times": _integer("times", plan.times, least=1, remedy="how often each sample is used, 1 or more"),
        "rotating": None
        if plan.rotating is None
        else _integer("rotating", plan.rotating, least=1, remedy="a number of samples, 1 or more"),
    }


def check_size(plan: Plan) -> None:
    """Whether all positions can be numbered."""
    if plan.order is not None and plan.times > 1:
        raise ValueError(
            f"each sample is to be used {plan.times} times (rotation=), in an order, as that of a Mix, which says "
            f"itself how often a sample comes: leave rotation out, and pass cache= to make samples once"
        )
    most = _LARGEST if plan.shuffle is False and plan.times == 1 else _REORDERED
    if plan.length * plan.times > most:
        how = f"used {plan.times} times" if plan.times > 1 else "shuffled"
        raise ValueError(f"a dataset of {plan.length} samples, {how}, is too long: {most} in all can be numbered")
    if plan.stride > _LARGEST:
        raise ValueError(
            f"batches of {plan.batch_size} samples on {plan.shard[1]} shards are too large: all shards together "
            f"can have {_LARGEST} at a time"
        )


def _checked_shuffle(shuffle: object) -> bool | int:
    if isinstance(shuffle, bool):
        return shuffle
    window = _integer("shuffle", shuffle, least=1, remedy="True, False, or a window of 1 or more samples")
    # A window of 1 moves nothing. It is stored as False, since Python holds 1 to equal True.
    return False if window == 1 else window


def checked_seed(seed: object) -> int:
    """As a plain int."""
    number = _integer("seed", seed, least=None, most=None, remedy="any int")
    if number.bit_length() > _SEED_BITS:
        raise ValueError(f"the seed has {number.bit_length()} bits: pass an int of {_SEED_BITS} bits at most")
    return number


def _checked_shard(shard: object) -> tuple[int, int]:
    if not isinstance(shard, tuple | list) or len(shard) != 2:
        raise TypeError(f"shard is {shard!r}: pass shard=(index, count)")
    count = _integer("the shard count", shard[1], least=1, remedy="shard=(index, count) with a count of 1 or more")
    number = _integer("the shard index", shard[0], least=None, remedy="shard=(index, count) with two ints")
    if not 0 <= number < count:
        raise ValueError(
            f"shard index {number} is out of range for {count} shard{'s' * (count > 1)}: "
            f"pass shard=(index, count) with 0 <= index < count"
        )
    return number, count


def _integer(name: str, value: Any, *, least: int | None, most: int | None = _LARGEST, remedy: str) -> int:
    try:
        number = None if isinstance(value, BOOLS) else index(value)
    except TypeError:
        number = None
    if number is None:
        raise TypeError(f"{name} is {value!r}, a {type(value).__name__} and not an int: pass {remedy}")
    if least is not None and number < least:
        raise ValueError(f"{name} is {number}: pass {remedy}")
    if most is not None and number > most:
        raise ValueError(f"{name} is an int of {number.bit_length()} bits, and {most} is the largest: pass {remedy}")
    return number
