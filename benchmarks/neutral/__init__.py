"""Benchmarks that others have designed, with Stoker beside their own contenders.

`python -m benchmarks.neutral` from the root of the repository, in the environment that `make bench-neutral` makes.
What each measures, and what it does not, is in docs/benchmarks.md.

Read in this order: `dlio.py` (how DLIO is run), `dlio_loaders.py` (Stoker as its data loader) and `dlio_summary.py`
(what it reports); `payloads.py` (what SPDL's benchmark of its transports moves; by whom is in `contenders/payloads_*`);
`report.py` and `plot.py` (what is written).
"""
