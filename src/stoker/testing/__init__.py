"""Asserts for your own datasets: the stream is reproducible, resumes at any step, and survives its workers.

Uses the public API only, so it works with whatever has a Loader's methods.
"""

from stoker.testing.comparison import assert_same
from stoker.testing.determinism import assert_deterministic
from stoker.testing.faults import Chaos, chaos
from stoker.testing.resume import assert_resumable
from stoker.testing.survival import assert_survives

__all__ = ["Chaos", "assert_deterministic", "assert_resumable", "assert_same", "assert_survives", "chaos"]
