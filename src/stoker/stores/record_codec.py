"""How one sample lies in a store.

    | array | array | ... | aside: its numbers, strings and bytes | form: its tree, types and shapes | form's length |

Arrays begin at multiples of 64 bytes from the sample's own beginning, so they are read where they lie. Most samples of
a dataset have one form, so a decoder keeps each form that it has seen, by a number that follows from its bytes. Aside
and form are MessagePack, which is data and nothing else; only where the user asked for it are they pickled.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import msgspec.msgpack
import numpy as np
import xxhash

from stoker.collation.columns import Array
from stoker.collation.tensors import array_as_tensor
from stoker.collation.tree import exact_class, flatten, unflatten
from stoker.memory.codec import dumps
from stoker.stores.cache import Codec
from stoker.stores.record_forms import (
    FormLeaf,
    Kind,
    RecordForm,
    as_array,
    beside,
    check,
    exact_keys,
    exact_leaf_of,
    leaf_of,
    read,
    restored,
    spelt,
)

_REMEMBERED = 1024  # forms kept by an encoder or decoder; ragged data may have a new one every sample
_LENGTH = 4  # bytes that tell how long the form is


class RecordLocation(NamedTuple):
    """Where a sample lies, the number of its form, and how many bytes of it are aside."""

    start: int
    nbytes: int
    form: int
    aside: int


class Overwritten(Exception):
    """What was to be read is another sample's by now."""


class SampleRecord(NamedTuple):
    """A sample, ready to be written."""

    form: RecordForm
    number: int
    arrays: list[Array]
    aside: int
    tail: bytes  # aside, form and the form's length

    @property
    def nbytes(self) -> int:
        return self.form.nbytes + len(self.tail)

    def write(self, buffer: memoryview, start: int) -> None:
        """Writes it into memory."""
        for array, leaf in zip(self.arrays, self.form.arrays, strict=True):
            np.ndarray(leaf.shape, leaf.dtype, buffer, start + leaf.offset)[...] = array
        start += self.form.nbytes
        buffer[start : start + len(self.tail)] = self.tail


class RecordEncoder:
    """Makes records of samples."""

    def __init__(self, codec: Codec) -> None:
        self._pickles = codec == "pickle"
        self._forms: dict[Any, tuple[RecordForm, bytes, int]] = {}

    def record(self, sample: Any) -> SampleRecord:
        """The sample as a record.

        Raises:
            TypeError: It holds something that only pickle can keep.
        """
        if type(sample) is np.ndarray:  # the common case, without the walk over a tree
            known = self._forms.get((sample.dtype, sample.shape))
            if known is not None:
                return SampleRecord(known[0], known[2], [sample], 0, known[1])
        if self._pickles:
            values, tree = flatten(sample, exact_class)
            leaves = [exact_leaf_of(value) for value in values]
        else:
            values, tree = flatten(sample)
            leaves = [leaf_of(value) for value in values]
        key = (tree, exact_keys(tree), *leaves)
        known = self._forms.get(key)
        if known is None:
            if not self._pickles:
                check(tree, leaves, values)
            known = self._forms[key] = self._new_form(RecordForm.of(tree, *leaves))
        form, told, number = known
        if type(sample) is np.ndarray and form.is_array:
            self._forms[sample.dtype, sample.shape] = form, told, number
        arrays = [as_array(value) for value, leaf in zip(values, leaves, strict=True) if leaf.dtype]
        aside = [beside(leaf.kind, value) for value, leaf in zip(values, leaves, strict=True) if not leaf.dtype]
        packed = b"" if not aside else dumps(aside) if self._pickles else msgspec.msgpack.encode(aside)
        return SampleRecord(form, number, arrays, len(packed), packed + told)

    def _new_form(self, form: RecordForm) -> tuple[RecordForm, bytes, int]:
        if len(self._forms) >= _REMEMBERED:
            self._forms.clear()
        told = dumps(form) if self._pickles else msgspec.msgpack.encode(spelt(form))
        number = xxhash.xxh3_64_intdigest(told)
        return form, told + len(told).to_bytes(_LENGTH, "little"), number


class _Raw(NamedTuple):
    """A sample as it was read and not yet interpreted: the form if it is known, or else its bytes; and those aside."""

    buffer: memoryview
    start: int
    nbytes: int
    number: int
    form: RecordForm | None
    told: bytes
    aside: bytes


class RecordDecoder:
    """Reads samples where they lie. ``copies``: their arrays are the caller's own, and not views of the store."""

    def __init__(self, codec: Codec, *, copies: bool) -> None:
        self._pickles = codec == "pickle"
        self._copies = copies
        self._forms: dict[int, RecordForm] = {}

    def samples(
        self,
        buffer: memoryview,
        starts: list[int],
        sizes: list[int],
        forms: list[int],
        asides: list[int],
        still_there: Callable[[], bool] = lambda: True,
    ) -> list[Any]:
        """The samples that lie at these locations.

        ``still_there``: where others may overwrite them meanwhile, whether nobody has. It is asked once all that is to
        be interpreted has been copied: the bytes of another sample, unpickled, might be code. What is no copy may be
        overwritten later.

        Raises:
            Overwritten: It says no.
        """
        form = self._forms.get(forms[0])
        if form is not None and form.is_array and not self._copies and forms.count(forms[0]) == len(forms):
            _, dtype, shape, *_ = form.leaves[0]
            return [np.ndarray(shape, dtype, buffer, start) for start in starts]
        raw = [
            self._read(buffer, RecordLocation(*location)) for location in zip(starts, sizes, forms, asides, strict=True)
        ]
        if not still_there():
            raise Overwritten
        return [self._sample(one) for one in raw]

    def _read(self, buffer: memoryview, found: RecordLocation) -> _Raw:
        start, nbytes, number, aside = found
        if self._copies:
            buffer, start = memoryview(bytearray(buffer[start : start + nbytes])), 0
        form, told = self._forms.get(number), b""
        if form is not None:
            end = start + form.nbytes
        else:
            last = start + nbytes - _LENGTH
            length = int.from_bytes(buffer[last : last + _LENGTH], "little")
            told = bytes(buffer[max(last - length, start) : last])
            end = max(last - length - aside, start)
        return _Raw(buffer, start, nbytes, number, form, told, bytes(buffer[end : end + aside]))

    def _sample(self, raw: _Raw) -> Any:
        """
        Raises:
            ValueError: What lies there is no sample, though its checksum is right: somebody has forged it.
        """
        try:
            form = raw.form or self._forms.get(raw.number) or self._new_form(raw)
            return unflatten(form.tree, self._leaves(form, raw.buffer, raw.start, self._beside(raw.aside)))
        except (TypeError, AttributeError, RuntimeError, msgspec.DecodeError) as error:
            if self._pickles:
                raise
            raise ValueError(f"what lies in the store is no sample: {error}") from error

    def _leaves(self, form: RecordForm, buffer: memoryview, start: int, beside: Iterator[Any]) -> Iterator[Any]:
        for leaf in form.leaves:
            if leaf.dtype is None:
                yield restored(leaf.kind, next(beside))
            else:
                yield self._array(leaf, buffer, start)

    def _array(self, leaf: FormLeaf, buffer: memoryview, start: int) -> Any:
        array: Array = np.ndarray(leaf.shape, leaf.dtype, buffer, start + leaf.offset)
        if leaf.kind == Kind.SCALAR:
            return array[()] if array.dtype.names is None else array.copy()[()]  # which would be a view
        return array_as_tensor(array, leaf.tensor) if leaf.tensor else array

    def _beside(self, told: bytes) -> Iterator[Any]:
        if not told:
            return iter(())
        return iter(pickle.loads(told) if self._pickles else msgspec.msgpack.decode(told))

    def _new_form(self, raw: _Raw) -> RecordForm:
        form: RecordForm = pickle.loads(raw.told) if self._pickles else read(msgspec.msgpack.decode(raw.told))
        if form.nbytes + len(raw.aside) + len(raw.told) + _LENGTH != raw.nbytes:
            raise ValueError("what lies in the store is no sample: its parts are longer than the whole, or shorter")
        if len(self._forms) >= _REMEMBERED:
            self._forms.clear()
        self._forms[raw.number] = form
        return form
