"""The codec: how a batch lies in a slot.

    | array | array | ... | layout (pickled tree, types, shapes, offsets) | aside (objects that are no arrays) |

Arrays begin at multiples of 64 bytes, as DLPack consumers want. The layout is nearly always that of the batch before,
so both sides keep it by its bytes: in the steady state nothing is pickled, and a message needs only three lengths.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from stoker.collation.columns import (
    Array,
    Column,
    Objects,
    Pieces,
    Replaced,
    Stack,
    Taken,
    TakenOfSeveral,
    TensorStack,
    Tupled,
    Whole,
    is_plain,
)
from stoker.collation.packed_columns import PackedTokens, PositionIds, SegmentIds
from stoker.collation.tensors import array_as_tensor, is_dense, is_tensor, laid_out, tensor_as_array
from stoker.collation.tentative import Unfit
from stoker.collation.tree import ClassOf, Shape, flatten, paths, unflatten
from stoker.errors import ShippingError
from stoker.memory.array_layout import lay_out
from stoker.memory.loose_arrays import LooseArrays
from stoker.memory.mapping import Memory
from stoker.memory.pickled_tensors import dump_tensors, holds_tensors
from stoker.memory.row_columns import RowArrays, by_columns, by_columns_within_process
from stoker.memory.rows import Dumped, cls_unless_plain_rows, cls_unless_rows, copied_rows
from stoker.memory.slots import Slot

_COLUMNS = {
    PackedTokens, Pieces, PositionIds, RowArrays, SegmentIds, Stack, Taken, TakenOfSeveral, TensorStack, Whole,
}  # fmt: skip
_MANY = 256  # strings: fewer are as quickly pickled
_LARGE = 2**14  # bytes, of a bytes object: a pickle would copy them twice more
_PROTOCOL = 4  # of pickle. With 5, arrays in objects are read at two thirds of the speed where nothing is out of band.
_REMEMBERED = 2**15  # leaves of all layouts kept by each side, some 10 MB; ragged data may have a new one every batch


class Leaf(NamedTuple):
    """Where one array lies in the slot, and whether it is to be a torch tensor (the dtype's name) or numpy ('')."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    tensor: str


class Layout(NamedTuple):
    """The tree of a batch; a leaf that is None travels aside."""

    tree: Shape
    leaves: tuple[Leaf | None, ...]
    nbytes: int


class Packed(NamedTuple):
    """A batch as it lies in its slot. ``objects`` is layout and aside themselves where both sides are one process."""

    offset: int
    nbytes: int
    layout_bytes: int
    aside_bytes: int
    objects: tuple[Layout, list[Any]] | None = None

    @property
    def end(self) -> int:
        return self.offset + self.nbytes + self.layout_bytes + self.aside_bytes


class Texts(NamedTuple):
    """Many strings, which MessagePack writes twice as quickly as pickle. They lie behind all that is pickled, so
    they are not copied for it."""

    before_end: int
    nbytes: int

    def read(self, aside: memoryview) -> Any:
        import msgspec.msgpack  # those who have no strings need not load it

        start = len(aside) - self.before_end
        return msgspec.msgpack.decode(aside[start : start + self.nbytes])


class Blobs(NamedTuple):
    """Large ``bytes``, of these sizes, which are written into the slot as they are, behind all that is pickled."""

    before_end: int
    sizes: tuple[int, ...]
    is_list: bool

    def read(self, aside: memoryview) -> Any:
        start, found = len(aside) - self.before_end, []
        for size in self.sizes:
            found.append(bytes(aside[start : start + size]))
            start += size
        return found if self.is_list else found[0]


class Encoder:
    """Writes batches into slots. ``shared``: the reader is in this process, so nothing need be pickled."""

    def __init__(self, *, shared: bool = False) -> None:
        self._shared = shared
        self._walked: ClassOf = cls_unless_plain_rows if shared else cls_unless_rows
        self._cls_of: ClassOf = by_columns_within_process if shared else by_columns
        self._layouts: dict[Any, tuple[Layout, bytes]] = {}
        self._leaves = 0  # in all of these
        self._tensors_aside = False  # objects of the last batches hold tensors

    def encode(self, batch: Any, slot: Slot, offset: int = 0, loose: LooseArrays | None = None) -> Packed:
        """Writes the batch at ``offset``, a multiple of 64; the slot grows if it must. All but what ``loose`` takes."""
        cls_of = self._cls_of
        leaves, tree = flatten(batch, cls_of)
        while True:
            try:
                return self._encode(leaves, tree, slot, offset, loose)
            except Replaced as found:
                leaves = [found.instead if leaf is found.column else leaf for leaf in leaves]
            except Unfit:
                leaves, tree = flatten(batch, cls_of)
            except ShippingError:
                if cls_of is self._walked:
                    raise
                cls_of = self._walked  # in which each leaf has its name, for the message
                leaves, tree = flatten(batch, cls_of)

    def _encode(self, leaves: list[Any], tree: Shape, slot: Slot, offset: int, loose: LooseArrays | None) -> Packed:
        columns = [_as_column(leaf) for leaf in leaves]
        texts: list[bytes] = []
        aside = [self._beside(leaf, texts) for leaf, column in zip(leaves, columns, strict=True) if column is None]
        layout, layout_bytes = self._layout(tree, columns)
        beside = [self._dump_aside(aside, layout), *reversed(texts)] if aside and not self._shared else []
        aside_bytes = sum(map(len, beside))
        end = offset + layout.nbytes
        buffer = slot.reserve(end + len(layout_bytes) + aside_bytes).buffer
        for column, leaf in zip(columns, layout.leaves, strict=True):
            if column is None or leaf is None or (loose is not None and loose.take(column, offset + leaf.offset)):
                continue
            column.write(np.ndarray(leaf.shape, leaf.dtype, buffer, offset + leaf.offset))
        if self._shared:
            return Packed(offset, layout.nbytes, 0, 0, (layout, aside))
        for part in (layout_bytes, *beside):
            buffer[end : end + len(part)] = part
            end += len(part)
        return Packed(offset, layout.nbytes, len(layout_bytes), aside_bytes)

    def _beside(self, leaf: Any, texts: list[bytes]) -> Any:
        """A leaf that is no array, as it is to travel."""
        if isinstance(leaf, Objects):
            return self._listed(leaf.values, texts)
        if self._shared and type(leaf) is Tupled:
            return leaf.values
        if type(leaf) is bytes and len(leaf) >= _LARGE and not self._shared:
            return self._blobs([leaf], texts, is_list=False)
        if not self._shared or type(leaf) is not list:
            return leaf
        rows = copied_rows(leaf)
        return Dumped(dumps(leaf)) if rows is None else rows

    def _blobs(self, values: list[bytes], texts: list[bytes], *, is_list: bool) -> Blobs:
        texts.extend(reversed(values))  # which is how they lie: the last one of them first
        return Blobs(sum(map(len, texts)), tuple(map(len, values)), is_list)

    def _listed(self, values: list[Any], texts: list[bytes]) -> list[Any] | Texts | Blobs:
        """The values, or the place of their bytes, which are added to ``texts``."""
        if self._shared or not values:
            return values
        if type(values[0]) is bytes and set(map(type, values)) == {bytes}:
            is_large = sum(map(len, values)) >= _LARGE * len(values)
            return self._blobs(values, texts, is_list=True) if is_large else values
        if len(values) < _MANY or set(map(type, values)) != {str}:
            return values
        import msgspec.msgpack

        try:
            packed = msgspec.msgpack.encode(values)
        except UnicodeEncodeError:  # half of a pair of surrogates, which pickle can keep
            return values
        texts.append(packed)
        return Texts(sum(map(len, texts)), len(packed))

    def _dump_aside(self, aside: list[Any], layout: Layout) -> bytes:
        """That there are tensors in objects shows in the pickle of the first batch that has some."""
        if self._tensors_aside:
            with contextlib.suppress(Exception):  # then it is not for the tensors
                return dump_tensors(aside, _PROTOCOL)
        try:
            dumped = dumps(aside)
        except Exception as error:
            raise _cannot_travel(aside, layout) from error
        if not self._tensors_aside and holds_tensors(dumped):
            self._tensors_aside = True
            return self._dump_aside(aside, layout)
        return dumped

    def _layout(self, tree: Shape, columns: list[Column | None]) -> tuple[Layout, bytes]:
        key = (tree, *[column and (column.dtype, column.shape, column.tensor) for column in columns])
        known = self._layouts.get(key)
        if known is None:
            layout = _lay_out(tree, columns)
            self._leaves += 1 + len(layout.leaves)
            if self._leaves > _REMEMBERED:
                self._layouts.clear()
                self._leaves = 1 + len(layout.leaves)
            known = self._layouts[key] = (layout, b"" if self._shared else dumps(layout))
        return known


class Decoder:
    """Reads batches out of slots, as views of a root array."""

    def __init__(self) -> None:
        self._layouts: dict[bytes, Layout] = {}
        self._leaves = 0  # in all of these

    def decode(self, packed: Packed, mapping: Memory, root: Array) -> Any:
        """The batch; ``root`` is an array over just the bytes of its arrays."""
        offset, nbytes, layout_bytes, aside_bytes, objects = packed
        if objects is not None:
            layout, aside = objects[0], [value.read() if type(value) is Dumped else value for value in objects[1]]
        else:
            end = offset + nbytes + layout_bytes
            layout = self._layout(bytes(mapping.buffer[end - layout_bytes : end]))
            aside = _load_aside(mapping.buffer[end : end + aside_bytes]) if aside_bytes else []
        if layout.tree is None and layout.leaves[0] is not None:
            return _view(layout.leaves[0], root)  # a bare array, the quickest of batches
        others = iter(aside)
        leaves = [next(others) if leaf is None else _view(leaf, root) for leaf in layout.leaves]
        return unflatten(layout.tree, iter(leaves))

    def _layout(self, layout_bytes: bytes) -> Layout:
        layout = self._layouts.get(layout_bytes)
        if layout is None:
            layout = pickle.loads(layout_bytes)
            self._leaves += 1 + len(layout.leaves)
            if self._leaves > _REMEMBERED:
                self._layouts.clear()
                self._leaves = 1 + len(layout.leaves)
            self._layouts[layout_bytes] = layout
        return layout


_BEHIND = (Texts, Blobs)  # what is pickled


def dumps(value: Any) -> bytes:
    """Pickles by reference where that can be, so that classes stay the reader's own, and by value where not."""
    try:
        return pickle.dumps(value, _PROTOCOL)
    except Exception:
        import cloudpickle  # seldom needed, and slow to import

        dumped: bytes = cloudpickle.dumps(value, _PROTOCOL)
        return dumped


def _as_column(leaf: Any) -> Column | None:
    """The leaf as something that can be written into memory, or None where it must travel aside."""
    if type(leaf) in _COLUMNS:
        return leaf  # type: ignore[no-any-return]
    if isinstance(leaf, np.ndarray):
        return Whole(leaf) if is_plain(leaf) else None
    if is_tensor(leaf):
        return _dense_tensor(leaf) if is_dense(leaf) else None
    return None


def _dense_tensor(tensor: Any) -> Column:
    in_memory, kind = laid_out(tensor)
    return Whole(tensor_as_array(in_memory), kind)


def _lay_out(tree: Shape, columns: list[Column | None]) -> Layout:
    offsets, end = lay_out(None if column is None else (column.dtype, column.shape) for column in columns)
    leaves = [
        None if column is None else Leaf(column.dtype, column.shape, offset, column.tensor)
        for column, offset in zip(columns, offsets, strict=True)
    ]
    return Layout(tree, tuple(leaves), end)


def _view(leaf: Leaf, root: Array) -> Any:
    dtype, shape, offset, tensor = leaf
    array: Array = np.ndarray(shape, dtype, root, offset)
    return array_as_tensor(array, tensor) if tensor else array


def _load_aside(aside: memoryview) -> list[Any]:
    return [value.read(aside) if type(value) in _BEHIND else value for value in pickle.loads(aside)]


def _cannot_travel(aside: list[Any], layout: Layout) -> ShippingError:
    names = [path for path, leaf in zip(paths(layout.tree), layout.leaves, strict=True) if leaf is None]
    for path, value in _apart(names, aside):
        try:
            dumps(value)
        except Exception as error:
            what = f"{path} is a {type(value).__name__} that cannot be pickled ({type(error).__name__}: {error})"
            break
    return ShippingError(
        f"{what}, so it cannot travel from a worker process: return arrays, numbers, strings or picklable objects, "
        f"or use workers=stoker.Threads(n)"
    )


def _apart(names: list[str], aside: list[Any]) -> Iterator[tuple[str, Any]]:
    """What travels aside, rows in parts."""
    for name, value in zip(names, aside, strict=True):
        leaves, tree = flatten(value)
        yield from zip(paths(tree, name), leaves, strict=True)
