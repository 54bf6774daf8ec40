"""Signals as processes of ours need them, whatever they have inherited, or an import has made of them.

A mask and what is ignored survive a fork and an exec: a loader in a thread that blocks all signals would have workers
that nobody can end.
"""

from __future__ import annotations

import signal

from stoker.interrupts import put_handlers_back

_CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT}
_TIMERS = {signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF}
# Others may be blocked on purpose: SIGUSR1, which a batch system sends to all processes, would end a worker.
_NEEDED = _CRASHES | _TIMERS | {signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE}


def let_signals_through() -> None:
    """Unblocks those that end a worker, tell of its crash, or interrupt its code."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _NEEDED)


def reset_signals() -> None:
    """Of the main thread: Ctrl-C is the consumer's business, and a signal that shall end this process does so."""
    put_handlers_back()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGVTALRM):
        signal.signal(number, signal.SIG_DFL)
    let_signals_through()
