"""The bench: Stoker beside its peers and beside the limit, in one run.

`python -m benchmarks` from the root of the repository; `--help` lists the options.

Read in this order: `workloads.py` (what is loaded), `contenders/` (by whom), `child.py` and `rounds.py` (how a
round is measured), `probes/` and `figures.py` (the single figures), `drop_in.py` and `drop_in_figures.py` (the drop-in
for torch's `DataLoader`), `comparisons.py` and `cache_figures.py` (cache and rotation), `chunk_files.py`,
`chunk_comparisons.py` and `chunk_figures.py` (streams and chunk files), `far_away.py` (a slow network),
`ray_comparisons.py` and `ray_figures.py` (workers on Ray), `report.py`, `plot.py`, `form_plot.py`, `cache_plot.py` and
`chunk_plot.py` (what is written).
"""
