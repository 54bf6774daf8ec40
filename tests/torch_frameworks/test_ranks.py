"""Two processes that train one model, with gloo: DistributedDataParallel, and Accelerate."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from tests.torch_frameworks.ranks import run_ranks


def test_distributed_data_parallel_trains_and_resumes_on_ours():
    ranks = run_ranks("tests.torch_frameworks.train_ddp")
    assert [rank["types"] for rank in ranks] == [["InWorkers"] * 2] * 2
    for epoch in range(2):
        taken = [number for rank in ranks for batch in rank["batches"][3 * epoch : 3 * epoch + 3] for number in batch]
        assert sorted(taken) == list(range(22)), "both ranks together see each sample once an epoch"
    assert [rank["rest"] for rank in ranks] == [rank["batches"][4:] for rank in ranks]
    assert ranks[0]["weight"] == ranks[1]["weight"]


def test_accelerate_gives_each_of_two_processes_its_part(tmp_path):
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    ranks = run_ranks("tests.torch_frameworks.train_accelerate", tmp_path)
    assert [rank["types"] for rank in ranks] == [["InWorkers"] * 5] * 2
    assert [len(set(rank["pids"])) for rank in ranks] == [1, 1]
    taken = [number for rank in ranks for batch in rank["batches"] for number in batch]
    assert len(taken) == 24
    assert sorted(set(taken)) == list(range(22)), "two samples are there twice, so that batches are even"
    assert [rank["synced"] for rank in ranks] == [[False, True, True]] * 2
    assert [rank["rest"] for rank in ranks] == [rank["batches"][2:] for rank in ranks]
    in_order = [list(range(8)), list(range(8, 16)), list(range(16, 22))]
    assert [rank["gathered"] for rank in ranks] == [in_order] * 2
    assert [rank["streamed"] for rank in ranks] == [in_order] * 2
    assert [rank["skipped"] for rank in ranks] == [[[16, 17, 18, 19]], [[20, 21, 0, 1]]]
