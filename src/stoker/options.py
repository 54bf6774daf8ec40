"""The options of loaders and streams as type checkers see them: docs/design/types.md. Nothing imports it when it runs.

The signatures of ``Loader`` and ``stream`` have the same names with the same types, and the defaults; a test compares
them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Required, TypeAlias, TypedDict, TypeVar

from stoker.bridges import Framework
from stoker.collation import Pack
from stoker.observe import OnError
from stoker.observe.page import Watch
from stoker.orders import OwnOrder
from stoker.sources import Dataset, Retry
from stoker.stores import Cache, Rotation
from stoker.workers import Workers

if TYPE_CHECKING:
    from stoker.sources.chunks import Chunks

S = TypeVar("S")
B = TypeVar("B")

Collate: TypeAlias = Callable[[list[S]], B]

# A dataset with samples of that type: itself, columns, files, or what makes it in each worker.
DatasetLike: TypeAlias = "Dataset[S] | Mapping[str, Any] | Chunks | Callable[[], Dataset[S] | Mapping[str, Any]]"


class Options(TypedDict, total=False):
    """What loaders and streams have in common."""

    workers: int | Literal["auto"] | Workers
    prefetch: int
    in_order: bool
    init: Callable[[], object] | None
    on_error: OnError
    quarantine: str | os.PathLike[str] | None
    timeout: float | None
    max_deaths: int
    retry: int | Retry
    device: Any
    max_on_device: int
    observe: bool
    watch: bool | Watch
    progress: bool


class LoaderOptions(Options, total=False):
    """What does not change the type of a loader's batches."""

    shuffle: bool | int
    seed: int
    drop_last: bool
    shard: tuple[int, int] | Literal["auto"] | None
    even_shards: bool
    order: OwnOrder | None
    pack: Pack | None
    cache: Cache | None
    rotation: Rotation | None
    max_errors: int | float | None


class AsCollated(LoaderOptions, total=False):
    """The same, where batches stay as they are collated."""

    to: None
    to_device: None


class Through(LoaderOptions, total=False):
    """The same, beside a function that makes something else of each batch."""

    collate: Collate[Any, Any] | None
    to_device: None


class InFramework(LoaderOptions, total=False):
    """The same, where batches have the arrays of a framework."""

    collate: Collate[Any, Any] | None
    to: Required[Framework]
    to_device: Callable[..., Any] | None


class OnDevice(LoaderOptions, total=False):
    """The same, where a function moves batches."""

    collate: Collate[Any, Any] | None
    to: Framework | Callable[[Any], Any] | None
    to_device: Required[Callable[..., Any]]


class StreamOptions(Options, total=False):
    """What does not change the type of a stream's results."""

    worker_of: Callable[[Any], int | None] | None
    keep_workers: bool
    seed: int | None
    max_errors: int | None
