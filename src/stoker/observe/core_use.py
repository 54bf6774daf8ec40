"""Which cores workers and the consumer computed on, and which they would have needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stoker.observe.stats import Stats


class CoreUse:
    """Worked out of the processor times of a run.

    Args:
        stats: The figures of the run.
        run: Seconds that it took, once workers were up.
        busy: Seconds that workers were busy, together.
    """

    def __init__(self, stats: Stats, run: float, busy: float) -> None:
        self._stats, self._processors = stats, stats.processors
        self._run, self._busy = run, busy

    @property
    def count(self) -> int:
        """That workers may use; 0: not known, as they are on other machines."""
        return self._processors.cores if self._stats.setup.is_here else 0

    @property
    def delay(self) -> float:
        """Seconds that workers could have run while they made batches, and had no core.

        Of what they had to wait since they were started, as much as of their processor time: they imported modules too.
        """
        return self._stats.cpu * (self._processors.workers_delay or 0.0) / max(self._processors.workers_cpu, 1e-9)

    @property
    def computing(self) -> float:
        """The share of the workers' busy time in which they computed, or waited for a core to do so."""
        return min((self._stats.cpu + self.delay) / self._busy, 1.0)

    @property
    def used(self) -> float:
        """Cores that workers computed on, on average."""
        return self._stats.cpu / self._run

    @property
    def wanted(self) -> float:
        """Cores that workers computed on, or would have if there had been as many."""
        return (self._stats.cpu + self.delay) / self._run

    @property
    def consumer_delay(self) -> float:
        """The share of its time that the consumer's thread could have run and had no core."""
        return min((self._processors.consumer_delay or 0.0) / self.seen, 1.0)

    @property
    def seen(self) -> float:
        """Seconds in which the consumer's thread was seen: also after its last batch, while the loader is open."""
        return max(self._run, self._processors.seconds - self._stats.starting)

    @property
    def threads(self) -> float:
        """That a worker computes with at the same time."""
        return max(self._processors.busy_threads, self._stats.cpu / self._busy)
