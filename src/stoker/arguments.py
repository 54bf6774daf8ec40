"""Checks of a loader's arguments: each returns the value, or raises an error that says what to pass instead."""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from stoker.batches import collate as default_collate
from stoker.collation import Pack
from stoker.counts import BOOLS
from stoker.observe import ErrorPolicy
from stoker.plan import MAX_EPOCH, BucketOrder, Mixture, Plan
from stoker.sources import is_chunks
from stoker.workers import Workers

if TYPE_CHECKING:
    from stoker.sources.chunks import Chunks

_SHOWN_BITS = 256  # of a number in a message; Python refuses to write very long ones

F = TypeVar("F", bound=Callable[..., Any])

# The arguments of torch.utils.data.DataLoader that are called otherwise here, and what to do; {} is what was passed.
OF_TORCH = {
    "num_workers": "pass workers={}",
    "collate_fn": "pass collate={}; it gets a list of samples, in a worker",
    "prefetch_factor": "pass prefetch={}",
    "sampler": "pass shuffle=True and seed=..., or shard=(rank, world_size); for an order of your own, pass order={}",
    "batch_sampler": "pass batch_size=..., shuffle=... and drop_last=..., or order=stoker.Buckets(lengths, ...) for "
    "batches of like length; for batches of your own choice, use "
    "stoker.stream(lambda indices: collate([dataset[i] for i in indices]), batch_sampler)",
    "pin_memory": 'leave it out; with to="torch" and device="cuda", batches are moved ahead through pinned memory',
    "pin_memory_device": 'pass to="torch" and device={}',
    "persistent_workers": "leave it out; workers live from epoch to epoch",
    "worker_init_fn": "pass init={}; it is called in each worker, without arguments",
    "generator": "pass seed=..., an int, which seeds the order and all random generators in workers",
    "multiprocessing_context": "pass workers=stoker.Processes(n, start={})",
}
_OF_DATASETS = {"collate_fn", "sampler", "batch_sampler"}  # which a stream of items has not


def answers_unknown_names(function: F) -> F:
    """A function that answers arguments it has not got by saying which ones to pass instead. Its signature stays."""
    known = list(inspect.signature(function).parameters)
    is_constructor = function.__name__ == "__init__"
    name = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def answering(*args: Any, **kwargs: Any) -> Any:
        unknown = kwargs.keys() - known
        if unknown:
            lines = [_told(one, kwargs[one], known[is_constructor:]) for one in kwargs if one in unknown]
            raise TypeError(f"stoker.{name} has no argument {'; and no argument '.join(lines)}")
        return function(*args, **kwargs)

    return answering  # type: ignore[return-value]


def _told(name: str, value: Any, known: list[str]) -> str:
    if name in OF_TORCH and ("dataset" in known or name not in _OF_DATASETS):
        return f"{name}: {OF_TORCH[name].format(brief(value))}"
    near = near_name(name, known)
    return f"{name}: pass {near}=..., if that is meant" if near else f"{name}: it has {', '.join(known)}"


def near_name(name: str, known: list[str], likeness: float = 0.6) -> str | None:
    """The name that is most like it, if one is."""
    import difflib  # only for those who have made a mistake

    return next(iter(difflib.get_close_matches(name.lower(), known, n=1, cutoff=likeness)), None)


def brief(value: Any) -> str:
    """A value as one would write it; of anything but numbers and strings, that is its name at most."""
    if isinstance(value, str | int | float | None):
        return repr(value)
    return str(getattr(value, "__name__", "..."))


def named(thing: Any) -> str:
    """A dataset or function, for ``repr``: by its name, so that none of its arguments and contents is shown."""
    if is_chunks(thing):
        return repr(thing)
    if isinstance(thing, functools.partial):
        return f"partial({named(thing.func)})"
    return getattr(thing, "__qualname__", None) or type(thing).__qualname__


def checked_timeout(timeout: Any) -> float | None:
    if timeout is None:
        return None
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 < timeout < float("inf"):
        raise ValueError(f"timeout={timeout!r}: pass a number of seconds above 0, or None for any time")
    return float(timeout)


def checked_seconds(seconds: Any) -> float:
    if seconds is None:
        return math.inf
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds >= 0:
        raise ValueError(f"warm_up({seconds!r}): pass a number of seconds, or None for as long as it takes")
    return float(seconds)


def checked_epoch(method: str, epoch: Any) -> int:
    """``method``: what it is an argument of, for the message."""
    return _checked_number(f"{method}(%s)", epoch)


def checked_step(method: str, step: Any) -> int:
    return _checked_number(f"{method}(..., step=%s)" if method != "skip" else "skip(%s)", step)


def _checked_number(call: str, value: Any) -> int:
    try:
        number = -1 if isinstance(value, BOOLS) else operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number <= MAX_EPOCH:
        shown = repr(value) if number.bit_length() <= _SHOWN_BITS else f"an int of {number.bit_length()} bits"
        raise ValueError(f"{call % shown}: pass a whole number from 0 to {MAX_EPOCH} (2**53 - 1)")
    return number


def checked_after(after: Any, shard: tuple[int, int], pack: Pack | None) -> int | None:
    """The number of batches that ``set_weights`` lets pass."""
    if pack is not None:
        if after is not None:
            raise ValueError(
                f"set_weights(..., after={after!r}) of a loader with pack=: how many samples so many batches of rows "
                f"have is known only when they were packed. Leave out after="
            )
        return None
    if after is None:
        if shard[1] > 1:
            raise ValueError(
                f"set_weights without after=, on {shard[1]} shards: how many batches workers have been given differs "
                f"from process to process. Pass after=n, the same number in each, at the same step"
            )
        return None
    try:
        number = -1 if isinstance(after, BOOLS) else operator.index(after)
    except TypeError:
        number = -1
    if not 0 <= number <= MAX_EPOCH:
        raise ValueError(f"set_weights(..., after={after!r}): pass a whole number of batches, 0 or more")
    return number


def checked_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: pass True or False")
    return value


def checked_collate(collate: Any) -> Any:
    if collate is not None and not callable(collate):
        raise TypeError(f"collate={collate!r}: pass a function that takes a list of samples, or leave it out")
    return None if collate is default_collate else collate  # by default, samples go straight into shared memory


def checked_init(init: Any) -> Any:
    if init is not None and not callable(init):
        raise TypeError(f"init={init!r}: pass a function without arguments, which is called in each worker")
    return init


def checked_items(items: Any) -> Iterable[Any]:
    if not isinstance(items, Iterable):
        raise TypeError(f"items={items!r}: pass an iterable, such as a list, or a generator, which may be endless")
    return items


def checked_worker_of(worker_of: Any, workers: Workers) -> Callable[[Any], int | None] | None:
    """It, with a check of what it returns."""
    if worker_of is None:
        return None
    count = workers.count
    if workers.traits.is_elastic:
        raise ValueError(
            f"worker_of= with workers={workers!r}: workers come and go. Pass a number of them that stays the same: "
            f"stoker.Processes(n), or stoker.Ray(n) without autoscale"
        )
    if not callable(worker_of):
        raise TypeError(f"worker_of={worker_of!r}: pass a function that gets an item and returns a worker's number")

    def checked(item: Any) -> int | None:
        number = worker_of(item)
        if number is None:
            return None
        if not isinstance(number, int) or not 0 <= number < count:
            raise ValueError(
                f"worker_of(item) returned {number!r}: return the number of a worker, 0 to {count - 1}, or None for any"
            )
        return number

    return checked


def check_rotation(rotation: Any, workers: Workers) -> None:
    """It lies in memory, or a file, that all workers have in common."""
    if rotation is not None and not workers.traits.is_here:
        raise ValueError(
            f"rotation= with workers={workers!r}: rotating samples lie in memory that all workers share, which "
            f"machines of a cluster do not. Pass cache=stoker.Cache(path), which each node has for itself, or "
            f"workers=stoker.Processes(n)"
        )


def check_replacing(policy: ErrorPolicy, what: str, rotation: Any = None) -> None:
    """Where there is another sample to take the place of one that fails."""
    if policy.replaces and rotation is not None:
        raise ValueError(
            'on_error="replace" and rotation=: a sample that rotates is used several times, and so would its '
            'replacement have to be. Pass on_error="skip" or "quarantine"'
        )
    if policy.replaces and what != "dataset":
        raise ValueError(
            f'on_error="replace" needs a dataset with an index, of which another sample is taken, and {what} have '
            f'none: pass on_error="skip" or "quarantine"'
        )


def check_chunked(chunks: Chunks, plan: Plan, cache: Any, rotation: Any) -> None:
    """What a loader of chunk files cannot do."""
    if cache is not None or rotation is not None:
        name = "cache" if cache is not None else "rotation"
        raise ValueError(f"{name}= needs a dataset with an index, which Chunks has not")
    if not isinstance(plan.shuffle, bool):
        raise ValueError(
            f"shuffle={plan.shuffle!r} of Chunks: pass True, and Chunks(..., interleave=n) for how many files mix"
        )
    check_chunked_shard(chunks, plan.shard)


def check_packed(pack: Any, dataset: Any, plan: Plan, collate: Any, rotation: Any) -> None:
    """What a loader that packs cannot do."""
    if pack is None:
        return
    if not isinstance(pack, Pack):
        raise TypeError(f"pack={pack!r}: pass stoker.Pack(length), with the number of tokens in a row")
    if collate is not None:
        raise ValueError(
            "collate= with pack=: a batch is made of packed rows, and no function gets its samples. Pass to=function "
            "for what is to be done with each batch"
        )
    if rotation is not None:
        raise ValueError("rotation= with pack=: the uses of a sample would be packed together; pass cache= instead")
    if is_chunks(dataset) and not dataset.across_chunks:
        raise ValueError("pack= with Chunks(..., across_chunks=False): rows and batches have samples of several files")
    if isinstance(plan.order, BucketOrder):
        raise ValueError("order=Buckets(...) with pack=: rows of one length need no batches of like samples; pass one")
    if isinstance(plan.order, Mixture):
        _check_packed_mixture(plan.order, dataset.tag, pack)
    check_packed_shard(plan.shard, plan.even_shards)


def _check_packed_mixture(mixture: Mixture, tag: str | None, pack: Pack) -> None:
    if len(mixture.recipe.schedule) > 1:
        step = mixture.recipe.schedule[1][0]
        raise ValueError(
            f"a Mix whose weights change at step {step}, with pack=: a step is a batch of rows, and how many samples "
            f"came before it depends on their lengths. Pass the weights of step 0, and call loader.set_weights(...) "
            f"when it is time"
        )
    if tag is not None and tag not in pack.names:
        raise ValueError(
            f"Mix(..., tag={tag!r}) with pack=: a row has samples of several sources. Let samples be dicts, and pass "
            f"Pack(..., keys=(..., {tag!r})), so that each token has the number of its source"
        )


def check_packed_shard(shard: tuple[int, int], even_shards: bool) -> None:
    if shard[1] > 1 and even_shards:
        raise ValueError(
            f"shard={shard!r} with pack=: how many rows a shard has depends on the lengths of its samples, so shards "
            f"have different numbers of batches. Pass even_shards=False, and let all processes train for the same "
            f"number of steps"
        )


def check_has_index(method: str, dataset: Any, pack: Pack | None) -> None:
    """What goes by the indices of samples, and numbers of batches."""
    if pack is not None:
        raise ValueError(
            f"{method}() of a loader with pack=: which samples are in a batch is known only when those before it were "
            f"packed. Use set_epoch(), or load_state_dict() with a state that was saved there"
        )
    if is_chunks(dataset):
        raise ValueError(
            f"{method}() of a loader of Chunks: their samples have no indices, and how many batches a file has is "
            f"known only when it was read. Use set_epoch(), or load_state_dict() with a state that was saved there"
        )


def check_chunked_shard(chunks: Chunks, shard: tuple[int, int]) -> None:
    if shard[1] > 1 and not chunks.across_chunks:
        raise ValueError(
            f"shard={shard!r} of Chunks(..., across_chunks=False): shards would have different numbers of "
            f"batches; pass across_chunks=True"
        )
