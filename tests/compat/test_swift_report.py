"""What a SwiftLoader writes down: its log and its figures."""

from __future__ import annotations

import json
import time

import pytest

from tests.compat.numbered import Numbers, from_json, make, numbered, to_json

WORKERS = 2


class Slow(Numbers):
    def __getitem__(self, index):
        time.sleep(0.002)
        return index


def slow_collation(samples):
    time.sleep(0.01)
    return numbered(samples)


def slow_encoding(batch):
    time.sleep(0.005)
    return to_json(batch)


def run(epochs: int = 2, **options) -> None:
    with make(10, 3, workers=WORKERS, **options) as loader:
        loader.start(0)
        for _ in range(epochs):
            for _batch in loader:
                pass


def lines(file) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_each_epoch_has_its_figures_and_then_the_whole(tmp_path):
    run(3, benchmark_file=str(tmp_path / "figures"))
    found = lines(tmp_path / "figures")
    assert [(line["consumer"], line["epoch"]) for line in found] == [(0, 0), (0, 1), (0, 2), (0, "all")]
    assert [(line["batches"], line["samples"]) for line in found] == [(4, 10)] * 3 + [(12, 30)]
    whole = found.pop()
    assert whole["diagnosis"].startswith(("Training", "Most of the time", "1 "))
    for name in ("waited", "fetching", "writing", "idling", "moving", "elapsed", "nbytes"):
        assert sum(line[name] for line in found) == pytest.approx(whole[name], abs=1e-6)
    for line in found:
        assert sum(worker["batches"] for worker in line["by_worker"]) == 4
        assert len(line["by_worker"]) == WORKERS


def test_fetching_collating_encoding_and_moving_are_told_apart(tmp_path):
    def to_device(batch):
        time.sleep(0.003)
        return batch

    options = {"collate_fn": slow_collation, "batch_encoder": slow_encoding, "batch_decoder": from_json}
    with make(10, 3, workers=WORKERS, dataset_class=Slow, benchmark_file=tmp_path / "figures", **options) as loader:
        loader.start(0, to_device=to_device)
        assert [batch["numbers"] for batch in loader] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    first, _whole = lines(tmp_path / "figures")
    assert first["fetching"] >= 10 * 0.002
    assert first["collating"] >= 4 * 0.01
    assert first["encoding"] >= 4 * 0.005
    assert first["moving"] >= 4 * 0.003
    assert first["writing"] >= first["collating"] + first["encoding"]
    rows = first["by_pid"].values()
    assert sum(row["batches"] for row in rows) == 4
    assert sum(row["collating"] for row in rows) == pytest.approx(first["collating"], abs=1e-6)


def test_an_epoch_that_was_broken_off_is_not_in_the_next_ones_figures(tmp_path):
    with make(10, 3, benchmark_file=tmp_path / "figures") as loader:
        loader.start(0)
        next(iter(loader))
        list(loader)
    assert [(line["epoch"], line["batches"]) for line in lines(tmp_path / "figures")] == [(1, 4), ("all", 5)]


def test_consumers_share_the_file(tmp_path):
    for consumer in (0, 1):
        with make(10, 3, consumers=2, benchmark_file=tmp_path / "figures") as loader:
            loader.start(consumer)
            list(loader)
    assert [line["consumer"] for line in lines(tmp_path / "figures")] == [0, 0, 1, 1]


def test_without_a_file_the_figures_go_to_the_log(tmp_path):
    run(1, logger=str(tmp_path / "logs" / "train"))
    (file,) = (tmp_path / "logs").iterdir()
    assert file.name == "train_consumer_0.log"
    start, epoch, whole = file.read_text().splitlines()
    assert "INFO consumer 0: 4 batches an epoch" in start
    assert json.loads(epoch[epoch.index("{") :])["epoch"] == 0
    assert json.loads(whole[whole.index("{") :])["epoch"] == "all"


def test_with_a_file_they_do_not(tmp_path):
    run(1, logger=str(tmp_path / "log"), benchmark_file=str(tmp_path / "figures"))
    assert len((tmp_path / "log_consumer_0.log").read_text().splitlines()) == 1
    assert len(lines(tmp_path / "figures")) == 2


def test_without_a_log_they_go_nowhere(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    run()
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_benchmark_false_writes_no_figures(tmp_path):
    run(1, benchmark=False, benchmark_file=tmp_path / "figures", logger=str(tmp_path / "log"))
    assert [file.name for file in tmp_path.iterdir()] == ["log_consumer_0.log"]
    assert len((tmp_path / "log_consumer_0.log").read_text().splitlines()) == 1


def test_the_log_goes_to_stdout_too(tmp_path, capsys):
    run(1, logger={"path": str(tmp_path / "log"), "stdout": True})
    assert capsys.readouterr().out == (tmp_path / "log_consumer_0.log").read_text()
    run(1, logger={"stdout": True})
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_the_level_silences_what_is_below_it(tmp_path):
    run(1, logger={"path": str(tmp_path / "log"), "level": "warning"})
    assert (tmp_path / "log_consumer_0.log").read_text() == ""


@pytest.mark.parametrize("option", ["logger", "benchmark_file"])
def test_a_file_that_cannot_be_written_is_an_error_of_start(tmp_path, option):
    (tmp_path / "file").touch()
    with make(10, 3, **{option: str(tmp_path / "file" / "log")}) as loader, pytest.raises(OSError):
        loader.start(0)
