"""One contender on one workload, in a process of its own, which runs a round whenever its parent says so.

The parent writes lines to stdin, this answers with JSON lines on what was stdout:

    (start)         -> {"ready": <seconds the warm-up took>}   or   {"error": <one line>}
    round <seconds> -> {"round": {...}}                         or   {"error": <one line>}
    stop            -> (exit)

In between nothing consumes, so a loader's workers fill their buffers and then sleep while others are measured.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from benchmarks import memory
from benchmarks.auto_comparisons import AUTO_WORKLOADS
from benchmarks.contenders import Contender, Job, open_contender
from benchmarks.drop_in import DROP_INS
from benchmarks.forms import FORMS
from benchmarks.mixture_comparisons import MIXTURE_WORKLOADS
from benchmarks.neutral.payloads import TRANSPORTS
from benchmarks.packing_comparisons import PACKING_WORKLOADS
from benchmarks.ray_comparisons import RAY_WORKLOADS
from benchmarks.results import Round
from benchmarks.workloads import ALL as OTHERS

ALL = OTHERS | FORMS | DROP_INS | RAY_WORKLOADS | TRANSPORTS | AUTO_WORKLOADS | MIXTURE_WORKLOADS | PACKING_WORKLOADS
_CLOSE_S = 1.0  # some loaders never come back from being closed midway


def _measure(contender: Contender, seconds: float) -> Round:
    count = contender.run(seconds)
    return Round(count.batches, count.seconds, count.cpu_seconds, memory.pss_bytes(os.getpid()))


def _serve(contender: Contender, wire: IO[str]) -> None:
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "stop":
            return
        _answer(wire, round=asdict(_measure(contender, float(arguments[0]))))


def _answer(wire: IO[str], **message: Any) -> None:
    wire.write(json.dumps(message) + "\n")
    wire.flush()


def _leave(contender: Contender | None) -> None:
    """Closes the contender if it lets itself be closed, and exits; the parent ends what is left of the family."""
    if contender is not None:
        closing = threading.Thread(target=contender.close, daemon=True)
        closing.start()
        closing.join(_CLOSE_S)
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("contender")
    parser.add_argument("workload", choices=ALL)
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--warm-up", type=float, required=True)
    parser.add_argument("--shuffle", action="store_true")
    options = parser.parse_args()
    wire = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not get between the answers
    contender: Contender | None = None
    try:
        begin = time.perf_counter()
        workload = ALL[options.workload]
        job = Job(workload, workload.make(options.scratch), options.shuffle, options.scratch)
        contender = open_contender(options.contender, job)
        contender.warm_up(options.warm_up)
        _answer(wire, ready=time.perf_counter() - begin)
        _serve(contender, wire)
    except Exception as error:
        first_line = (str(error).splitlines() or [""])[0]
        _answer(wire, error=f"{type(error).__name__}: {first_line}"[:200])
    finally:
        _leave(contender)


if __name__ == "__main__":
    main()
