"""Whatever a program does with its signals, a worker's death is noticed, and workers end when they are told to."""

from __future__ import annotations

import pytest

from tests.lifecycle.scripts import run, write

STARTS = ("nursery", "fork", "spawn")

# Sample 5 ends its worker the first time.
FRAGILE = """
import os, signal

AT_IMPORT

class Fragile:
    def __init__(self, folder):
        self.file = os.path.join(folder, "died")

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 5 and not os.path.exists(self.file):
            open(self.file, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return index
"""
TRAIN = """
import logging, os, signal, sys, threading, fragile, stoker
logging.getLogger("stoker").setLevel(logging.ERROR)

def train():
    with stoker.Loader(fragile.Fragile(sys.argv[1]), 2, workers=stoker.Processes(2, start=START)) as loader:
        print([int(k) for batch in loader for k in batch])

def reap(*_):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass

BEFORE
train()
"""
BLOCKED = "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())"
REAPER = """
def reap(*_):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass

signal.signal(signal.SIGCHLD, reap)
"""
IN_PROGRAM = {
    "blocks all": BLOCKED,
    "ignores SIGCHLD": "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    "waits for all children": "signal.signal(signal.SIGCHLD, reap)",
}
IN_MODULE = {
    "blocks all": BLOCKED,
    "ignores SIGCHLD": "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    "waits for all children": REAPER,
    "has a wakeup descriptor": "signal.set_wakeup_fd(os.open('/dev/null', os.O_WRONLY | os.O_NONBLOCK))",
}


def outcome(tmp_path, start: str, before: str = "", at_import: str = "") -> tuple[int, str, str]:
    train = TRAIN.replace("START", repr(start)).replace("BEFORE", before)
    write(tmp_path, {"fragile.py": FRAGILE.replace("AT_IMPORT", at_import), "train.py": train})
    return run(tmp_path, ["train.py", str(tmp_path)])


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("what", IN_PROGRAM)
def test_a_death_is_noticed_in_a_program_that(what, start, tmp_path):
    assert outcome(tmp_path, start, before=IN_PROGRAM[what]) == (0, "[0, 1, 2, 3, 4, 5, 6, 7]\n", "")


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("what", IN_MODULE)
def test_a_death_is_noticed_if_the_module_of_the_dataset(what, start, tmp_path):
    assert outcome(tmp_path, start, at_import=IN_MODULE[what]) == (0, "[0, 1, 2, 3, 4, 5, 6, 7]\n", "")


@pytest.mark.parametrize("start", STARTS)
def test_a_death_is_noticed_in_a_thread_that_blocks_all_signals(start, tmp_path):
    before = f"""
def blocked():
    {BLOCKED}
    train()

thread = threading.Thread(target=blocked)
thread.start()
thread.join()
sys.exit()
"""
    assert outcome(tmp_path, start, before=before) == (0, "[0, 1, 2, 3, 4, 5, 6, 7]\n", "")


MASKED = """
import os, signal, sys, stoker
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGVTALRM, signal.SIG_IGN)
signal.signal(signal.SIGUSR1, lambda *_: None)

class Signals:
    def __len__(self):
        return 2

    def __getitem__(self, index):
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        needed = {signal.SIGTERM, signal.SIGVTALRM, signal.SIGALRM, signal.SIGCHLD, signal.SIGSEGV}
        return f"{sorted(blocked & needed)} {signal.SIGUSR1 in blocked} {signal.getsignal(signal.SIGTERM)!r}"

with stoker.Loader(Signals(), 2, workers=stoker.Processes(1, start=sys.argv[1])) as loader:
    for batch in loader:
        print(batch[0])
"""


@pytest.mark.parametrize("start", STARTS)
def test_workers_hear_the_signals_that_end_them_whatever_the_program_blocks_or_ignores(start, tmp_path):
    """Others stay blocked: SIGUSR1, which a batch system sends to all processes of a job, would end them."""
    write(tmp_path, {"train.py": MASKED})
    assert run(tmp_path, ["train.py", start]) == (0, "[] True <Handlers.SIG_DFL: 0>\n", "")


HELD = """
import os, signal, time, stoker
from stoker.interrupts import put_off

def handle(number, frame):
    raise TimeoutError(signal.Signals(number).name)

signal.signal(signal.SIGALRM, handle)
for number in (signal.SIGINT, signal.SIGALRM):
    try:
        with put_off():
            with put_off():
                os.kill(os.getpid(), number)
            print("inside")
    except (KeyboardInterrupt, TimeoutError) as error:
        print(repr(error))
    print(signal.getsignal(number) in (handle, signal.default_int_handler))
"""


def test_an_interrupt_that_is_held_comes_at_the_end_by_the_programs_own_handler(tmp_path):
    write(tmp_path, {"held.py": HELD})
    told = "inside\nKeyboardInterrupt()\nTrue\ninside\nTimeoutError('SIGALRM')\nTrue\n"
    assert run(tmp_path, ["held.py"]) == (0, told, "")


INTERRUPTED = """
import gc, os, signal, sys, psutil, stoker

class Numbers:
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return index

def descriptors():
    return len(os.listdir("/proc/self/fd"))

def start(interrupt_at):
    '''Starts a loader, with Ctrl-C at the n-th line of it; whether it came so far.'''
    lines = 0

    def trace(frame, event, argument):
        nonlocal lines
        if "/stoker/" not in frame.f_code.co_filename or frame.f_code.co_filename.endswith("shadows.py"):
            return None
        lines += event == "line"
        if lines == interrupt_at and event == "line":
            sys.settrace(None)
            os.kill(os.getpid(), signal.SIGINT)
        return trace

    loader = stoker.Loader(Numbers(), 4, workers=stoker.Processes(2, start=sys.argv[1]))
    try:
        sys.settrace(trace)
        loader.warm_up(0)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    loader.close()
    del loader
    gc.collect()
    return lines

start(0)
before, at, step = descriptors(), 1, int(sys.argv[2])
while start(at) >= at:
    assert not psutil.Process().children(recursive=True), at
    assert descriptors() == before, at
    at += step
print("done")
"""


@pytest.mark.parametrize(
    ("start", "step"),
    [
        ("nursery", 167),
        ("fork", 97),
        ("spawn", 149),
        *[pytest.param(*more, marks=pytest.mark.exhaustive) for more in (("nursery", 83), ("fork", 37))],
    ],
)
def test_ctrl_c_at_any_line_of_the_start_leaves_nothing_and_does_not_hang(start, step, tmp_path):
    write(tmp_path, {"train.py": INTERRUPTED})
    assert run(tmp_path, ["train.py", start, str(step)]) == (0, "done\n", "")
