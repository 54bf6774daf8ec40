"""Interrupts: exceptions that the handler of a signal raises in the main thread, between any two calls. Ctrl-C is one.

What holds here, in every CPython so far: a handler runs only as a function begins, after a call, and where a loop
jumps back; nowhere else, and in the main thread alone. So lines that only load, compare and store, without a call,
are done all or not at all, and no other thread comes in between either. And what runs in a thread of its own is
never interrupted. The locks and conditions of ``threading`` are not safe: an interrupt within ``Condition.__enter__``
leaves it locked for ever, and one within ``Thread.join`` or ``is_alive`` (before Python 3.13) makes a thread that is
running count as ended.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import contextlib
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from time import monotonic
from types import FrameType
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# Windows has none of them.
_TIMERS = {getattr(signal, name, None) for name in ("SIGALRM", "SIGVTALRM", "SIGPROF")}
_UNHEARD_S = 1.0  # that a signal may go unheard: see ``pieces``
_PUT_OFF_S = 10.0  # that handlers are put off at most: by then something hangs, and the user wants to end it


def pieces(timeout: float | None) -> Iterator[float]:
    """A wait for so many seconds (None: for ever), to be done piece by piece.

    A handler runs once the call that waits has come back. A signal does not end that call if it arrives just before,
    or in another thread: then it would go unheard for as long as nothing else happens.
    """
    while timeout is None or timeout > _UNHEARD_S:
        yield _UNHEARD_S
        timeout = None if timeout is None else timeout - _UNHEARD_S
    yield max(timeout, 0.0)


class Hand(Generic[T]):
    """Where something lies from when it was taken off one side until the other has it. One line fills or empties it."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held: T | None = None


class Bell:
    """Wakes the one who waits for something. It may wake without a reason: look whether it is there, and wait again.

    Whoever looks before waiting misses nothing, also after an interrupt. It is a lock that is free while it rings: a
    ``SimpleQueue``, before Python 3.13, may wait for ever if its timeout passes while it is woken for nothing.
    """

    def __init__(self) -> None:
        self._silent = _thread.allocate_lock()
        self._silent.acquire()
        self._is_for_all = False

    def ring(self) -> None:
        """By whoever has just made it true. Rung once or often is the same."""
        if self._silent.locked():
            with contextlib.suppress(RuntimeError):  # somebody else has just done so
                self._silent.release()

    def ring_for_all(self) -> None:
        """For the last time: whoever waits now, and there may be several, need not wait any more."""
        self._is_for_all = True
        self.ring()

    def wait(self, timeout: float | None = None) -> None:
        for seconds in pieces(timeout):
            if self._is_for_all or self._silent.acquire(timeout=seconds):
                break
        if self._is_for_all:
            self.ring()  # for the next one


class Background:
    """A thread that can be started and waited for by somebody who is interrupted at any point of it.

    Args:
        work: What it does.
        name: Of the thread.
    """

    def __init__(self, work: Callable[[], object], name: str) -> None:
        self._work = work
        self._bell = Bell()
        self._begins: dict[str, bool] = {}  # "is": whether it does, decided once and by whoever is first
        self._failure: BaseException | None = None
        self.has_begun = self._has_ended = False
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """By whoever holds it already, and so can end it if an interrupt comes in between."""
        _thread.start_new_thread(self._start, ())  # since Thread.start waits for a condition
        while not (self.has_begun or self._has_ended):
            self._bell.wait()
        if self._failure is not None:
            raise self._failure

    def is_here(self) -> bool:
        """Whether it is that thread that asks."""
        return self.thread.ident == threading.get_ident()

    def join(self, timeout: float | None = None) -> bool:
        """Waits for its end, so many seconds at most. False where it goes on, or is the very thread that asks.

        One that has not begun by then never does.
        """
        if not self._begins.setdefault("is", False):
            return True
        if self.is_here():
            return False
        deadline = None if timeout is None else monotonic() + timeout
        while not self._has_ended:
            left = None if deadline is None else deadline - monotonic()
            if left is not None and left <= 0:
                return False
            self._bell.wait(left)
        self._leave()
        return True

    def _start(self) -> None:
        try:
            self.thread.start()
        except BaseException as error:  # no more threads may be made
            self._failure, self._has_ended = error, True
            self._bell.ring_for_all()

    def _run(self) -> None:
        if not self._begins.setdefault("is", True):
            return
        self.has_begun = True
        self._bell.ring()
        try:
            self._work()
        finally:
            self._has_ended = True
            self._bell.ring_for_all()

    def _leave(self) -> None:
        """It has nothing left to do: a moment later it is gone."""
        try:
            if self._failure is None:
                self.thread.join()
        except RuntimeError as error:  # before Python 3.13: an interrupt as it was just going
            if error.__context__ is not None:
                raise error.__context__ from None


class _Deferral:
    """What is put off, in this process: its main thread alone can be interrupted, and has one of each handler."""

    def __init__(self) -> None:
        self.is_on = False
        self.replaced: list[int] = []  # signals whose handlers may be ours
        self.pending: set[int] = set()
        self.process = 0
        self.until = 0.0

    def begin(self, seconds: float = _PUT_OFF_S) -> bool:
        """Whether it was this call that began it."""
        if threading.get_ident() != threading.main_thread().ident:
            return False
        if self.is_on and monotonic() < self.until:
            return False  # one whose time is up puts nothing off any more: its end may have been interrupted
        try:
            self.is_on, self.process, self.until = True, os.getpid(), monotonic() + seconds
            for number in _NUMBERS:
                handler = _signal.getsignal(number)  # a tenth of the time of signal's, which makes an enum of it
                if callable(handler):
                    self.replaced.append(number)
                    _signal.signal(number, _Recorder(self, handler))
        except BaseException:
            self.is_on = False  # before any call: those that are installed let everything through
            raise
        return True

    def end(self) -> None:
        """What has come meanwhile comes now."""
        self.is_on = False  # from here on, an interrupt may keep us from going on, but from then on does no harm
        while self.replaced:
            handler = _signal.getsignal(self.replaced[-1])
            if isinstance(handler, _Recorder):  # else the user has installed another meanwhile
                _signal.signal(self.replaced[-1], handler.handler)
            self.replaced.pop()
        self._raise()

    def _raise(self) -> None:
        if self.pending:
            try:
                signal.raise_signal(self.pending.pop())
            finally:
                self._raise()


class _Recorder:
    """Stands in for the handler of a signal."""

    def __init__(self, deferral: _Deferral, handler: Any) -> None:
        self._deferral = deferral
        self.handler: Any = handler.handler if isinstance(handler, _Recorder) else handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        deferral = self._deferral
        if deferral.is_on and deferral.process == os.getpid() and monotonic() < deferral.until:
            deferral.pending.add(number)
        else:
            self.handler(number, frame)


_NUMBERS = sorted(signal.valid_signals())
_DEFERRAL = _Deferral()


class put_off:
    """Within it, handlers of signals wait until it ends: for what must not be broken off, by Ctrl-C for example.

    Not for ever, if it hangs. It does nothing outside of the main thread, the only one that handlers run in.

    Args:
        seconds: Signals that come later than that are let in.

    Example:
        >>> import stoker
        >>> numbers = (number for number in range(3))  # an exception that comes up in a generator ends it
        >>> with stoker.put_off():
        ...     print(next(numbers))
        0
    """

    def __init__(self, seconds: float = _PUT_OFF_S) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._is_mine = _DEFERRAL.begin(self._seconds)

    def __exit__(self, *_: object) -> None:
        if self._is_mine:
            _DEFERRAL.end()


def put_handlers_back() -> None:
    """In a child that was forked within ``put_off``: handlers are the user's own again, and nothing is pending."""
    _DEFERRAL.pending.clear()
    _DEFERRAL.end()


class let_in:
    """Within ``put_off``: what waits comes now, and what comes is not put off, until it ends."""

    def __enter__(self) -> None:
        self._is_mine = _DEFERRAL.is_on and threading.get_ident() == threading.main_thread().ident
        if self._is_mine:
            try:
                _DEFERRAL.end()
            except BaseException:
                _DEFERRAL.begin()
                raise

    def __exit__(self, *_: object) -> None:
        if self._is_mine:
            _DEFERRAL.begin()


def is_interrupt(error: BaseException) -> bool:
    """Whether it was raised by the handler of a signal, and by no code that it came out of."""
    return issubclass(type(error), KeyboardInterrupt) or signal_behind(error) is not None


def is_from_outside(error: BaseException, *, may_set_timers: bool = True) -> bool:
    """The same of what comes out of the user's code, which may have set a timer: what that raises is its own error."""
    if not may_set_timers or issubclass(type(error), KeyboardInterrupt):
        return is_interrupt(error)
    number = signal_behind(error)
    return number is not None and (number not in _TIMERS or not issubclass(type(error), Exception))


def signal_behind(error: BaseException) -> int | None:
    """The signal whose handler has raised it, or 0 if that can't be told; None if no handler has."""
    raised: Any = vars(BaseException)["__traceback__"].__get__(error)  # whatever its class makes of attributes
    handled = (_handled_in(frame) for frame, _ in traceback.walk_tb(raised))
    return next((number for number in handled if number is not None), None)


def _handled_in(frame: FrameType) -> int | None:
    """A handler is called with a number and the very frame that it interrupts, as nobody else is."""
    if frame.f_globals.get("__name__", "").startswith("stoker."):
        if frame.f_code is not _Recorder.__call__.__code__:  # of others, Python would keep what we look at
            return None
        return int(frame.f_locals["number"])
    interrupted, before = frame.f_back, None
    if interrupted is None:
        return None
    for value in frame.f_locals.values():
        for one in value if type(value) is tuple else (value,):
            if one is interrupted:  # by identity: an array would be compared element by element
                return int(before) if isinstance(before, int) else 0
            before = one
    return None
