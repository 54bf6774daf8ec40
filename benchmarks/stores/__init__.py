"""Which store the sample cache should have: LMDB, Arrow, SQLite, .npy files or a plain mapped file, in one run.

`python -m benchmarks.stores` from the root of the repository, with `requirements.txt` of this folder installed.

Read in this order: `kinds.py` (what is stored), `store.py` and the files it names (in what), `child.py` (one writer
or reader), `measure.py` (one store in one round) with `quiet.py` (when others use the machine too), `report.py` (what
is written). `hashing.py` runs by itself: what it costs to verify what is read.
"""
