"""The logging configuration of the consumer's process, in a form that travels, so that workers log as it does.

Levels, ``disabled``, ``propagate`` and filters of all loggers travel; of handlers, those that write to stdout, stderr
or a file, and ``NullHandler``. A file is appended to, also where the consumer has opened it anew. For a handler that
cannot travel (rich, a queue, a socket), the worker keeps one of the same class that the import of a library has made
there, or else writes to stderr, unless what is logged comes to stdout or stderr anyway. A filter that cannot travel
lets nothing pass, since it may be there to keep secrets; the consumer is told.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import logging
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from stoker.workers.late_imports import ImportWatch

log = logging.getLogger("stoker")

_ELSEWHERE = "elsewhere"  # the kind of a handler that cannot travel


@dataclass(frozen=True)
class Part:
    """A formatter, filter or factory of records. Unpickled when it is first used, as that may import a library."""

    pickled: bytes
    package: str

    @classmethod
    def of(cls, value: Any) -> Part | None:
        """None if it cannot travel."""
        import cloudpickle

        try:
            described = value if hasattr(value, "__module__") else type(value)
            return cls(cloudpickle.dumps(value), str(described.__module__).partition(".")[0])
        except Exception:
            return None

    def load(self, otherwise: Any) -> Any:
        try:
            return pickle.loads(self.pickled)
        except Exception:  # of a module that only the consumer can import
            return otherwise

    @property
    def is_at_hand(self) -> bool:
        return self.package in sys.modules


@dataclass(frozen=True)
class Handling:
    """One handler. ``kind``: "stdout", "stderr", "file", "rotated" (by the consumer), "null" or "elsewhere"."""

    kind: str
    name: str
    cls: str
    level: int
    formatter: Part | None = None
    filters: tuple[Part, ...] = ()
    file: str = ""
    encoding: str | None = None
    errors: str | None = None


@dataclass(frozen=True)
class LoggerState:
    """One logger. ``handlers``: their numbers."""

    name: str
    level: int
    propagate: bool
    disabled: bool
    filters: tuple[Part, ...]
    handlers: tuple[int, ...]
    is_imported: bool  # it is named after a package that the consumer has imported

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]

    @property
    def is_late(self) -> bool:
        """Whether this process may still come to import that package."""
        return self.is_imported and self.package not in sys.modules


@dataclass(frozen=True)
class LogSetup:
    """All of it. ``untouched``: loggers that are as they were made."""

    loggers: list[LoggerState]
    handlers: list[Handling]
    untouched: list[str]
    disabled_up_to: int
    level_names: dict[int, str]
    captures_warnings: bool
    factory: Part | None
    raises: bool
    made: dict[int, logging.Handler] = field(default_factory=dict, compare=False)  # in a worker,
    awaited: set[str] = field(default_factory=set, compare=False)  # which may not have imported these packages yet

    @classmethod
    def here(cls) -> LogSetup:
        root = logging.getLogger()
        numbers: dict[int, int] = {}
        handlers: list[Handling] = []
        loggers, untouched = [], []
        for logger in (root, *_named()):
            for handler in logger.handlers:
                if id(handler) not in numbers:
                    numbers[id(handler)] = len(handlers)
                    handlers.append(_handling(handler))
            if logger is not root and _is_untouched(logger):
                untouched.append(logger.name)
            else:
                loggers.append(_state(logger, tuple(numbers[id(handler)] for handler in logger.handlers)))
        factory = logging.getLogRecordFactory()
        return cls(
            loggers,
            handlers,
            untouched,
            root.manager.disable,
            {level: logging.getLevelName(level) for level in logging.getLevelNamesMapping().values()},
            getattr(logging, "_warnings_showwarning", None) is not None,
            None if factory is logging.LogRecord else Part.of(factory),
            logging.raiseExceptions,
        )

    def apply(self) -> None:
        """Makes it that of this process. May be called again, when more was imported."""
        logging.disable(self.disabled_up_to)
        logging.raiseExceptions = self.raises
        logging.captureWarnings(self.captures_warnings)
        for level, name in self.level_names.items():
            logging.addLevelName(level, name)
        if self.factory is not None:
            logging.setLogRecordFactory(_late(self.factory, logging.LogRecord))
        for name in self.untouched:
            if name in logging.root.manager.loggerDict:
                self._set(LoggerState(name, logging.NOTSET, True, False, (), (), is_imported=False))
        for state in self.loggers:
            self._set(state)
        for package in {state.package for state in self.loggers if state.is_late} - self.awaited:
            self.awaited.add(package)
            ImportWatch(package, functools.partial(self._set_all, package)).start()

    def _set_all(self, package: str) -> None:
        """Those of a package that was just imported, and may have configured its loggers, as it did in the consumer."""
        for state in self.loggers:
            if state.package == package:
                self._set(state)

    def _set(self, state: LoggerState) -> None:
        logger = logging.getLogger(state.name or None)
        logger.setLevel(state.level)
        logger.propagate, logger.disabled = state.propagate, state.disabled
        logger.filters[:] = [_late(part, _nothing_passes) for part in state.filters]
        if not state.is_late:  # else the import will add handlers that are the same as these
            self._attach(logger, state)

    def _attach(self, logger: logging.Logger, state: LoggerState) -> None:
        attached: list[logging.Handler] = []
        for number in state.handlers:
            handling = self.handlers[number]
            if handling.kind != _ELSEWHERE:
                attached.append(self._handler(number))
                continue
            own = [handler for handler in logger.handlers if _class(handler) == handling.cls]
            if own:
                attached += [handler for handler in own if handler not in attached]
            elif not self._comes_to_the_terminal(state):
                attached.append(self._handler(number))
        logger.handlers[:] = attached

    def _handler(self, number: int) -> logging.Handler:
        if number not in self.made:
            self.made[number] = _made(self.handlers[number])
        return self.made[number]

    def _comes_to_the_terminal(self, state: LoggerState) -> bool:
        """Whether what is logged there is written to stdout or stderr by some handler that has travelled."""
        states = {one.name: one for one in self.loggers}
        names = [state.name]
        while names[-1] and states.get(names[-1], state).propagate:
            names.append(names[-1].rpartition(".")[0])
        kinds = {self.handlers[number].kind for name in names if name in states for number in states[name].handlers}
        return bool(kinds & {"stdout", "stderr"})


def _named() -> Iterator[logging.Logger]:
    for logger in list(logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            yield logger


def _is_untouched(logger: logging.Logger) -> bool:
    return not (logger.level or logger.handlers or logger.filters or logger.disabled) and logger.propagate


def _state(logger: logging.Logger, handlers: tuple[int, ...]) -> LoggerState:
    name = "" if logger is logging.root else logger.name
    is_imported = name.partition(".")[0] in sys.modules
    return LoggerState(
        name, logger.level, logger.propagate, logger.disabled, _parts(logger.filters), handlers, is_imported
    )


def _parts(filters: list[Any]) -> tuple[Part, ...]:
    return tuple(_filter(one) for one in filters)


def _filter(given: Any) -> Part:
    part = Part.of(given)
    if part is None:
        log.warning(
            "the log filter %s cannot be pickled, so worker processes log nothing that would go through it. "
            "Make it picklable, or set up logging in the workers with init=",
            type(given).__qualname__,
        )
    return part or Part(b"", "")


def _class(handler: logging.Handler) -> str:
    return f"{type(handler).__module__}.{type(handler).__qualname__}"


def _handling(handler: logging.Handler) -> Handling:
    kind, file = _kind(handler)
    return Handling(
        kind,
        handler.get_name() or "",
        _class(handler),
        handler.level,
        None if handler.formatter is None or kind == _ELSEWHERE else Part.of(handler.formatter),
        _parts(handler.filters),
        file,
        getattr(handler, "encoding", None) if file else None,
        getattr(handler, "errors", None) if file else None,
    )


def _kind(handler: logging.Handler) -> tuple[str, str]:
    """And the file, if it writes to one."""
    if isinstance(handler, logging.FileHandler):
        handlers = sys.modules.get("logging.handlers")
        is_rotated = handlers and isinstance(handler, handlers.BaseRotatingHandler | handlers.WatchedFileHandler)
        if _is_appended_to(handler):
            return "rotated" if is_rotated else "file", handler.baseFilename
        return _ELSEWHERE, ""
    if isinstance(handler, logging.StreamHandler):
        return _stream_name(handler.stream), ""
    return "null" if isinstance(handler, logging.NullHandler) else _ELSEWHERE, ""


def _is_appended_to(handler: logging.FileHandler) -> bool:
    """Makes it so where it is not: else the consumer would write over what its workers have written."""
    if "a" in handler.mode:
        return True
    try:
        stream: Any = handler.stream
        fd = stream.fileno()
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_APPEND)
        return True
    except (AttributeError, OSError, ValueError):  # not open yet: it would be emptied when it is
        return False


def _stream_name(stream: Any) -> str:
    if stream is sys.stderr or stream is sys.__stderr__:
        return "stderr"
    if stream is sys.stdout or stream is sys.__stdout__:
        return "stdout"
    with contextlib.suppress(Exception):
        return {1: "stdout", 2: "stderr"}.get(stream.fileno(), _ELSEWHERE)
    return _ELSEWHERE


def _made(handling: Handling) -> logging.Handler:
    made: logging.Handler
    if handling.kind == "null":
        made = logging.NullHandler()
    elif handling.kind in ("file", "rotated"):
        from logging.handlers import WatchedFileHandler  # it follows a file that the consumer rotates

        cls = logging.FileHandler if handling.kind == "file" else WatchedFileHandler
        made = cls(handling.file, "a", handling.encoding, delay=True, errors=handling.errors)
    else:
        made = logging.StreamHandler(sys.stdout if handling.kind == "stdout" else sys.stderr)
    made.setLevel(handling.level)
    if handling.name:
        made.set_name(handling.name)
    if handling.kind == _ELSEWHERE:
        made.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
    elif handling.formatter is not None:
        made.setFormatter(_formatter(handling.formatter))
    for part in handling.filters:
        made.addFilter(_late(part, _nothing_passes))
    return made


def _formatter(part: Part) -> logging.Formatter:
    if not part.is_at_hand:
        return _LateFormatter(part)
    found = part.load(None)
    return found if isinstance(found, logging.Formatter) else logging.Formatter(logging.BASIC_FORMAT)


class _LateFormatter(logging.Formatter):
    """Stands in for one whose library is not loaded."""

    def __init__(self, part: Part) -> None:
        super().__init__()
        self._part = part
        self._true: logging.Formatter | None = None

    def format(self, record: logging.LogRecord) -> str:
        if self._true is None:
            self._true = self._part.load(logging.Formatter(logging.BASIC_FORMAT))
        assert self._true is not None
        return self._true.format(record)


def _late(part: Part, otherwise: Any) -> Callable[..., Any]:
    """A function that does what the part does: a filter, or a factory of records."""
    found: list[Any] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        if not found:
            found.append(part.load(otherwise))
        (true,) = found
        return getattr(true, "filter", true)(*args, **kwargs)

    return call


def _nothing_passes(record: logging.LogRecord) -> bool:
    return False
