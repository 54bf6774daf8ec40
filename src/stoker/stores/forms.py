"""The form of a sample: its tree, and what kind of leaf stands where. As data, it can be written down and read back
without running any code that the file names."""

from __future__ import annotations

from collections import OrderedDict
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from stoker.collate.columns import Array, is_plain
from stoker.collate.tensors import is_tensor, tensor_as_array, tensor_dtype
from stoker.collate.tree import Node, Shape, paths

_ALIGN = 64
_CONTAINERS: dict[str, type] = {"dict": dict, "list": list, "tuple": tuple, "ordered": OrderedDict}
_NAMES = {cls: name for name, cls in _CONTAINERS.items()}
_KEYS = (str, int, float, bool, bytes, type(None))  # of dicts
_64_BITS = range(-(2**63), 2**64)


class Kind(StrEnum):
    """What becomes of a leaf. Arrays and numpy's scalars lie by themselves, all others aside."""

    ARRAY = "array"
    SCALAR = "scalar"  # of numpy
    VALUE = "value"  # as MessagePack has it: None, bool, int of 64 bits, float, str, bytes
    COMPLEX = "complex"  # as two floats
    BIG = "big"  # an int of more than 64 bits, as text
    TEXT = "text"  # a str that is no valid Unicode, as bytes
    OTHER = "other"  # only pickle can keep it


class Leaf(NamedTuple):
    """One leaf. Of an array: its type, shape and offset, and the torch dtype where it is a tensor."""

    kind: Kind
    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] = ()
    tensor: str = ""
    offset: int = 0


class Form(NamedTuple):
    """What samples of one form have in common; ``nbytes`` are those of the arrays."""

    tree: Shape
    leaves: tuple[Leaf, ...]
    nbytes: int

    @classmethod
    def of(cls, tree: Shape, *leaves: Leaf) -> Form:
        """Lays the arrays out."""
        end, placed = 0, []
        for leaf in leaves:
            if leaf.dtype is None:
                placed.append(leaf)
                continue
            offset = -(-end // _ALIGN) * _ALIGN
            placed.append(leaf._replace(offset=offset))
            end = offset + leaf.dtype.itemsize * int(np.prod(leaf.shape, dtype=np.int64))
        return cls(tree, tuple(placed), end)

    @property
    def is_array(self) -> bool:
        """Whether the sample is one numpy array and nothing else."""
        return self.tree is None and self.leaves[0].kind == Kind.ARRAY and not self.leaves[0].tensor

    @property
    def arrays(self) -> list[Leaf]:
        return [leaf for leaf in self.leaves if leaf.dtype is not None]


def leaf_of(value: Any) -> Leaf:
    """What kind of leaf a value is."""
    if isinstance(value, np.ndarray):
        return Leaf(Kind.ARRAY, value.dtype, value.shape) if is_plain(value) else Leaf(Kind.OTHER)
    if is_tensor(value):
        array = tensor_as_array(value)
        return Leaf(Kind.ARRAY, array.dtype, array.shape, tensor_dtype(value))
    if isinstance(value, np.generic):
        return Leaf(Kind.OTHER) if value.dtype.hasobject else Leaf(Kind.SCALAR, value.dtype)
    kind = type(value)
    if kind is int:
        return Leaf(Kind.VALUE if value in _64_BITS else Kind.BIG)
    if kind is str:
        return Leaf(Kind.VALUE if _is_unicode(value) else Kind.TEXT)
    if kind in _KEYS:
        return Leaf(Kind.VALUE)
    return Leaf(Kind.COMPLEX if kind is complex else Kind.OTHER)


def as_array(value: Any) -> Array:
    return tensor_as_array(value) if is_tensor(value) else np.asarray(value)


def beside(kind: Kind, value: Any) -> Any:
    """A value as it lies aside."""
    if kind == Kind.COMPLEX:
        return [value.real, value.imag]
    if kind == Kind.BIG:
        return hex(value)
    return value.encode("utf-8", "surrogatepass") if kind == Kind.TEXT else value


def restored(kind: Kind, value: Any) -> Any:
    """The other way."""
    if kind == Kind.COMPLEX:
        return complex(*value)
    if kind == Kind.BIG:
        return int(value, 16)
    return value.decode("utf-8", "surrogatepass") if kind == Kind.TEXT else value


def check(tree: Shape, leaves: list[Leaf], values: list[Any]) -> None:
    """
    Raises:
        TypeError: Only pickle can keep it.
    """
    for leaf, value, path in zip(leaves, values, paths(tree, "sample"), strict=True):
        if leaf.kind == Kind.OTHER or (leaf.dtype is not None and not _is_known(leaf.dtype)):
            raise _refused(f"{path} is {_named(value)}")
    _check_containers(tree)


def _check_containers(tree: Shape) -> None:
    if tree is None:
        return
    if tree.cls not in _NAMES:
        raise _refused(f"the sample holds a {tree.cls.__name__}")
    for key in tree.keys:
        if type(key) not in _KEYS or (type(key) is int and key not in _64_BITS):
            raise _refused(f"a dict of the sample has the key {key!r}, a {type(key).__name__}")
    for child in tree.children:
        _check_containers(child)


def _refused(what: str) -> TypeError:
    return TypeError(
        f"{what}: a store keeps dicts, lists and tuples of arrays, numbers, strings, bytes and None. "
        f'Give such samples, or write codec="pickle" if you trust whoever can write to its files'
    )


def _named(value: Any) -> str:
    return f"an array of {value.dtype}" if hasattr(value, "dtype") else f"a {type(value).__name__}"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_known(dtype: np.dtype[Any]) -> bool:
    try:
        return _read_dtype(_spelt_dtype(dtype)) == dtype
    except (TypeError, ValueError, ImportError):
        return False


def _spelt_dtype(dtype: np.dtype[Any]) -> Any:
    """As ``.npy`` files have it; types of ml_dtypes (bfloat16, ...), which numpy does not know, by name."""
    if dtype.type.__module__ == "ml_dtypes":
        return {"ml_dtypes": dtype.name}
    return np.lib.format.dtype_to_descr(dtype)


def _read_dtype(told: Any) -> np.dtype[Any]:
    if isinstance(told, dict):
        import ml_dtypes

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, str(told["ml_dtypes"])))
    else:
        dtype = np.lib.format.descr_to_dtype(_as_tuples(told))
    return dtype


def _as_tuples(descr: Any) -> Any:
    """A structured dtype is a list of tuples, which MessagePack gives back as lists."""
    if isinstance(descr, str):
        return descr
    return [(name, _as_tuples(kind), *map(tuple, shape)) for name, kind, *shape in descr]


def spelt(form: Form) -> Any:
    """A form as MessagePack can hold it."""
    leaves = [
        [leaf.kind, leaf.dtype and _spelt_dtype(leaf.dtype), leaf.shape, leaf.tensor, leaf.offset]
        for leaf in form.leaves
    ]
    return [_spelt_tree(form.tree), leaves, form.nbytes]


def read(told: Any) -> Form:
    """The other way.

    Raises:
        ValueError: It is not what ``spelt`` gives.
    """
    try:
        tree, leaves, nbytes = told
        return Form(_read_tree(tree), tuple(_read_leaf(*leaf) for leaf in leaves), int(nbytes))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"this is no form of a sample: {error}") from error


def _spelt_tree(tree: Shape) -> Any:
    if tree is None:
        return None
    return [_NAMES[tree.cls], tree.keys, [_spelt_tree(child) for child in tree.children]]


def _read_tree(told: Any) -> Shape:
    if told is None:
        return None
    name, keys, children = told
    return Node(_CONTAINERS[name], tuple(keys), tuple(_read_tree(child) for child in children))


def _read_leaf(kind: str, dtype: Any, shape: list[int], tensor: str, offset: int) -> Leaf:
    return Leaf(Kind(kind), None if dtype is None else _read_dtype(dtype), tuple(shape), tensor, offset)
