"""What a dataset is, as text: its class and its arguments. The same text, the same dataset; another, another cache.

The text is short enough to be read: what is long is told by a checksum of 128 bits over all of it. Secrets are left out
of it, and count all the same: see ``Described``.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import operator
import os
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from enum import Enum
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from stoker.collation.tensors import is_tensor
from stoker.errors import CacheError
from stoker.redaction import REDACTED, is_secret_name, redacted_string
from stoker.stores.array_digests import array_text, buffer_text, tensor_text
from stoker.stores.function_text import MADE, digest, function_text
from stoker.stores.object_state import (
    UNKNOWN,
    arguments_of,
    class_contents,
    is_made_in_c,
    moves_on,
    parameters,
    reduced,
)

_BRIEF = 120  # characters of a value; what is longer is told by its checksum,
_WHOLE = 2000  # and so are more characters in all
_REMEMBERED = 50_000  # values; without any, objects that refer to each other would take for ever
_EXACT = (str, bytes, int, float, complex, bool, type(None), type(...), type(NotImplemented))
_PLAIN = (str, bytes, int, float, complex)
_PRINTED = (*_EXACT, Enum)
_NUMBERS = frozenset({int, float, bool, type(None)})


class Described(NamedTuple):
    """What a dataset is.

    Attributes:
        text: For people, and to compare.
        secrets: A digest of what is redacted in the text, or nothing. Not to be written down as it is: whoever reads
            it could try passwords until one fits.
    """

    text: str
    secrets: bytes


def describe(value: Any) -> str:
    """The text of ``described``."""
    return described(value).text


def described(value: Any) -> Described:
    """What a value is. Of an object: its class, and those arguments of its constructor that it keeps by their names.

    Raises:
        CacheError: It cannot be told, since it is nested too deeply.
    """
    teller = _Teller()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of attributes that were not asked for by the user
            text = teller.tell(value)
    except RecursionError:
        raise CacheError(
            f"the dataset ({type(value).__qualname__}) is nested too deeply to tell it from others. Pass a class or "
            f"functools.partial(Dataset, ...), which is known by the arguments given"
        ) from None
    secrets = hashlib.blake2b(repr(teller.secrets).encode("utf-8", "surrogatepass")).digest() if teller.secrets else b""
    return Described(text, secrets)


class _Told(NamedTuple):
    value: Any  # so that no other gets its address
    text: str
    secrets: list[str]


class _Teller:
    """Tells what values are, one within the other. ``secrets``: what was redacted, in the order of the text."""

    def __init__(self) -> None:
        self.secrets: list[str] = []
        self._within: list[int] = []  # the values that are being told
        self._told: dict[tuple[int, bool], _Told] = {}  # so that what is in many places is told once
        self._hidden = False  # within something that has the name of a secret

    def tell(self, value: Any, name: str = "") -> str:
        if type(value) in _NUMBERS and not self._hidden and not (name and is_secret_name(name)):
            return repr(value)
        was_hidden = self._hidden
        self._hidden = was_hidden or bool(name and is_secret_name(name))
        try:
            return self._short(self._plain(value) if isinstance(value, _PRINTED) else self._once(value))
        finally:
            self._hidden = was_hidden

    def _short(self, text: str) -> str:
        most = _BRIEF if self._within else _WHOLE
        return text if len(text) <= most else f"{text[: most // 2]}...#{digest(text)}"

    def _once(self, value: Any) -> str:
        if id(value) in self._within:
            return f"<{len(self._within) - self._within.index(id(value))} levels above>"
        key = id(value), self._hidden
        if key in self._told:
            self.secrets += self._told[key].secrets
            return self._told[key].text
        before = len(self.secrets)
        self._within.append(id(value))
        try:
            text = self._tell(value)
        finally:
            self._within.pop()
        if len(self._told) < _REMEMBERED:
            self._told[key] = _Told(value, self._short(text), self.secrets[before:])
        return text

    def _tell(self, value: Any) -> str:
        if isinstance(value, np.ndarray | np.generic) or is_tensor(value):
            return self._array(value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, list | tuple | set | frozenset | Mapping):
            return self._collection(value)
        if moves_on(value):
            return self.tell(type(value)) + UNKNOWN
        return self._small(value) or function_text(value, self.tell) or self._buffer(value) or self._object(value)

    def _array(self, value: Any) -> str:
        if isinstance(value, np.generic):
            return f"{value.dtype}({value!r})"
        return (
            array_text(value, self.tell) if isinstance(value, np.ndarray) else tensor_text(value) or self._object(value)
        )

    def _small(self, value: Any) -> str | None:
        """What Python has in all versions, and shows in different ways."""
        if isinstance(value, os.PathLike):
            return f"{type(value).__name__}({self.tell(os.fspath(value))})"
        if isinstance(value, functools.partial):
            return self._call(self.tell(value.func), _named(value.func, value.args), value.keywords)
        if isinstance(value, ModuleType):
            return f"module {value.__name__}"
        if isinstance(value, range | slice):
            return f"{type(value).__name__}({', '.join(map(self.tell, (value.start, value.stop, value.step)))})"
        return None

    def _plain(self, value: Any) -> str:
        if isinstance(value, Enum):
            return f"{self.tell(type(value))}.{value.name}={self.tell(value.value)}"
        if isinstance(value, str | bytes):
            text = self._string(value)
        elif self._hidden and isinstance(value, _PLAIN) and not isinstance(value, bool):
            text = self._hide(repr(value))
        else:
            text = repr(value)
        if type(value) in _EXACT:
            return text
        return f"{self.tell(type(value))}({text}{self._attributes(value)})"

    def _string(self, value: str | bytes) -> str:
        plain = str.__str__(value) if isinstance(value, str) else value.decode("latin-1")
        told = redacted_string(plain, is_secret=self._hidden)
        if told == plain:
            return str.__repr__(value) if isinstance(value, str) else bytes.__repr__(value)
        self._hide(plain)
        return repr(told)

    def _hide(self, secret: str) -> str:
        self.secrets.append(secret)
        return REDACTED

    def _buffer(self, value: Any) -> str | None:
        text = buffer_text(value)
        return self._hide(text) if text is not None and self._hidden else text

    def _call(self, name: str, args: list[tuple[str, Any]], kwargs: Mapping[str, Any]) -> str:
        told = [self.tell(value, name) for name, value in args]
        told += [f"{key}={self.tell(value, key)}" for key, value in kwargs.items()]
        return f"{name}({', '.join(told)})"

    def _collection(self, values: Any) -> str:
        if isinstance(values, Mapping):
            told = [f"{self.tell(key)}: {self.tell(value, _name_of(key))}" for key, value in values.items()]
        elif isinstance(values, set | frozenset):
            told = self._in_order(values)
        else:
            told = [self.tell(value) for value in values]
        return f"{type(values).__name__}({', '.join(told)}{self._attributes(values)})"

    def _in_order(self, values: Any) -> list[str]:
        """Elements of a set, which has another order in each process; so do their secrets."""
        before, told = self.secrets, []
        for value in values:
            self.secrets = []
            told.append((self.tell(value), self.secrets))
        told.sort()
        self.secrets = before + [secret for _, secrets in told for secret in secrets]
        return [text for text, _ in told]

    def _attributes(self, value: Any) -> str:
        """Of an object of a class derived from a container or string: what it has beside its contents."""
        kept = dict(getattr(value, "__dict__", ()))
        if isinstance(value, defaultdict):
            kept["default_factory"] = value.default_factory
        if not kept:
            return ""
        arguments, all_there = arguments_of(value)
        return "".join(f", {told}" for told in self._kept(arguments if all_there else kept))

    def _class(self, cls: type) -> str:
        """By name. One that a function has made also by what is in it, since the function may make many."""
        name = f"{cls.__module__}:{cls.__qualname__}"
        if MADE not in cls.__qualname__:  # though the name may lead to another one by now, as in a notebook
            return name
        told = [self.tell(base) for base in cls.__bases__ if base is not object]
        told += [f"{key}={self.tell(value, key)}" for key, value in class_contents(cls)]
        return f"{name}({', '.join(told)})"

    def _object(self, thing: Any) -> str:
        """By the arguments of its constructor that it keeps by name; what does not keep them so, by all that it keeps.

        A dataset need not keep all of them: what it keeps under another name is no part of what the cache is of.
        """
        arguments, all_there = arguments_of(thing)
        is_dataset = len(self._within) == 1 and not any(map(is_made_in_c, type(thing).__mro__[:-1]))
        if (arguments or all_there) if is_dataset else (arguments and all_there):
            return self._call(self.tell(type(thing)), [], arguments)
        state = reduced(thing)
        if state is None:
            return self._call(self.tell(type(thing)), [], arguments) if arguments else self.tell(type(thing)) + UNKNOWN
        told = [f"{name}={self.tell(value, name)}" for name, value in arguments.items()]
        if state.maker is not None:
            told.append(self._call(self.tell(state.maker), [("", one) for one in state.args], {}))
        known = {*arguments, *(f"_{name}" for name in arguments)}
        told += self._kept({name: value for name, value in state.kept.items() if name not in known})
        told += [self.tell(part) for part in state.parts]
        return f"{self.tell(type(thing))}({', '.join(told)})"

    def _kept(self, attributes: Mapping[str, Any]) -> Iterator[str]:
        """Attributes, but for files and the like, which may be open or not, and random generators, which move on."""
        for name, value in sorted(attributes.items(), key=operator.itemgetter(0)):
            if value is not None and not moves_on(value):
                text = self.tell(value, name)
                if not text.endswith(UNKNOWN):
                    yield f"{name}={text}"


def _named(function: Any, args: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """Arguments by position, each with the name that the function has for it."""
    names = parameters(function) or ()
    return [(name or "", value) for name, value in itertools.zip_longest(names[: len(args)], args)]


def _name_of(key: Any) -> str:
    return key if isinstance(key, str) else key.decode("latin-1") if isinstance(key, bytes) else ""
