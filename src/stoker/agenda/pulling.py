"""Pulling: asking for the next unit where that may be slow, be interrupted, or fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter_ns

from stoker.interrupts import Hand, is_interrupt, let_in
from stoker.plan import Run

_QUICK_NS = 1_000_000


class Pulling:
    """Gives runs one by one, and None where it is better to look first at what has happened meanwhile.

    Args:
        ahead: Not only when the consumer waits for the very next.
    """

    def __init__(self, *, ahead: bool) -> None:
        self._ahead = ahead
        self.interrupt: BaseException | None = None  # that came while the next was waited for, and is to be raised
        self.error: Exception | None = None  # that has ended it

    def runs(self, pull: Callable[[Hand[Run]], None]) -> Iterator[Run | None]:
        """None after one that was slow to come, and if an interrupt came while it was waited for.

        ``pull`` puts the next run into a hand, which stays empty if there are no more. Whatever it notes of that, it
        notes at once, so that it can be called again after an interrupt.
        """
        is_slow, hand = False, Hand[Run]()
        while True:
            if is_slow or not self._ahead:
                yield None
            began = perf_counter_ns()
            try:
                with let_in():
                    if hand.held is None:  # else it came just before an interrupt
                        pull(hand)
            except BaseException as error:
                if is_interrupt(error):
                    self.interrupt, is_slow = error, True
                    continue
                if not isinstance(error, Exception):
                    raise
                self.error = error
                return
            run, hand.held = hand.held, None
            if run is None:
                return
            yield run
            is_slow = perf_counter_ns() - began > _QUICK_NS

    def raise_error(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error
