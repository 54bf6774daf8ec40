"""Hours of use in minutes: random loaders, harmed in every way, against the inline oracle. `make soak MINUTES=5`.

life.py      draws a life: a dataset with its troubles, a plan, a policy, and what harm comes to the workers
files.py     the dataset as chunk files
keeping.py   what a life keeps: a cache, or samples that rotate
reading.py   reads a life through several loaders, each resumed from the one before
sharding.py  reads it over n shards, then over m
streaming.py reads it as items of a stream
ledger.py    counts what was lost, repeated or changed
harm.py      kills and stops
tally.py     the figures
"""
