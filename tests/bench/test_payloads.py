"""What SPDL's experiment moves, and how a pass is counted."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.contenders.passes import Passes
from benchmarks.neutral.payloads import TRANSPORT_CONTENDERS, TRANSPORTS, Payloads
from benchmarks.neutral.report import Report
from benchmarks.results import Round, WorkloadResult
from benchmarks.workloads import SPDL_POOL


def test_payloads_have_the_size_they_say():
    assert len(Payloads("bytes", 4096, 1)[0]["data"]) == 4096
    assert Payloads("numpy", 4096, 1)[0]["data"].nbytes == 4096
    torch = pytest.importorskip("torch")
    assert Payloads("torch", 4096, 1)[0]["data"].nbytes == 4096
    assert Payloads("torch", 4096, 1)[0]["data"].dtype == torch.float32


def test_arrays_are_made_once_and_tensors_each_time_anew():
    arrays = [item["data"] for item in Payloads("numpy", 4096, 3)]
    assert len(arrays) == 3
    assert all(np.shares_memory(arrays[0], array) for array in arrays)
    pytest.importorskip("torch")
    tensors = [item["data"] for item in Payloads("torch", 4096, 3)]
    assert len({tensor.data_ptr() for tensor in tensors}) == 3


def test_a_pass_moves_as_many_bytes_whatever_the_payload():
    assert len({workload.batches * workload.batch_bytes for workload in TRANSPORTS.values()}) == 1


def test_a_round_is_whole_passes():
    begun = []

    def begin() -> range:
        begun.append(True)
        return range(4)

    count = Passes(begin, 4, begun.clear).run(0.01)
    assert count.batches == 4 * len(begun) > 0
    assert count.seconds >= 0.01


def test_a_pass_that_lacks_items_is_an_error():
    with pytest.raises(RuntimeError, match="3 items instead of 4"):
        Passes(lambda: range(3), 4, lambda: None).warm_up(1.0)


def test_a_report_has_throughput_ratio_and_cost_of_each_transport():
    workload = TRANSPORTS["numpy_2"]
    result = WorkloadResult(workload)
    for place, name in enumerate(TRANSPORT_CONTENDERS):
        batches = workload.batches / (place + 1)  # the first is Stoker
        result.rounds[name] = [Round(batches, 1.0, 0.5, 10**8)]
    result.errors[SPDL_POOL] = "it broke"
    text = Report({"cpu": "", "cores": 2, "python": "", "versions": {}}, {}, transport=[result]).markdown()
    assert "| numpy, 2 MiB | 0.537 | 0.268 (2.00×) | 0.179 (3.00×) |" in text
    assert "| numpy, 2 MiB | 0.931 s · 100 MB |" in text
    assert "- numpy_2, SPDL, pool: it broke" in text
