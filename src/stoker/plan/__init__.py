"""The plan: which batches there are and in what order, as arithmetic on (seed, epoch, position).

Pure: no process, file or clock. May import numpy, the standard library and `stoker.errors`, nothing else.
"""

from stoker.plan.buckets import BucketOrder, Buckets
from stoker.plan.chunk_cursor import ChunkCursor, again
from stoker.plan.cursor import Cursor
from stoker.plan.given import Given
from stoker.plan.mixture import Mixture, Recipe
from stoker.plan.numbering import Numbering
from stoker.plan.order import Nearby, Order, Sequential, Shuffled
from stoker.plan.ordering import Ordering
from stoker.plan.permutation import Permutation, derive
from stoker.plan.plan import MAX_EPOCH, PLAN_VERSION, Batch, Plan, rotation_of, sample_seed
from stoker.plan.replacements import MOST_REPLACEMENTS, replacements
from stoker.plan.runs import Run, runs
from stoker.plan.seeking import batch_at, passed_over
from stoker.plan.sent import SentBatches
from stoker.plan.state import STATE_VERSION, check_sum, from_state, identity, order_of_state, plan_of_state, to_state
from stoker.plan.weighted import Weighted

__all__ = [
    "MAX_EPOCH",
    "MOST_REPLACEMENTS",
    "PLAN_VERSION",
    "STATE_VERSION",
    "Batch",
    "BucketOrder",
    "Buckets",
    "ChunkCursor",
    "Cursor",
    "Given",
    "Mixture",
    "Nearby",
    "Numbering",
    "Order",
    "Ordering",
    "Permutation",
    "Plan",
    "Recipe",
    "Run",
    "SentBatches",
    "Sequential",
    "Shuffled",
    "Weighted",
    "again",
    "batch_at",
    "check_sum",
    "derive",
    "from_state",
    "identity",
    "order_of_state",
    "passed_over",
    "plan_of_state",
    "replacements",
    "rotation_of",
    "runs",
    "sample_seed",
    "to_state",
]
