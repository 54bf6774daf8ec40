"""What the engine reports, made into figures, a sentence, and a file of what failed.

Imports ``errors``, ``plan``, and of ``workers`` and ``engine`` what they measure.
"""

from stoker.observe.bar import Bars, Counts
from stoker.observe.culprits import Culprit, WhatIf
from stoker.observe.diagnosis import Diagnosis, diagnose
from stoker.observe.distribution import Distribution
from stoker.observe.failures import ErrorPolicy, Failures, OnError, Reference
from stoker.observe.headspace import Headspace, headspace
from stoker.observe.meter import Meter
from stoker.observe.processors import Processors
from stoker.observe.ranks import compare_ranks
from stoker.observe.recording import SlowBatch, Station
from stoker.observe.setup import Setup
from stoker.observe.slow_samples import SlowSample, SlowSampleStats
from stoker.observe.stats import Stats, WorkerStats
from stoker.observe.trace import Trace, Traced
from stoker.observe.trace_files import merge_traces

__all__ = [
    "Bars",
    "Counts",
    "Culprit",
    "Diagnosis",
    "Distribution",
    "ErrorPolicy",
    "Failures",
    "Headspace",
    "Meter",
    "OnError",
    "Processors",
    "Reference",
    "Setup",
    "SlowBatch",
    "SlowSample",
    "SlowSampleStats",
    "Station",
    "Stats",
    "Trace",
    "Traced",
    "WhatIf",
    "WorkerStats",
    "compare_ranks",
    "diagnose",
    "headspace",
    "merge_traces",
]
