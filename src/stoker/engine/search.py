"""Finding the sample that kills its worker: halve the suspects until one is left, and try that one alone."""

from __future__ import annotations

from collections.abc import Sequence


class Search:
    """Says which samples to try next (``probe``) and learns from whether that killed the worker.

    If the first half survives, the second is suspected without a try: so at most log2(n) + 1 tries, about half of
    them deaths. The last suspect is always tried alone. If it survives, nobody is guilty alone, or the deaths had
    another reason.

    Args:
        suspects: Places within the batch.

    Example:
        >>> search = Search(range(8))
        >>> while search.probe:
        ...     search.note(died=5 in search.probe)
        >>> search.guilty
        5
    """

    def __init__(self, suspects: Sequence[int]) -> None:
        self._suspects = list(suspects)
        self.guilty: int | None = None
        self.probe: list[int] = []
        self._choose()

    def note(self, *, died: bool) -> None:
        """The probe has killed its worker, or has been made."""
        if len(self._suspects) == 1:
            self.guilty = self._suspects[0] if died else None
            self.probe = []
            return
        half = len(self.probe)
        self._suspects = self._suspects[:half] if died else self._suspects[half:]
        if died and len(self._suspects) == 1:  # it was tried alone just now
            self.guilty, self.probe = self._suspects[0], []
        else:
            self._choose()

    def _choose(self) -> None:
        self.probe = self._suspects[: -(-len(self._suspects) // 2)]
