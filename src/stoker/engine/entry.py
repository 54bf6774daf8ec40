"""A run that was issued and not yet delivered, and what is known of the deaths it has caused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from stoker.engine.messages import Fail, Loss
from stoker.engine.search import Search
from stoker.plan import Run
from stoker.workers import Answer, Death

_FRUITLESS_ALLOWED = 2  # searches that found nobody, before the whole batch is given up


@dataclass(slots=True)
class Entry:
    """Life of a batch that kills its workers:

    deaths ──too many──> given up                                 (nothing may be left out)
       ^   └──too many──> search ──> a loss, and all but that sample is made
       └── fruitless ───────┘  └─fruitless again──> given up

    Where samples are replaced, another one is made in place of each loss, and may be lost in its turn, until none is
    left.
    """

    run: Run
    slot: int
    replacements: int = 0  # that are tried in place of a sample that kills; 0: it is left out
    answer: Answer | None = None
    deaths: int = 0  # over this batch, since the last sample was found and left out
    suspicions: int = 0  # deaths while it was with the worker, over it or for another reason
    losses: list[Loss] = field(default_factory=list)
    search: Search | None = None
    fruitless: int = 0
    given_up: Fail | None = None  # the consumer will be told so in its turn

    def left_out(self, samples: int) -> tuple[int, ...]:
        """The places of its batch that are not to be made this time; ``~place`` for each loss that is replaced."""
        tried = set(self._innocent(samples) if self.search is None else self.search.probe)
        replaced = [~loss.place for loss in self.losses if loss.place in tried]
        return (*sorted(set(range(samples)).difference(tried)), *replaced)

    def blame(self, death: Death, deaths_allowed: int, samples: int) -> None:
        """It has killed its worker. ``samples``: how many it has to search; 0: none may be left out."""
        self.deaths += 1
        if self.search is not None:
            self._learn(death)
        elif self.deaths >= deaths_allowed:
            self._give_up(death, samples)

    def probe_made(self) -> None:
        """What the search had wanted to be tried was made, and killed nobody."""
        self._learn(None)

    def _give_up(self, death: Death, samples: int) -> None:
        suspects = list(self._innocent(samples))
        if len(suspects) == 1:
            self._lose(suspects[0], death)
        elif suspects and self.fruitless < _FRUITLESS_ALLOWED:
            self.search = Search(suspects)
        else:
            self.given_up = Fail(self.run, death, self.deaths, begun=True)

    def _learn(self, death: Death | None) -> None:
        search = self.search
        assert search is not None
        search.note(died=death is not None)
        if search.probe:
            return
        self.search = None
        if search.guilty is not None and death is not None:
            self._lose(search.guilty, death)
        else:
            self.fruitless += 1
            self.deaths = 0

    def _lose(self, place: int, death: Death) -> None:
        self.losses.append(Loss(place, death))
        if self.replacements and sum(loss.place == place for loss in self.losses) > self.replacements:
            self.given_up = Fail(self.run, death, self.deaths, begun=True)
        self.deaths = 0

    def _innocent(self, samples: int) -> Iterable[int]:
        lost = set() if self.replacements else {loss.place for loss in self.losses}
        return (place for place in range(samples) if place not in lost)
