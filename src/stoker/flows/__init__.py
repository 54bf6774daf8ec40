"""Flows: what a loader's epochs are made of. Batches of a dataset with an index, or of chunk files."""

from stoker.flows.chunked import ChunkedFlow
from stoker.flows.flow import Flow
from stoker.flows.indexed import IndexedFlow

__all__ = ["ChunkedFlow", "Flow", "IndexedFlow"]
