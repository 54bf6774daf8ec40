"""Nodes: where workers have a core each, and a link to the network that all workers of a node share."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from benchmarks.simulation.assumptions import Assumptions
from benchmarks.simulation.calendar import Calendar
from benchmarks.simulation.station import Station


class Tenant(Protocol):
    """Who has a core of a node, or waits for one."""

    def move_in(self, node: Node) -> None:
        """It has one."""

    def die(self) -> None:
        """The node is no more."""


class Node:
    """Some cores, a link, and an object store whose contents are counted."""

    def __init__(self, calendar: Calendar, number: int, cores: int, assumptions: Assumptions) -> None:
        self.name = f"node-{number}"
        self.cores = cores
        self.slowness = 1.0  # how many times as long anything takes here
        self.is_up = True
        self.tenants: dict[Tenant, None] = {}  # in the order in which they came
        self.link = Station(calendar, bytes_per_s=assumptions.node_bytes_per_s)
        self.stored = self.most_stored = 0  # bytes in the object store: now, and at most so far

    @property
    def has_room(self) -> bool:
        return self.is_up and len(self.tenants) < self.cores

    def store(self, nbytes: int) -> None:
        """Results come (or, where negative, go)."""
        self.stored += nbytes
        self.most_stored = max(self.most_stored, self.stored)


class Cluster:
    """Places workers on nodes, one after the other round and round, as Ray's "spread" does.

    Args:
        calendar: Of the simulation.
        nodes: How many there are.
        cores: Of each.
        assumptions: What links cost.
    """

    def __init__(self, calendar: Calendar, nodes: int, cores: int, assumptions: Assumptions) -> None:
        self.calendar = calendar
        self.nodes = [Node(calendar, number, cores, assumptions) for number in range(nodes)]
        self._turn = 0
        self._waiting: deque[Tenant] = deque()

    def place(self, tenant: Tenant) -> None:
        """It moves in now, or as soon as there is room."""
        self._waiting.append(tenant)
        self._let_in()

    def fail(self, number: int, at: float, *, back_after: float | None = None) -> None:
        """Cuts the power of a node at that time. It may come back, empty."""
        node = self.nodes[number]
        self.calendar.at(at, lambda: self._cut(node))
        if back_after is not None:
            self.calendar.at(at + back_after, lambda: self._restore(node))

    def _cut(self, node: Node) -> None:
        node.is_up, tenants = False, list(node.tenants)
        node.tenants.clear()
        node.stored = 0
        for tenant in tenants:
            tenant.die()

    def _restore(self, node: Node) -> None:
        node.is_up = True
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and (node := self._next_with_room()) is not None:
            tenant = self._waiting.popleft()
            node.tenants[tenant] = None
            tenant.move_in(node)

    def _next_with_room(self) -> Node | None:
        count = len(self.nodes)
        for step in range(count):
            number = (self._turn + step) % count
            if self.nodes[number].has_room:
                self._turn = number + 1
                return self.nodes[number]
        return None
