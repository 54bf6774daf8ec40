"""The figures of workers on Ray: more nodes, and the loss of one."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks.figures import Group, Line, Probe, Raw
from benchmarks.results import Spread

SCALE, LOSS, LOSS_OF_RAY = "ray_scale", "ray_node_loss", "ray_node_loss_found"
NAMES = (SCALE, LOSS, LOSS_OF_RAY)
_LINEAR = 0.9
_NODES = (1, 4)


def groups() -> Iterator[Group]:
    yield Group(
        "nodes",
        tuple(Probe(f"{nodes}", "ray_scale", {"nodes": nodes}) for nodes in _NODES),
        (Line(SCALE, "On Ray, 5 ms of sleep a sample: from 1 to 4 nodes of 2 workers each, against 4 times as much",
              f"≥ {_LINEAR:g}×", _scale_value, lambda raw: _of_linear(raw).median >= _LINEAR),),
        runs=3,
    )  # fmt: skip
    yield Group(
        "loss of a node",
        (Probe("ray", "ray_node_loss"),),
        (
            _seconds(LOSS, "On Ray, one of 2 nodes killed: until the stream goes on", "ray.stream"),
            _seconds(LOSS_OF_RAY, "Of that, until Ray itself says that an actor there is dead", "ray.found"),
        ),
        runs=3,
    )


def _of_linear(raw: Raw) -> Spread:
    few, many = _NODES
    pairs = zip(raw[f"{few}.samples_per_s"], raw[f"{many}.samples_per_s"], strict=True)
    found = Spread.of(more / (less * many / few) for less, more in pairs)
    assert found is not None  # a probe that failed raised an error
    return found


def _scale_value(raw: Raw) -> str:
    less, more = (median(raw[f"{nodes}.samples_per_s"]) for nodes in _NODES)
    ratio = _of_linear(raw)
    return f"{less:,.0f} and {more:,.0f} samples/s: {ratio.median:.2f}× ({ratio.low:.2f}–{ratio.high:.2f})"


def _seconds(name: str, title: str, key: str) -> Line:
    def value(raw: Raw) -> str:
        return f"{median(raw[key]):.1f} s ({min(raw[key]):.1f}–{max(raw[key]):.1f})"

    return Line(name, title, "–", value, lambda raw: None)
