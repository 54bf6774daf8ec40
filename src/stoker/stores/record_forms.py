"""The form of a sample: its tree, and what kind of leaf stands where. As data, it can be written down and read back
without running any code that the file names."""

from __future__ import annotations

from collections import OrderedDict
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec.msgpack
import numpy as np

from stoker.collation.columns import Array, is_plain
from stoker.collation.tensors import array_as_tensor, is_plain_tensor, is_tensor, tensor_as_array, tensor_dtype
from stoker.collation.tree import Node, Shape, paths, step
from stoker.memory.array_layout import lay_out

_CONTAINERS: dict[str, type] = {"dict": dict, "list": list, "tuple": tuple, "ordered": OrderedDict}
_PLAIN = (list, tuple)  # whose keys are 0, 1, 2, ...
_NAMES = {cls: name for name, cls in _CONTAINERS.items()}
_VALUES = (str, int, float, bool, bytes, type(None))
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


class FormLeaf(NamedTuple):
    """One leaf. Of an array: its type, shape and offset, and the torch dtype where it is a tensor."""

    kind: Kind
    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] = ()
    tensor: str = ""
    offset: int = 0


class RecordForm(NamedTuple):
    """What samples of one form have in common; ``nbytes`` are those of the arrays."""

    tree: Shape
    leaves: tuple[FormLeaf, ...]
    nbytes: int

    @classmethod
    def of(cls, tree: Shape, *leaves: FormLeaf) -> RecordForm:
        """Lays the arrays out."""
        offsets, end = lay_out(None if leaf.dtype is None else (leaf.dtype, leaf.shape) for leaf in leaves)
        laid_out = [
            leaf if leaf.dtype is None else leaf._replace(offset=offset)
            for leaf, offset in zip(leaves, offsets, strict=True)
        ]
        return cls(tree, tuple(laid_out), end)

    @property
    def is_array(self) -> bool:
        """Whether the sample is one numpy array and nothing else."""
        return self.tree is None and self.leaves[0].kind == Kind.ARRAY and not self.leaves[0].tensor

    @property
    def arrays(self) -> list[FormLeaf]:
        return [leaf for leaf in self.leaves if leaf.dtype is not None]


def leaf_of(value: Any) -> FormLeaf:
    """What kind of leaf a value is."""
    if isinstance(value, np.ndarray):
        return FormLeaf(Kind.ARRAY, value.dtype, value.shape) if is_plain(value) else FormLeaf(Kind.OTHER)
    if is_tensor(value):
        array = tensor_as_array(value)
        return FormLeaf(Kind.ARRAY, array.dtype, array.shape, tensor_dtype(value))
    if isinstance(value, np.generic):
        return FormLeaf(Kind.OTHER) if value.dtype.hasobject else FormLeaf(Kind.SCALAR, value.dtype)
    kind = type(value)
    if kind is int:
        return FormLeaf(Kind.VALUE if value in _64_BITS else Kind.BIG)
    if kind is str:
        return FormLeaf(Kind.VALUE if _is_unicode(value) else Kind.TEXT)
    if kind in _VALUES:
        return FormLeaf(Kind.VALUE)
    return FormLeaf(Kind.COMPLEX if kind is complex else Kind.OTHER)


def exact_keys(tree: Shape) -> tuple[Any, ...]:
    """What tells apart trees that are equal and not the same: 1, 1.0 and True are one key to a dict."""
    if tree is None:
        return ()
    others = [(type(key), repr(key)) for key in tree.keys if type(key) is not str] if tree.cls not in _PLAIN else []
    return (*others, *[exact_keys(child) for child in tree.children if child is not None])


def exact_leaf_of(value: Any) -> FormLeaf:
    """The same, where all can be pickled: what as an array would come back as another type, or elsewhere, is."""
    is_array = type(value) is np.ndarray or type(value) is np.memmap
    if (isinstance(value, np.ndarray) and not is_array) or (is_tensor(value) and not is_plain_tensor(value)):
        return FormLeaf(Kind.OTHER)
    return leaf_of(value)


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


def check(tree: Shape, leaves: list[FormLeaf], values: list[Any]) -> None:
    """
    Raises:
        TypeError: Only pickle can keep it.
    """
    for leaf, value, path in zip(leaves, values, paths(tree, "sample"), strict=True):
        if leaf.kind == Kind.OTHER or (leaf.dtype is not None and not _is_known(leaf.dtype)):
            raise _refused(f"{path} is {_named(value)}")
    _check_containers(tree)


def _check_containers(tree: Shape, path: str = "sample") -> None:
    if tree is None:
        return
    if tree.cls not in _NAMES:
        raise _refused(f"{path} is a {tree.cls.__name__}")
    for key, child in zip(tree.keys, tree.children, strict=True):
        if leaf_of(key).kind != Kind.VALUE:
            raise _refused(f"{path} has the key {key!r}, a {type(key).__name__}")
        _check_containers(child, path + step(tree.cls, key))


def _refused(what: str) -> TypeError:
    return TypeError(
        f"{what}: a store keeps dicts, lists and tuples of arrays, numbers, strings, bytes and None. "
        f'Return such samples, or pass codec="pickle" if you trust everybody who can write to its files'
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
        return _read_dtype(msgspec.msgpack.decode(msgspec.msgpack.encode(_spelt_dtype(dtype)))) == dtype
    except (TypeError, ValueError, ImportError):
        return False


def _spelt_dtype(dtype: np.dtype[Any]) -> Any:
    """As ``.npy`` files have it; types of ml_dtypes (bfloat16, ...), which numpy does not know, by name."""
    if dtype.type.__module__ == "ml_dtypes":
        return {"ml_dtypes": dtype.name}
    return dtype.str if dtype.names is None else dtype.descr


def _read_dtype(told: Any) -> np.dtype[Any]:
    if isinstance(told, dict):
        import ml_dtypes

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, str(told["ml_dtypes"])))
    else:
        dtype = np.lib.format.descr_to_dtype(_as_tuples(told))
    if dtype.hasobject:
        raise ValueError(f"it has a leaf of type {dtype}, which are addresses in memory")
    return dtype


def _as_tuples(descr: Any) -> Any:
    """A structured dtype is a list of tuples, which MessagePack gives back as lists. A name may be (title, name)."""
    if isinstance(descr, str):
        return descr
    return [
        (tuple(name) if isinstance(name, list) else name, _as_tuples(kind), *map(tuple, shape))
        for name, kind, *shape in descr
    ]


def spelt(form: RecordForm) -> Any:
    """A form as MessagePack can hold it."""
    leaves = [
        [leaf.kind, leaf.dtype and _spelt_dtype(leaf.dtype), leaf.shape, leaf.tensor, leaf.offset]
        for leaf in form.leaves
    ]
    return [_spelt_tree(form.tree), leaves, form.nbytes]


def read(told: Any) -> RecordForm:
    """The other way.

    Raises:
        ValueError: It is not what ``spelt`` gives.
    """
    try:
        spelt_tree, spelt_leaves, nbytes = told
        tree, leaves = _read_tree(spelt_tree), tuple(_read_leaf(*leaf) for leaf in spelt_leaves)
        _check_containers(tree)
        laid_out = RecordForm.of(tree, *(leaf._replace(offset=0) for leaf in leaves))
        if laid_out != RecordForm(tree, leaves, nbytes) or len(leaves) != len(list(paths(tree))):
            raise ValueError("its leaves lie elsewhere")
    except Exception as error:  # whatever numpy says to nonsense, a SyntaxError included
        raise ValueError(f"this is no form of a sample: {error}") from error
    return laid_out


def _spelt_tree(tree: Shape) -> Any:
    if tree is None:
        return None
    return [_NAMES[tree.cls], tree.keys, [_spelt_tree(child) for child in tree.children]]


def _read_tree(told: Any) -> Shape:
    if told is None:
        return None
    name, keys, children = told
    return Node(_CONTAINERS[name], tuple(keys), tuple(_read_tree(child) for child in children))


def _read_leaf(kind: str, dtype: Any, shape: list[int], tensor: str, offset: int) -> FormLeaf:
    leaf = FormLeaf(Kind(kind), None if dtype is None else _read_dtype(dtype), tuple(shape), tensor, offset)
    if (leaf.dtype is not None) != (leaf.kind in (Kind.ARRAY, Kind.SCALAR)) or min(leaf.shape, default=0) < 0:
        raise ValueError(f"it has a leaf that cannot be: {leaf}")
    if tensor:
        made = array_as_tensor(np.empty(1, leaf.dtype), tensor)
        if tensor_dtype(made) != tensor or len(made) != 1:
            raise ValueError(f"torch has no type {tensor!r} of that size")
    return leaf
