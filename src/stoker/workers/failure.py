"""Errors of the user's code: told in words, and carried over a process border with their type and attributes.

An exception travels in pieces: its class, its arguments, its attributes, each pickled by itself. It is put together
again with the constructor of the built-in exception that it derives from, so none of its own code runs: neither
its ``__init__``, which may want other arguments, nor its ``__reduce__``, which may do anything. A piece that
cannot travel, or that the reader cannot load, is replaced by its text; where it is the class, the next base class that
the reader knows takes its place. Reading an error never raises one.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import pickle
import traceback
from dataclasses import dataclass, field, replace
from typing import Any, cast

from stoker.errors import add_note, message_of

_MOST_BYTES = 2**20  # of one argument or attribute: an error must not carry half of the dataset
_MOST_TEXT = 2**16  # characters of a message
_MOST_STORY = 2**18  # and of a traceback
_DEEPEST = 8  # causes of causes, groups in groups
_MOST_EXCEPTIONS = 1000  # in all groups together
_PLAIN = (str, bytes, int, float, bool, type(None))


def pack_error(error: BaseException) -> bytes:
    """The error and its traceback as bytes that ``unpack_error`` will surely be able to read."""
    remote = f"stoker: the worker's own traceback (process {os.getpid()}):\n{story(error).rstrip()}"
    return pickle.dumps((_Packing().pieces(error, _DEEPEST), remote), 5)


def unpack_error(packed: bytes | memoryview) -> BaseException:
    pieces, remote = pickle.loads(packed)
    error = _together(pieces)
    add_note(error, remote)
    return error


def ordinary(error: BaseException) -> Exception:
    """A StopIteration out of ``dataset[i]`` would silently end the consumer's loop, a SystemExit its program."""
    kind = type(error)  # which isinstance would ask of the error itself, and it may fail
    if issubclass(kind, Exception) and not issubclass(kind, StopIteration | StopAsyncIteration):
        return cast(Exception, error)
    told = RuntimeError(f"dataset or collate raised {_repr(error)}")
    told.__cause__ = error
    return told


def error_line(error: BaseException) -> str:
    """Type and message, as they are logged and written down."""
    return f"{type(error).__name__}: {_text(error)}"


def story(error: BaseException) -> str:
    """Its traceback, and those of its causes."""
    try:
        told = "".join(traceback.format_exception(error))
    except BaseException:  # of its own __getattr__ and the like
        told = error_line(error)
    return _brief(told, _MOST_STORY)


@dataclass(frozen=True)
class _Pieces:
    """An exception taken apart. Plain bytes and strings, so that reading this much imports nothing.

    Attributes:
        name: Of its class.
        text: What ``str`` gives.
        classes: The class and its bases, pickled: the first that can be loaded is the one.
        args: What the constructor of its built-in base class is to be given.
        attributes: What else it has.
        whole: As it wants to be pickled itself, where the pieces do not give the same.
        members: Of a group.
        cause, context, suppress_context: As Python has them; a context that is the cause comes but once.
    """

    name: str
    text: str
    classes: tuple[bytes, ...] = ()
    args: tuple[bytes | _Pieces, ...] = ()
    attributes: dict[str, bytes | _Pieces] = field(default_factory=dict)
    whole: bytes | None = None
    members: tuple[_Pieces, ...] | None = None
    cause: _Pieces | None = None
    context: _Pieces | None = None
    suppress_context: bool = False


class _Packing:
    """Takes one error apart, and all that hang on it, up to a limit."""

    def __init__(self) -> None:
        self._left = _MOST_EXCEPTIONS

    def pieces(self, error: BaseException, depth: int) -> _Pieces:
        words = _Pieces(_name(type(error)), _text(error))
        self._left -= 1
        if depth <= 0 or self._left < 0:
            return words
        try:
            return self._checked(self._apart(error, words, depth), error)
        except BaseException:  # not even its class can be asked for anything
            return words

    def _apart(self, error: BaseException, words: _Pieces, depth: int) -> _Pieces:
        args, state = _content(error)
        members = None
        if isinstance(error, BaseExceptionGroup):
            args, members = args[:1], tuple(self.pieces(one, depth - 1) for one in error.exceptions)
        cause, context = error.__cause__, error.__context__
        return replace(
            words,
            classes=tuple(packed for base in type(error).__mro__[:-1] if (packed := _dumped(base)) is not None),
            args=tuple(self._value(value, depth) for value in args),
            attributes={name: self._value(value, depth) for name, value in state.items()},
            members=members,
            cause=None if cause is None else self.pieces(cause, depth - 1),
            context=None if context is None or context is cause else self.pieces(context, depth - 1),
            suppress_context=error.__suppress_context__,
        )

    def _value(self, value: Any, depth: int) -> bytes | _Pieces:
        """Itself, if it can travel, or what it looks like."""
        if isinstance(value, BaseException):
            return self.pieces(value, depth - 1)
        packed = _dumped(value)
        if packed is None or not (type(value) in _PLAIN or _survives(packed, type(value))):
            packed = pickle.dumps(_brief(value if isinstance(value, str) else _repr(value)), 5)
        return packed

    def _checked(self, pieces: _Pieces, error: BaseException) -> _Pieces:
        """The same, if they give the error back; else with what does, or without its class."""
        again = _together(pieces)
        if type(again) is type(error) and _text(again) == pieces.text:
            return pieces
        whole = _dumped(error)
        if whole is not None and _survives(whole, type(error), pieces.text):
            return replace(pieces, whole=whole)
        if type(again) is type(error) and (_speaks(again) or not _speaks(error)):
            return pieces
        return replace(pieces, classes=tuple(one for one in pieces.classes if _loaded(one) is not type(error)))


def _together(pieces: _Pieces) -> BaseException:
    """Never raises anything, but for Ctrl-C."""
    if pieces.whole is not None:
        whole = _loaded(pieces.whole)
        if isinstance(whole, BaseException):
            return whole
    error = _of_its_class(pieces) or _of_a_base(pieces)
    with contextlib.suppress(Exception):
        error.__cause__ = None if pieces.cause is None else _together(pieces.cause)
        error.__context__ = error.__cause__ if pieces.context is None else _together(pieces.context)
        error.__suppress_context__ = pieces.suppress_context
    return error


def _of_its_class(pieces: _Pieces) -> BaseException | None:
    cls: Any = _loaded(pieces.classes[0]) if pieces.classes else None
    if not _is_exception(cls) or _name(cls) != pieces.name:
        return None
    args = [_value(one) for one in pieces.args]
    if pieces.members is not None:
        args.append([_together(one) for one in pieces.members])
    try:
        error = _made(cls, args)
    except Exception:  # of an extension, whose instances only it can make
        return None
    _give_attributes(error, pieces)
    return error


def _of_a_base(pieces: _Pieces) -> BaseException:
    """The nearest one that the reader has, and that says what it is."""
    words = f"{pieces.name.rpartition('.')[2]}: {pieces.text}"
    for packed in pieces.classes:
        cls = _loaded(packed)
        if not _is_exception(cls) or _name(cls) == pieces.name:
            continue
        with contextlib.suppress(Exception):
            error = _made(cls, [words])
            if _text(error) == words:
                _give_attributes(error, pieces)
                return error
    return RuntimeError(words)


def _made(cls: type[BaseException], args: list[Any]) -> BaseException:
    """By its built-in base's constructor only."""
    base = _built_in(cls)
    error: BaseException = base.__new__(cls, *args)
    base.__init__(error, *args)
    return error


def _give_attributes(error: BaseException, pieces: _Pieces) -> None:
    for name, value in pieces.attributes.items():
        with contextlib.suppress(Exception):
            object.__setattr__(error, name, _value(value))


def _value(piece: bytes | _Pieces) -> Any:
    return _together(piece) if isinstance(piece, _Pieces) else _loaded(piece)


def _content(error: BaseException) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments and attributes, also those that are no entries of its ``__dict__``, such as an OSError's file."""
    reduced: Any = _built_in(type(error)).__reduce__(error)
    _, args, *rest = reduced
    state = dict(rest[0] or {}) if rest else {}
    for base in type(error).__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__"):
                with contextlib.suppress(AttributeError):
                    state[name] = object.__getattribute__(error, name)
    return args, state


def _built_in(cls: type[BaseException]) -> Any:
    """The one that decides how its instances lie in memory."""
    base: Any = cls
    while getattr(builtins, base.__name__, None) is not base:
        base = base.__base__
    return base


def _is_exception(cls: Any) -> bool:
    return isinstance(cls, type) and issubclass(cls, BaseException)


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _text(error: BaseException) -> str:
    return _brief(message_of(error))


def _speaks(error: BaseException) -> bool:
    try:
        str(error)
    except BaseException:
        return False
    return True


def _repr(value: Any) -> str:
    try:
        return _brief(repr(value))
    except BaseException:
        return f"<{type(value).__name__} whose repr() failed>"


def _brief(text: str, most: int = _MOST_TEXT) -> str:
    """Its beginning and its end, if it is too long."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} ... ({len(text) - 2 * half} characters left out) ... {text[-half:]}"


class _Bounded(io.BytesIO):
    def write(self, data: Any) -> int:
        if self.tell() + memoryview(data).nbytes > _MOST_BYTES:
            raise OverflowError(f"more than {_MOST_BYTES} bytes")
        return super().write(data)


def _dumped(value: Any) -> bytes | None:
    """By reference where that can be, so that classes stay the reader's own, and by value where not; None: it can't."""
    try:
        stream = _Bounded()
        pickle.Pickler(stream, 5).dump(value)
        return stream.getvalue()
    except OverflowError:
        return None
    except BaseException:
        import cloudpickle  # seldom needed, and slow to import

        try:
            stream = _Bounded()
            cloudpickle.Pickler(stream, 5).dump(value)
            return stream.getvalue()
        except BaseException:
            return None


def _survives(packed: bytes, cls: type, text: str | None = None) -> bool:
    try:
        again = pickle.loads(packed)
        words = None if text is None else _text(again)
        return type(again) is cls and words == text
    except BaseException:
        return False


def _loaded(packed: bytes) -> Any:
    """None if it can't be loaded here: a class whose module only a worker can import."""
    try:
        return pickle.loads(packed)
    except KeyboardInterrupt:  # Ctrl-C: what travels was tried, in a worker that hears of none
        raise
    except BaseException:
        return None
