"""The single figures: each from a few fresh processes, those that are compared being run in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks import memory
from benchmarks.results import FigureResult, Spread

_PROBE_S = 180.0
_SAME = 1.25  # "as fast as" between two medians of a few starts of processes, which vary by about that much
_FRONT = 1.05  # what a front of another library's signature may cost
_MEASURING = 1.02  # what it may cost to measure each batch
_NONE = 0.01  # a batch; a stray fault in a hundred batches is the interpreter's own, not the loader's


class ProbeError(Exception):
    """A probe failed; the message is one line."""


@dataclass(frozen=True)
class Probe:
    """A probe and its options; `label` tells apart those that are compared."""

    label: str
    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def run(self) -> dict[str, float]:
        """Its temporary files go to a folder that is removed whatever becomes of it."""
        with tempfile.TemporaryDirectory(prefix="stoker-bench-") as scratch:
            return self._run(os.environ | {"TMPDIR": scratch})

    def _run(self, environment: dict[str, str]) -> dict[str, float]:
        command = [sys.executable, "-m", "benchmarks.probe", self.name, json.dumps(self.options)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, **pipes, text=True, env=environment, start_new_session=True)
        try:
            out, err = process.communicate(timeout=_PROBE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            memory.end_session(process.pid)
            process.communicate()
            raise ProbeError(f"{self.label}: no end after {_PROBE_S:.0f} s") from None
        finally:
            memory.end_session(process.pid)
        if process.returncode != 0:
            raise ProbeError(f"{self.label}: {(err.strip().splitlines() or ['no word'])[-1][:160]}")
        measured: dict[str, float] = json.loads(out.strip().splitlines()[-1])
        return measured


Raw = dict[str, list[float]]  # "label.key" -> one value a run


@dataclass(frozen=True)
class Line:
    """A row of the table of single figures, read out of what the probes of a group measured."""

    name: str
    title: str
    target: str
    value: Callable[[Raw], str]
    met: Callable[[Raw], bool | None]  # None: it has no target


@dataclass(frozen=True)
class Group:
    """Probes that are run in turn, and the lines that come out of them."""

    name: str
    probes: tuple[Probe, ...]
    lines: tuple[Line, ...]
    runs: int = 5


def measure(group: Group, runs: int | None, on_step: Callable[[str], None]) -> list[FigureResult]:
    """Runs the group's probes in turn; a probe that fails makes its lines say so, and stops nothing."""
    raw: Raw = {}
    try:
        for index in range(runs or group.runs):
            for probe in group.probes:
                on_step(f"{group.name}: {probe.label}, run {index + 1} of {runs or group.runs}")
                for key, value in probe.run().items():
                    raw.setdefault(f"{probe.label}.{key}", []).append(value)
    except ProbeError as error:
        return [FigureResult(li.name, li.title, "–", li.target, None, raw, str(error)) for li in group.lines]
    return [FigureResult(li.name, li.title, li.value(raw), li.target, li.met(raw), raw) for li in group.lines]


def _ratio(raw: Raw, of: str, to: str) -> Spread:
    found = Spread.of(ours / theirs for ours, theirs in zip(raw[of], raw[to], strict=True))
    assert found is not None  # a probe that failed raised an error
    return found


def against(name: str, title: str, of: str, to: str, most: float) -> Line:
    """A line that compares two times: at most `most` times the other."""

    def value(raw: Raw) -> str:
        ours, theirs, ratio = median(raw[of]), median(raw[to]), _ratio(raw, of, to)
        spread = f"{ratio.median:.2g}× ({ratio.low:.2g}–{ratio.high:.2g})"
        return f"{_time(ours)} against {_time(theirs)}: {spread}"

    return Line(name, title, f"≤ {most:g}×", value, lambda raw: _ratio(raw, of, to).median <= most)


def _below(name: str, title: str, of: str, most: float, shown: Callable[[float], str]) -> Line:
    return Line(name, title, f"< {shown(most)}", lambda raw: shown(median(raw[of])), lambda raw: median(raw[of]) < most)


def below_seconds(name: str, title: str, of: str, most: float) -> Line:
    """A line of a time that is to be below `most`."""
    return _below(name, title, of, most, _time)


def below_megabytes(name: str, title: str, of: str, most: float) -> Line:
    """A line of an amount of memory, in bytes, that is to be below `most`."""
    return _below(name, title, of, most, _megabytes)


def _zero(name: str, title: str, of: str, beside: str) -> Line:
    return Line(
        name,
        title,
        "0",
        lambda raw: f"{median(raw[of]):.3g} (torch: {median(raw[beside]):.3g})",
        lambda raw: median(raw[of]) < _NONE,
    )


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _gigabytes(amount: float) -> str:
    return f"{amount / 1e9:.3g} GB"


def _megabytes(amount: float) -> str:
    return f"{amount / 1e6:.3g} MB"


def _measuring(raw: Raw) -> str:
    measured, plain = median(raw["stoker.measured"]), median(raw["stoker.plain"])
    ratio = Spread.of(raw["stoker.ratio"])
    assert ratio is not None  # a probe that failed raised an error
    return f"{_time(measured)} against {_time(plain)}: {ratio.median:.3g}× ({ratio.low:.3g}–{ratio.high:.3g})"


def groups() -> Iterator[Group]:
    """All single figures, in the order of the table."""
    yield Group(
        "turn-around",
        (Probe("stoker", "turnaround", {"library": "stoker"}), Probe("torch", "turnaround", {"library": "torch"})),
        (against("turnaround", "Epoch turn-around, against torch's with persistent workers",
                 "stoker.seconds", "torch.seconds", 0.1),),
    )  # fmt: skip
    yield from _starts()
    yield Group(
        "measuring",
        (Probe("stoker", "observing"),),
        (
            Line(
                "observing",
                "A batch of *small* that is measured, against `observe=False`",
                f"≤ {_MEASURING:g}×",
                _measuring,
                lambda raw: median(raw["stoker.ratio"]) <= _MEASURING,
            ),
        ),
    )
    yield Group(
        "10⁹ samples",
        (Probe("start", "billion", {"resume_at": None}), Probe("zero", "billion", {"resume_at": 0}),
         Probe("far", "billion", {"resume_at": 10**6})),
        (
            _below("billion_first", "10⁹ samples shuffled: first batch", "start.seconds", 1.0, _time),
            _below("billion_memory", "10⁹ samples shuffled: extra memory of the consumer",
                   "start.extra_bytes", 1e8, _megabytes),
            against("billion_resume", "10⁹ samples: resume at batch 10⁶, against at 0",
                    "far.seconds", "zero.seconds", _SAME),
        ),
    )  # fmt: skip
    yield Group(
        "1 GB in memory",
        (Probe("passed", "one_copy", {"kept": False}), Probe("kept", "one_copy", {"kept": True})),
        (
            _below("one_copy", "1 GB in memory, 4 processes: PSS of all", "passed.pss_bytes", 1.2e9, _gigabytes),
            _below("one_copy_kept", "The same, while the caller keeps its own reference",
                   "kept.pss_bytes", 1.2e9, _gigabytes),
        ),
        runs=1,
    )  # fmt: skip
    yield Group(
        "faults",
        (Probe("stoker", "faults", {"library": "stoker"}), Probe("torch", "faults", {"library": "torch"})),
        (
            _zero("faults", "Consumer's page faults a batch, warm", "stoker.faults", "torch.faults"),
            _zero("mappings", "Consumer's new mappings a batch, warm", "stoker.mappings", "torch.mappings"),
        ),
        runs=3,
    )
    yield Group(
        "deaths",
        (Probe("nursery", "recovery", {"start": "nursery"}), Probe("fork", "recovery", {"start": "fork"})),
        (
            _below("recovery", "A worker's death: what it costs beyond making its batch again",
                   "nursery.seconds", 0.1, _time),
            _below("recovery_worst", "The worst of 20 deaths", "nursery.worst", 0.1, _time),
            _below("recovery_fork", 'A death, with `start="fork"`', "fork.seconds", 0.1, _time),
        ),
        runs=3,
    )  # fmt: skip
    yield Group(
        "Ctrl-C",
        (Probe("stoker", "interrupt"),),
        (_below("interrupt", "Ctrl-C to prompt, 8 workers busy", "stoker.seconds", 1.0, _time),),
    )
    yield Group(
        "import",
        (Probe("stoker", "importing"),),
        (
            _below("import", "`import stoker`, numpy included", "stoker.seconds", 0.15, _time),
            Line("frameworks", "Frameworks that `import stoker` imports", "0",
                 lambda raw: f"{max(raw['stoker.frameworks']):.0f}",
                 lambda raw: max(raw["stoker.frameworks"]) == 0),
        ),
        runs=10,
    )  # fmt: skip
    yield Group(
        "fronts",
        tuple(Probe(name, "front", {"workload": name}) for name in ("small", "big")),
        tuple(_front(name) for name in ("small", "big")),
        runs=3,
    )


def _front(workload: str) -> Line:
    def value(raw: Raw) -> str:
        front, native, ratio = (median(raw[f"{workload}.{key}"]) for key in ("front", "native", "ratio"))
        return f"{_time(front)} against {_time(native)}: {ratio:.2f}×"

    return Line(
        f"swift_{workload}",
        f"SwiftLoader's front, a batch of *{workload}*, against the same natively",
        f"≤ {_FRONT:g}×",
        value,
        lambda raw: median(raw[f"{workload}.ratio"]) <= _FRONT,
    )


def _first(library: str, start: str, workers: int = 2, dataset: str = "plain") -> Probe:
    options = {"library": library, "start": start, "workers": workers, "dataset": dataset}
    return Probe(library, "first_batch", options)


def _starts() -> Iterator[Group]:
    yield Group(
        "first batch, numpy",
        (_first("stoker", "nursery"), _first("torch", "spawn")),
        (
            against("first_plain", "First batch of the first loader, dataset of numpy only, against torch's spawn",
                    "stoker.first", "torch.first", 0.2),
            _below("second", "First batch of the second loader in the process", "stoker.second", 0.1, _time),
        ),
    )  # fmt: skip
    yield Group(
        "first batch, torch",
        (_first("stoker", "nursery", 4, "torch"), _first("torch", "spawn", 4, "torch")),
        (against("first_torch", "The same, dataset that imports torch, 4 workers",
                 "stoker.first", "torch.first", 0.6),),
    )  # fmt: skip
    yield Group(
        "first batch, fork",
        (_first("stoker", "fork"), _first("torch", "fork")),
        (against("first_fork", 'First batch with `start="fork"`, against torch\'s fork',
                 "stoker.first", "torch.first", 1.0),),
    )  # fmt: skip
