"""What is asked of a cluster: how many workers, what each needs, and where they are to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Placing:
    """As the user has it in ``stoker.Ray``, checked.

    Attributes:
        first: Workers at the start.
        least: Workers that must come up.
        most: Workers that there may be, if demand grows.
        num_cpus: That each one takes.
        resources: Others that each one takes.
        placement: "spread", "pack", or a placement group of Ray's.
        runtime_env: Of Ray's, for the actors.
        start_timeout: Seconds until those must be up.
    """

    first: int
    least: int
    most: int
    num_cpus: float
    resources: Mapping[str, float]
    placement: Any
    runtime_env: Mapping[str, Any] | None
    start_timeout: float

    def needs(self) -> dict[str, float]:
        """What a worker takes."""
        return {"CPU": self.num_cpus, **self.resources}

    def reserve(self) -> Any:
        """Places for all workers on as few nodes as possible, as a placement group of our own; None: none is needed.

        Ray would fill each node to the half by itself. Where workers come and go, there is nothing to reserve.
        """
        from ray.util.placement_group import placement_group

        needed = {name: count for name, count in self.needs().items() if count}
        if self.placement != "pack" or self.least != self.most or not needed:
            return None
        return placement_group([needed] * self.most, strategy="PACK")

    def actor_options(self, reserved: Any) -> dict[str, Any]:
        """What Ray is told. It restarts and repeats nothing: the engine does. ``reserved``: places of our own."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        group = self.placement if self.is_in_group else reserved
        strategy = "SPREAD" if self.placement == "spread" else "DEFAULT"
        return {
            "num_cpus": self.num_cpus,
            "resources": dict(self.resources) or None,
            "scheduling_strategy": strategy if group is None else PlacementGroupSchedulingStrategy(group),
            "runtime_env": None if self.runtime_env is None else dict(self.runtime_env),
            "max_restarts": 0,
            "max_task_retries": 0,
        }

    @property
    def is_in_group(self) -> bool:
        """It is in a placement group of the user's."""
        return not isinstance(self.placement, str)

    def each(self) -> str:
        """What a worker needs, in words."""
        return ", ".join(f"{count:g} {name}" for name, count in self.needs().items())
