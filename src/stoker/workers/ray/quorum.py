"""The quorum: whether as many workers are up as there must be, and what is said if not."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from time import monotonic
from typing import Any

from stoker.errors import StartError
from stoker.workers.ray.crew_member import CrewMember
from stoker.workers.ray.placing import Placing

log = logging.getLogger("stoker")


class Quorum:
    """At first all that must come up have ``start_timeout`` for it; later, somebody must be up after that long.

    A worker that cannot be replaced, as after the loss of a node, is no error while others are up: it is logged. While
    all are up, which is nearly always, nobody goes through them.

    Args:
        placing: What was asked of the cluster.
        members: The workers, by number, as they are at each moment.
    """

    def __init__(self, placing: Placing, members: Mapping[int, CrewMember]) -> None:
        self._placing, self._members = placing, members
        self._since: float | None = monotonic()  # when somebody began to be missing; None: nobody is
        self._has_begun = False
        self._told: set[CrewMember] = set()
        self._is_complete = False  # all are up, since the last one was asked for

    def asked_for_one(self) -> None:
        """A worker was, and is not up yet."""
        self._is_complete = False

    def until(self) -> float | None:
        """When to look again, if somebody is missing."""
        if self._is_complete:
            return None
        pending = [member.asked_at for member in self._members.values() if not member.node and member not in self._told]
        moments = [*pending] if self._since is None else [self._since, *pending]
        return min(moments) + self._placing.start_timeout if moments else None

    def check(self, now: float) -> None:
        """Raises StartError where too few are up for too long."""
        if self._is_complete:
            return
        up = sum(bool(member.node) for member in self._members.values())
        self._has_begun = self._has_begun or up >= self._placing.least
        if up >= (1 if self._has_begun else self._placing.least):
            self._since = None
        elif self._since is None:
            self._since = now
        elif now - self._since >= self._placing.start_timeout:
            raise StartError(shortage(self._placing, up))
        self._tell_of_pending(now, up)
        self._is_complete = self._since is None and up == len(self._members)

    def _tell_of_pending(self, now: float, up: int) -> None:
        late = now - self._placing.start_timeout
        for member in self._members.values():
            if not member.node and member.asked_at <= late and member not in self._told:
                self._told.add(member)
                log.warning(
                    "Worker %d has waited for a place on the Ray cluster for %g s, and %d others are up: they go on "
                    "without it. %s",
                    member.number,
                    self._placing.start_timeout,
                    up,
                    cluster_in_words(),
                )


def shortage(placing: Placing, up: int) -> str:
    """What was asked for, what there is, and what to pass instead."""
    return (
        f"stoker.Ray: {up} of {placing.least} workers are up after {placing.start_timeout:g} s. Each one needs "
        f"{placing.each()}. {group_in_words(placing)}{cluster_in_words()} Pass a smaller n, num_cpus or resources, "
        f"free some of the cluster, or add nodes; pass a longer start_timeout if nodes are on their way"
    )


def group_in_words(placing: Placing) -> str:
    """What the user's placement group has, if they are to be in one."""
    from ray.util import placement_group_table

    if not placing.is_in_group:
        return ""
    bundles = ", ".join(str(bundle) for bundle in placing.placement.bundle_specs)
    state = placement_group_table(placing.placement).get("state", "unknown")
    return f"They are to be in a placement group that has {bundles}, and is {state}: nothing else is theirs. "


def cluster_in_words() -> str:
    """What the cluster has, and what of that is free."""
    import ray

    nodes: list[dict[str, Any]] = [node for node in ray.nodes() if node["Alive"]]
    total, free = ray.cluster_resources(), ray.available_resources()
    names = sorted(
        name
        for name in total
        if not name.startswith("node:") and "_group_" not in name and name not in ("memory", "object_store_memory")
    )
    has = ", ".join(f"{total[name]:g} {name} ({free.get(name, 0):g} free)" for name in names)
    return f"The cluster has {len(nodes)} nodes with {has or 'no CPU'} in all."
