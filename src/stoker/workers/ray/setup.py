"""All that an actor needs to make its dataset. It lies in Ray's object store once for each node."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stoker.workers.packing import PackedJob
from stoker.workers.processes.file_settings import FileSettings
from stoker.workers.processes.log_setup import LogSetup
from stoker.workers.processes.warning_filters import WarningFilters

Bytes = np.ndarray[Any, Any]  # which Ray carries out of band, so that actors map them and copy nothing


class Setup(NamedTuple):
    """A packed job and its arrays, and what of the consumer's surroundings makes sense on another machine."""

    pickled: Bytes
    arrays: list[Bytes]
    logs: LogSetup
    warnings: WarningFilters
    files: FileSettings

    @classmethod
    def of(cls, packed: PackedJob) -> Setup:
        pickled, arrays, _ = packed
        settings = LogSetup.here(), WarningFilters.here(), FileSettings.here()
        return cls(_as_bytes(pickled), [_as_bytes(one) for one in arrays], *settings)


def _as_bytes(memory: memoryview) -> Bytes:
    return np.frombuffer(memory, np.uint8)
