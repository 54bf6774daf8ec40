"""The bench: Stoker beside its peers and beside the limit, in one run.

`python -m benchmarks` from the root of the repository; `--help` lists the options.

Read in this order: `workloads.py` (what is loaded), `contenders/` (by whom), `child.py` and `rounds.py` (how a
round is measured), `probes/` and `figures.py` (the single figures), `comparisons.py` and `cache_figures.py` (cache and
rotation), `report.py`, `plot.py` and `cache_plot.py` (what is written).
"""
