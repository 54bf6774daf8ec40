"""A Ray cluster of several nodes on this machine, each a raylet of its own with its own object store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.contenders import local_ray

_STORE_BYTES = 200 * 2**20


@contextmanager
def cluster(nodes: int, cpus: int) -> Iterator[Any]:
    """The head, which has no CPUs and is where the consumer is, and so many nodes with so many CPUs each."""
    local_ray.quieten()
    import ray
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "object_store_memory": _STORE_BYTES, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(nodes):
            made.add_node(num_cpus=cpus, object_store_memory=_STORE_BYTES)
        made.wait_for_nodes()
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made
    finally:
        ray.shutdown()
        made.shutdown()
