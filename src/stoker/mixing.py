"""Mixing: the weights of a mixture's sources, while batches of it are under way."""

from __future__ import annotations

from typing import Any, cast

from stoker.agenda import Agenda, MixedAgenda
from stoker.engine_owner import EngineOwner
from stoker.intake import Intake
from stoker.plan import Mixture
from stoker.settings import Settings
from stoker.sources import checked_weights
from stoker.turns import Turns


class Mixing:
    """Sets the weights from some batch on, if the agenda is of a mixture.

    Args:
        agenda: What there is to do.
        engine: That does it, and may have begun more than the consumer has.
        intake: Knows how far the consumer is.
        turns: One thread at a time uses the engine.
        settings: Whether batches are moved to a device ahead.
    """

    def __init__(self, agenda: Agenda, engine: EngineOwner, intake: Intake, turns: Turns, settings: Settings) -> None:
        self._agenda, self._engine, self._intake, self._turns = agenda, engine, intake, turns
        self._settings = settings

    @property
    def is_endless(self) -> bool:
        """Whether there is one epoch, without end: whoever leaves it goes on there."""
        order = self._agenda.plan.order
        return isinstance(order, Mixture) and order.is_endless

    def set_weights(self, weights: Any, after: int | None) -> int:
        """From the next batch on that no worker has, or from the one after so many, a mixture has these weights.

        Returns:
            How many batches come before; where rows are packed, how many windows that nothing was taken of.
        """
        return self._turns.take(lambda: self._set_weights(weights, after))

    def _set_weights(self, weights: Any, after: int | None) -> int:
        order, intake = self._agenda.plan.order, self._intake
        if not isinstance(order, Mixture):
            raise TypeError("set_weights: the dataset has no weights: make the loader of a stoker.Mix")
        weights, agenda = checked_weights(weights, order.recipe.names), cast(MixedAgenda, self._agenda)
        feed = self._engine.feed
        if self._settings.on_device and feed is not None:  # a thread hands out more at any time
            intake.is_in_step = False
            feed.halt()
        ahead = intake.is_in_step and feed is not None and feed.is_sound
        after, is_late = agenda.set_weights(weights, intake.cursor(), after, ahead=ahead)
        if is_late:
            intake.is_in_step = False
        return after
