"""What the engine reports, made into figures, a sentence, and a file of what failed.

Imports ``errors``, ``plan``, and of ``workers`` and ``engine`` what they measure.
"""

from stoker.observe.failures import ErrorPolicy, Failures, OnError, Reference
from stoker.observe.stats import Meter, Stats, WorkerStats

__all__ = ["ErrorPolicy", "Failures", "Meter", "OnError", "Reference", "Stats", "WorkerStats"]
