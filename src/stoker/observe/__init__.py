"""What the engine reports, made into figures and a sentence. Imports ``workers`` for what a worker measures."""

from stoker.observe.stats import Meter, Stats

__all__ = ["Meter", "Stats"]
