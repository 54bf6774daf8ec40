"""A Ray on this machine, for one contender alone: a node with as many logical CPUs as the workload has workers.

Its processes are this one's children, so that what they take counts as the contender's.
"""

from __future__ import annotations

import os
from typing import Any

_STORE_BYTES = 2**31  # of the object store: enough for Ray Data to write nothing to disk


def start(cpus: int, **options: Any) -> Any:
    """Starts it, and gives the module."""
    quieten()
    import ray

    ray.init(
        address="local",
        num_cpus=cpus,
        object_store_memory=_STORE_BYTES,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        **options,
    )
    return ray


def quieten() -> None:
    """Before Ray is imported: it sends nothing home, writes nothing into the user's folder, and warns of no GPU."""
    os.environ |= {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }
