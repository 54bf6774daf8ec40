"""Pack: sequences of tokens -> rows of a fixed length, with segment ids and positions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, get_args

import numpy as np

from stoker.collation.columns import Array, Column, Columnar, any_masked
from stoker.collation.packed_columns import PackedTokens, PositionIds, SegmentIds
from stoker.collation.pad import filler
from stoker.collation.promotion import common_dtype
from stoker.collation.tensors import dtype_name, is_tensor, tensor_as_array, tensors_as_arrays
from stoker.counts import checked_count
from stoker.errors import CollateError
from stoker.plan.packing import Layout, Long, lay_out

_TOKENS, _SEGMENTS, _POSITIONS = "tokens", "segment_ids", "position_ids"
_ADDED = (_SEGMENTS, _POSITIONS)
_NUMBERS = "biufcV"  # kinds of dtypes; V: those of ml_dtypes


@dataclass(frozen=True)
class Pack:
    """Packs sequences of different lengths into rows of one length, for ``Loader(..., pack=Pack(2048))``.

    A batch is then ``batch_size`` rows: a dict with the tokens (under ``"tokens"``, or under the names in ``keys``),
    ``"segment_ids"`` (1 for the first sequence of a row, 2 for the second, and so on; 0 for padding) and
    ``"position_ids"`` (the place of each token in its sequence), all of the shape (batch_size, length). Workers pack a
    window of samples at a time, best fit decreasing. Empty sequences are left out.

    Args:
        length: The number of tokens in a row.
        keys: The names of the sequences in samples that are dicts, such as ``"input_ids"`` or ``("input_ids",
            "labels")``: all of a sample have the same length. A number, such as a label or the ``tag`` of a ``Mix``,
            is repeated for each token. Other keys are left out. None: each sample is a sequence.
        long: What to do with a sequence that is longer than a row. "split": cut it into pieces of ``length`` and a
            rest, each a segment of its own, whose positions begin at 0. "truncate": keep its beginning. "drop": leave
            it out.
        pad: The token that fills the end of a row, or a dict of these by key: ``{"labels": -100}``; 0 for the others.
        window: The number of samples that are packed together. Where sequences are short and few fill a row, a larger
            window leaves less padding. Of ``Chunks``, the parts that are read together are a window, whatever it is.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has a wrong value.

    Example:
        >>> import numpy as np, stoker
        >>> documents = [np.full(size, size) for size in (3, 6, 2)]
        >>> with stoker.Loader(documents, batch_size=3, pack=stoker.Pack(5)) as loader:
        ...     for name, array in next(iter(loader)).items():
        ...         print(name, array.tolist())
        tokens [[3, 3, 3, 2, 2], [6, 6, 6, 6, 6], [6, 0, 0, 0, 0]]
        segment_ids [[1, 1, 1, 2, 2], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]]
        position_ids [[0, 1, 2, 0, 1], [0, 1, 2, 3, 4], [0, 0, 0, 0, 0]]
    """

    length: int
    _: KW_ONLY
    keys: str | Sequence[str] | None = None
    long: Long = "split"
    pad: Any = 0
    window: int = 1024

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", self._count("length", "a number of tokens"))
        object.__setattr__(self, "window", self._count("window", "a number of samples"))
        if self.length >= 2**31:
            raise ValueError(f"Pack(length={self.length}): pass less than 2**31, as positions are of 32 bits")
        if self.long not in get_args(Long):
            raise ValueError(f'Pack(long={self.long!r}): pass "split", "truncate" or "drop"')
        object.__setattr__(self, "keys", self._checked_keys())
        others = [key for key in self.pad if key not in self.names] if isinstance(self.pad, Mapping) else []
        if others:
            raise ValueError(f"Pack(pad=...) has {others[0]!r}, which is not among keys={list(self.names)}")

    @property
    def names(self) -> tuple[str, ...]:
        """Of the sequences in a batch."""
        return (_TOKENS,) if self.keys is None else tuple(self.keys)

    @property
    def identity(self) -> dict[str, Any]:
        """What the rows of a window depend on, as JSON can hold it."""
        keys = None if self.keys is None else ", ".join(self.keys)
        return {"pack_length": self.length, "pack_keys": keys, "pack_long": self.long}

    def columns(self, samples: Sequence[Any], indices: Sequence[int]) -> tuple[dict[str, Column], int]:
        """The rows that these samples make, and how many they are. ``indices``: what messages call the samples.

        Raises:
            CollateError: They are not what can be packed.
        """
        values = self._values(samples, indices)
        numbers = {name: some for name, some in values.items() if self.keys is not None and _are_numbers(some)}
        if len(numbers) == len(values):  # which have no length: the first one is refused
            numbers = {}
        found = {name: _sequences(values[name], self._path(name), indices) for name in values if name not in numbers}
        lengths = self._lengths({name: arrays for name, (arrays, _) in found.items()}, indices)
        as_tensors = any(tensor for _, tensor in found.values())
        found |= {name: _repeated(some, lengths, as_tensors) for name, some in numbers.items()}
        layout = lay_out(lengths, self.length, self.long)
        columns: dict[str, Column] = {}
        for name in values:
            columns[name] = self._tokens(name, *found[name], layout, indices)
        kind = "int32" if as_tensors else ""
        return {**columns, _SEGMENTS: SegmentIds(layout, kind), _POSITIONS: PositionIds(layout, kind)}, layout.count

    def _values(self, samples: Sequence[Any], indices: Sequence[int]) -> dict[str, list[Any]]:
        """The sequences of all samples, by name."""
        if self.keys is not None:
            return {key: _of_key(samples, key, indices) for key in self.keys}
        bare = list(samples)
        if any(issubclass(kind, Mapping) for kind in set(map(type, bare))):
            nth = next(nth for nth, sample in enumerate(bare) if isinstance(sample, Mapping))
            keys = ", ".join(map(repr, bare[nth]))
            raise CollateError(
                f"sample {indices[nth]} is a dict with the keys {keys}: pass Pack(..., keys=...) with the names of "
                f"those that are sequences of tokens"
            )
        return {_TOKENS: bare}

    def _lengths(self, found: dict[str, list[Array]], indices: Sequence[int]) -> Any:
        """Tokens of each sample, which are as many for each key."""
        (first, arrays), *others = found.items()
        lengths = np.fromiter(map(len, arrays), np.int64, len(arrays))
        for name, more in others:
            differ = np.flatnonzero(np.fromiter(map(len, more), np.int64, len(more)) != lengths)
            if len(differ):
                nth = int(differ[0])
                raise CollateError(
                    f"sample {indices[nth]} has {lengths[nth]} tokens in {first!r} and {len(more[nth])} in {name!r}: "
                    f"give all keys=... of a sample the same length, or leave {name!r} out"
                )
        return lengths

    def _tokens(self, name: str, arrays: list[Array], tensor: str, layout: Layout, indices: Sequence[int]) -> Column:
        path = self._path(name)
        dtypes = {array.dtype for array in arrays}
        dtype = dtypes.pop() if len(dtypes) == 1 else _common_dtype(arrays, path, indices)
        value = self.pad.get(name, 0) if isinstance(self.pad, Mapping) else self.pad
        return PackedTokens(arrays, layout, dtype, filler(value, dtype, path, tensor), tensor)

    def _path(self, name: str) -> str:
        """What messages call it, before "of sample 3"."""
        return "the value" if self.keys is None else f"the value under {name!r}"

    def _checked_keys(self) -> tuple[str, ...] | None:
        if self.keys is None:
            return None
        given: Any = (self.keys,) if isinstance(self.keys, str) else self.keys
        keys = tuple(given) if isinstance(given, Iterable) else (given,)
        if not all(isinstance(key, str) for key in keys):
            raise TypeError(f"Pack(keys={self.keys!r}): pass a name, or several")
        if not keys or len(set(keys)) < len(keys):
            raise ValueError(f"Pack(keys={list(keys)!r}): pass one name or more, each once")
        if set(keys) & set(_ADDED):
            raise ValueError(f"Pack(keys={list(keys)!r}): leave out {' and '.join(_ADDED)}, which the packing makes")
        return keys

    def _count(self, name: str, what: str) -> int:
        return checked_count(name, getattr(self, name), f"{what}, 1 or more", of="Pack")


def _of_key(samples: Sequence[Any], key: str, indices: Sequence[int]) -> list[Any]:
    if isinstance(samples, Columnar) and key in samples.columns:
        return list(samples.columns[key])
    try:
        return [sample[key] for sample in samples]
    except (KeyError, TypeError, IndexError, ValueError):
        pass
    for sample, index in zip(samples, indices, strict=True):
        if not isinstance(sample, Mapping):
            raise CollateError(f"sample {index} is a {type(sample).__name__} and no dict: leave Pack(keys=...) out")
        if key not in sample:
            raise CollateError(f"sample {index} has no key {key!r}, only {', '.join(map(repr, sample))}")
    raise CollateError(f"the samples have no values under {key!r} that can be read")


def _are_numbers(values: list[Any]) -> bool:
    return all(isinstance(value, int | float | np.number | np.bool_) for value in values)


def _repeated(numbers: list[Any], lengths: Any, as_tensor: bool) -> tuple[list[Array], str]:
    """Each of them as often as its sample has tokens, and the torch dtype if it is to be a tensor."""
    ends = np.cumsum(lengths)
    flat = np.repeat(np.array(numbers), lengths)
    arrays = [flat[begin:end] for begin, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True)]
    return arrays, flat.dtype.name if as_tensor else ""


def _sequences(values: list[Any], path: str, indices: Sequence[int]) -> tuple[list[Array], str]:
    """As arrays of one dimension, and the torch dtype where all are tensors."""
    tensor = ""
    if values and all(map(is_tensor, values)):
        dtypes = {dtype_name(value) for value in values if value.numel()} or {"int64"}
        if len(dtypes) > 1:
            raise CollateError(f"{path} is a tensor of several types ({', '.join(sorted(dtypes))}): give all one type")
        found, tensor = tensors_as_arrays(values), dtypes.pop()
        arrays = list(map(_as_array, values)) if found is None else found[0]
    elif set(map(type, values)) <= {np.ndarray}:
        arrays = values
    else:
        arrays = list(map(_as_array, values))
    if {array.ndim for array in arrays} != {1} or any(kind not in _NUMBERS for kind in _kinds(arrays)):
        _refuse(values, arrays, path, indices)
    if any_masked(values):
        raise CollateError(f"{path} is a masked array, which cannot be packed: give the mask under a key of its own")
    return arrays, tensor


def _kinds(arrays: list[Array]) -> set[str]:
    return {dtype.kind for dtype in {array.dtype for array in arrays}}


def _refuse(values: list[Any], arrays: list[Array], path: str, indices: Sequence[int]) -> None:
    """If one of them is no sequence of numbers. What is empty may be of any type."""
    for value, array, index in zip(values, arrays, indices, strict=True):
        if array.ndim != 1 or (array.dtype.kind not in _NUMBERS and len(array)):
            raise CollateError(
                f"{path} of sample {index} is a {type(value).__name__} of shape {array.shape} and type {array.dtype}, "
                f"and no sequence of numbers: give arrays, lists or tensors of one dimension to pack"
            )


def _common_dtype(arrays: list[Array], path: str, indices: Sequence[int]) -> np.dtype[Any]:
    """Of all that are not empty: numpy makes floats of an empty list."""
    filled = [(array, index) for array, index in zip(arrays, indices, strict=True) if len(array)]
    if not filled:
        return np.dtype(np.int64)
    return common_dtype([array for array, _ in filled], path, [index for _, index in filled])


def _as_array(value: Any) -> Array:
    if is_tensor(value):
        return tensor_as_array(value)
    try:
        return np.asarray(value)
    except (ValueError, TypeError):  # nested lists of different lengths
        return np.empty((), object)
