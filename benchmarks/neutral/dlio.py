"""DLIO, unmodified, with its own torch loader and with Stoker plugged in: unet3d, scaled down to the page cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks import memory
from benchmarks.neutral.dlio_summary import Summary, SummaryError, parse_summary
from benchmarks.results import Spread
from benchmarks.stores.quiet import Patience

TORCH, DROP_IN, LOADER = "torch", "stoker.torch", "stoker.Loader"
LOADERS = (DROP_IN, LOADER, TORCH)
_CLASSES = {
    TORCH: None,  # DLIO's own
    DROP_IN: "benchmarks.neutral.dlio_loaders.WithDropIn",
    LOADER: "benchmarks.neutral.dlio_loaders.WithLoader",
}

# DLIO's unet3d_h100, of which sizes and times are divided by _SHRINK: 23 GB of files become 0.7.
_CONFIG, _SHRINK = "unet3d_h100", 35
_FILES, _FILE_BYTES, _FILE_BYTES_STDEV = 168, 146_600_628, 68_341_808
_SAMPLE_BYTES, _BATCH_SIZE, _STEP_S = 2_097_152, 7, 0.323
_WORKERS, _PREFETCH = 2, 2  # batches for each worker: torch's default, where DLIO's is two for all of them

_ROOT = Path(__file__).parents[2]
_LOG = "stdout.log"  # what DLIO prints
_RUN_S = 300.0  # ten times what a run takes on a busy machine


@dataclass(frozen=True)
class Workload:
    """What is read is the same in all; samples of `sample_bytes` are what workers then hand over."""

    name: str
    title: str
    sample_bytes: int
    step_s: float = _STEP_S / _SHRINK
    batch_size: int = _BATCH_SIZE

    @property
    def ideal(self) -> float:
        """Samples a second with a loader that training never waits for."""
        return self.batch_size / self.step_s


WORKLOADS = {
    one.name: one
    for one in (
        Workload("scaled", f"unet3d, all sizes and times / {_SHRINK}", _SAMPLE_BYTES // _SHRINK),
        Workload("whole", "the same, but samples of the original 2 MB", _SAMPLE_BYTES),
    )
}


class RunError(Exception):
    """DLIO failed; the message is one line."""


@dataclass
class Result:
    """All rounds of a workload, by loader; one that failed has an error instead of the rest of its rounds."""

    workload: Workload
    rounds: dict[str, list[Summary]] = field(default_factory=lambda: {name: [] for name in LOADERS})
    errors: dict[str, str] = field(default_factory=dict)
    others: list[float] = field(default_factory=list)  # cores that others used while each round ran

    def spread(self, loader: str, figure: Callable[[Summary], float]) -> Spread | None:
        return Spread.of(map(figure, self.rounds[loader]))

    def ratio(self, loader: str, figure: Callable[[Summary], float], to: str = TORCH) -> Spread | None:
        """How many times as much, round by round, so that what slows a whole round down cancels out."""
        pairs = zip(self.rounds[loader], self.rounds[to], strict=False)
        return Spread.of(figure(ours) / figure(theirs) for ours, theirs in pairs)


@dataclass(frozen=True)
class Dlio:
    """DLIO with its own configuration of unet3d, but for sizes and times; its files are in `scratch`."""

    scratch: Path
    command: Sequence[str] = (str(Path(sys.executable).parent / "dlio_benchmark"),)

    def generate(self) -> None:
        """Writes the files that all loaders read.

        Raises:
            RunError: DLIO failed.
        """
        self._run("generate", [*self._dataset(), "workflow.generate_data=True", "workflow.train=False"])

    def train(self, loader: str, workload: Workload, epochs: int) -> Summary:
        """Runs some epochs with one loader.

        Raises:
            RunError: DLIO failed, or did not end.
            SummaryError: It ended, but does not say how fast it was.
        """
        settings = [
            *self._dataset(),
            f"dataset.record_length_resize={workload.sample_bytes}",
            f"reader.batch_size={workload.batch_size}",
            f"reader.read_threads={_WORKERS}",
            f"reader.prefetch_size={_WORKERS * _PREFETCH}",
            f"train.epochs={epochs}",
            f"train.computation_time={workload.step_s}",
        ]
        if name := _CLASSES[loader]:
            settings += [f"reader.data_loader_classname={name}", "reader.data_loader_sampler=index"]
        output = self._run(loader, settings)
        if name and f"custom data loader class {name.rpartition('.')[2]}" not in (output / _LOG).read_text():
            raise RunError(f"DLIO did not say that it uses {name}, and may have used its own loader")
        summary = output / "summary.json"
        return parse_summary(summary.read_text() if summary.exists() else "")

    def _dataset(self) -> list[str]:
        return [
            f"dataset.data_folder={self.scratch / 'data'}",
            f"dataset.num_files_train={_FILES}",
            f"dataset.record_length={_FILE_BYTES // _SHRINK}",
            f"dataset.record_length_stdev={_FILE_BYTES_STDEV // _SHRINK}",
        ]

    def _run(self, name: str, settings: Sequence[str]) -> Path:
        """Gives the folder of what DLIO wrote."""
        output = self.scratch / name
        shutil.rmtree(output, ignore_errors=True)  # of the round before
        output.mkdir()
        settings = [*settings, "workflow.checkpoint=False", f"output.folder={output}"]
        log = output / _LOG
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*self.command, f"workload={_CONFIG}", *(f"++workload.{setting}" for setting in settings)],
                cwd=self.scratch,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                # So that it finds Stoker's loaders, and its tracer, which costs time in each call, is off.
                env=os.environ | {"PYTHONPATH": str(_ROOT), "DFTRACER_ENABLE": "0"},
                start_new_session=True,
            )
            try:
                code = process.wait(_RUN_S)
            except subprocess.TimeoutExpired:
                raise RunError(f"DLIO did not end in {_RUN_S:.0f} s") from None
            finally:
                process.kill()
                process.wait()
                memory.end_session(process.pid)
        if code:
            raise RunError(f"DLIO ended with code {code}: {_last_line(log)}")
        return output


@dataclass(frozen=True)
class Settings:
    """How much to measure. `patience`: seconds to spend on waiting for others to leave the machine alone."""

    rounds: int
    epochs: int
    patience: float = 0.0


def measure(
    dlio: Dlio, workloads: Iterable[Workload], settings: Settings, on_step: Callable[[str], None]
) -> list[Result]:
    """Generates the files, then runs each loader on each workload, in turn; each round begins with another loader.

    Raises:
        RunError: The files could not be generated.
    """
    on_step("dlio: files are generated")
    dlio.generate()
    results, patience = [Result(workload) for workload in workloads], Patience(settings.patience)
    for result in results:
        for turn in range(settings.rounds):
            first = turn % len(LOADERS)
            for loader in LOADERS[first:] + LOADERS[:first]:
                if loader not in result.errors:
                    on_step(f"dlio {result.workload.name}: round {turn + 1} of {settings.rounds}, {loader}")
                    _measure(result, loader, patience, partial(dlio.train, loader, result.workload, settings.epochs))
    return results


def _measure(result: Result, loader: str, patience: Patience, train: Callable[[], Summary]) -> None:
    try:
        heard = patience.quietest(train)
        result.rounds[loader].append(heard.result)
        result.others.append(heard.others)
    except (RunError, SummaryError) as error:
        result.errors[loader] = str(error)


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "it wrote nothing"
