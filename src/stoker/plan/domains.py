"""Domains: keys for different purposes never come from the same parts."""

from enum import IntEnum, unique


@unique
class Domain(IntEnum):
    """What a key is for: the first part that it is derived from.

    Two keys with the same other parts, such as seed and epoch, would be the same key, and what is drawn by them would
    go together. A number stays what it is, as orders and seeds follow from it: a new purpose takes the next one.
    """

    SHUFFLE = 1
    BATCH_SEED = 2
    SAMPLE_SEED = 3
    ROTATION = 4
    STRANDS = 5  # of groups of chunk files
    GROUP = 6
    GROUP_SEED = 7
    DRAWS = 8  # with replacement, by weight
    DRAWS_ONCE = 9  # without replacement, by weight
    BUCKET_SAMPLES = 10
    BUCKET_BATCHES = 11
    BUCKET_GROUPS = 12
    SOURCE = 13  # of a mixture: its epochs
    CHANCE = 14  # of a mixture: which source comes where
    REPLACEMENT = 15
