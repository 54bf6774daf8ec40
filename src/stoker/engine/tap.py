"""The tap: all that the machine is told, and all that it says, can be listened to here; the end of it is remembered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from stoker.engine.machine import Machine
from stoker.engine.messages import Deliver, Event, Finished, Instruction
from stoker.errors import BugError
from stoker.plan import Run

Listener = Callable[[int, Event | Instruction], object]

_KEPT = 300  # messages: some fifty runs
_SHOWN = 200  # characters of a message: a death may have a long stack


class Tap:
    """Stands between the executor and the machine.

    The last messages are remembered, so that a ``BugError`` can tell how it came about: events with their time, each
    followed by the instructions that came of it. Answers are remembered without their results, which would keep alive
    what the user has let go of: for ``Finished`` stands its ticket, for ``Deliver`` its run.

    Args:
        machine: That decides.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._kept: deque[Any] = deque(maxlen=_KEPT)
        self._keep, self._handlers = self._kept.append, machine.handlers  # found once, since each event passes here
        self._listener: Listener | None = None

    def listen(self, listener: Listener | None) -> None:
        """From now on that is called with each event and instruction, and the time in nanoseconds of
        ``perf_counter_ns``, in the thread that takes batches. None: nobody is.

        It must not raise, nor keep ``Finished`` and ``Deliver``: their results hold what the user may have let go of.
        """
        self._listener = listener

    def start(self) -> list[Instruction]:
        """What the machine says at first."""
        steps = self._machine.start()
        self._kept.extend(steps)
        return steps

    def decide(self, event: Event) -> list[Instruction]:
        """What the machine says to an event."""
        now = perf_counter_ns()
        self._keep((now, event if type(event) is not Finished else event.answer.ticket))
        if self._listener is not None:
            self._listener(now, event)
        try:
            steps = self._handlers[type(event)](event)
        except BugError as error:
            error.add_note(self.story())
            raise
        for step in steps:
            self._keep(step if type(step) is not Deliver else step.run)
            if self._listener is not None:
                self._listener(now, step)
        return steps

    def story(self) -> str:
        """All that is remembered, oldest first, a line each; of events when they came, in ms before the last one."""
        end = max((entry[0] for entry in self._kept if type(entry) is tuple), default=0)
        lines = [f"stoker: the last {len(self._kept)} events, each with the instructions that came of it:"]
        return "\n".join(lines + [_told(entry, end)[:_SHOWN] for entry in self._kept])


def _told(entry: Any, end: int) -> str:
    if type(entry) is not tuple:
        return f"    Deliver(run={entry})" if isinstance(entry, Run) else f"    {entry}"
    time, event = entry
    return f"{(time - end) / 1e6:.3f} ms: " + (f"Finished(ticket={event})" if isinstance(event, int) else f"{event}")
