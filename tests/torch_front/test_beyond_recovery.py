"""What our loader does and torch's does not: it replaces workers that are killed, and seeds batches by their place."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from tests.torch_front.datasets import (
    Mortal,
    MortalStream,
    Numbers,
    Process,
    Split,
    Uneven,
    die_once,
    drawn,
    identity,
    numbers,
)
from tests.torch_front.resuming import Resumable
from tests.torch_front.sameness import assert_same
from tests.torch_front.samples import SENDABLE, SPECIAL, UNSENDABLE

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data


@pytest.mark.parametrize("workers", [0, 2])
def test_what_is_iterated_is_ours(our_class, workers):
    """And not what torch's class would have made."""
    assert type(iter(our_class(Numbers(2), num_workers=workers))).__module__.startswith("stoker.")


@pytest.mark.parametrize("at", [0, 5, 19])
@pytest.mark.parametrize("persistent", [False, True], ids=["fresh", "persistent"])
def test_a_killed_worker_is_replaced_and_the_batches_are_the_same(our_class, tmp_path, at, persistent):
    loader = our_class(Mortal(tmp_path / "died", at=at), batch_size=2, num_workers=2, persistent_workers=persistent)
    assert numbers(loader) == list(range(20))
    assert (tmp_path / "died").exists()
    assert numbers(loader) == list(range(20))


@pytest.mark.parametrize("at", [0, 5, 19])
def test_a_killed_worker_of_a_stream_is_replaced_and_the_batches_are_the_same(our_class, tmp_path, at):
    loader = our_class(MortalStream(tmp_path / "died", at=at), batch_size=None, num_workers=2)
    assert list(loader) == list(range(20))
    assert (tmp_path / "died").exists()


def test_a_killed_worker_of_a_stream_with_batches(our_class, tmp_path):
    loader = our_class(MortalStream(tmp_path / "died", at=9), batch_size=3, num_workers=2, drop_last=True)
    expected = [batch.tolist() for batch in data.DataLoader(Split(20), batch_size=3, num_workers=2, drop_last=True)]
    assert [batch.tolist() for batch in loader] == expected


class MortalResumable(Resumable):
    def __init__(self, marker):
        super().__init__(20)
        self.marker = str(marker)

    def __iter__(self):
        for number in super().__iter__():
            if number == 13:
                die_once(self.marker)
            yield number


def test_a_killed_worker_of_a_stream_with_a_state(our_class, tmp_path):
    loader = our_class(MortalResumable(tmp_path / "died"), batch_size=None, num_workers=2)
    assert list(loader) == list(range(20))


def test_a_shuffled_epoch_survives_a_kill_in_its_order(our_class, tmp_path):
    torch.manual_seed(2)
    expected = numbers(data.DataLoader(Numbers(20), batch_size=3, shuffle=True, num_workers=2))
    torch.manual_seed(2)
    loader = our_class(Mortal(tmp_path / "died", at=7), batch_size=3, shuffle=True, num_workers=2)
    assert numbers(loader) == expected


def test_a_worker_killed_from_outside_is_replaced(our_class):
    iterator = iter(our_class(Process(30), batch_size=None, collate_fn=identity, num_workers=2))
    first, _ = next(iterator)
    os.kill(first, signal.SIGKILL)
    rest = [pid for pid, _ in iterator]
    assert len(rest) == 29


def test_all_workers_killed_are_replaced(our_class):
    iterator = iter(our_class(Numbers(40), batch_size=2, num_workers=2))
    found = next(iterator).tolist()
    for worker in iterator._workers:
        os.kill(worker.pid, signal.SIGKILL)
    assert found + numbers(iterator) == list(range(40))


def test_a_replaced_worker_has_the_same_number_and_init(our_class, tmp_path):
    class Who(Mortal):
        def __getitem__(self, index):
            super().__getitem__(index)
            return data.get_worker_info().id, self.factor

    def scale(worker):
        data.get_worker_info().dataset.factor = 10 * worker

    loader = our_class(
        Who(tmp_path / "died"), batch_size=None, collate_fn=identity, num_workers=2, worker_init_fn=scale
    )
    assert list(loader) == [(0, 0), (1, 10)] * 10


def test_uneven_streams_survive_a_kill(our_class, tmp_path):
    class MortalUneven(Uneven):
        marker = str(tmp_path / "died")

        def __iter__(self):
            for number in super().__iter__():
                if number == 103:
                    die_once(self.marker)
                yield number

    loader = our_class(MortalUneven(2, 6), batch_size=None, num_workers=2)
    assert list(loader) == [0, 100, 1, 101, 102, 103, 104, 105]


@pytest.mark.parametrize("dataset", [Mortal, MortalStream], ids=["map", "stream"])
def test_without_recovery_a_killed_worker_is_an_error_with_its_pid(our_class, tmp_path, dataset):
    loader = our_class(dataset(tmp_path / "died", at=5), batch_size=None, num_workers=2, recover=False)
    iterator = iter(loader)
    pids = [worker.pid for worker in iterator._workers]
    with pytest.raises(RuntimeError, match=r"pid") as raised:
        list(iterator)
    assert any(str(pid) in str(raised.value) for pid in pids)


def test_torch_itself_raises_with_the_pid(tmp_path):
    """What recover=False is measured by."""
    iterator = iter(data.DataLoader(Mortal(tmp_path / "died", at=5), batch_size=None, num_workers=1))
    (pid,) = [worker.pid for worker in iterator._workers]
    with pytest.raises(RuntimeError, match=rf"pid.*{pid}"):
        list(iterator)
    iterator._shutdown_workers()


def test_workers_that_were_killed_leave_nothing(our_class, tmp_path):
    loader = our_class(Mortal(tmp_path / "died"), num_workers=2)
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    list(loader)
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    assert not psutil.wait_procs(left, timeout=20)[1]


@pytest.mark.parametrize("ends", [True, False], ids=["to the end", "broken off"])
def test_deaths_are_told_when_the_workers_are_gone(our_class, ends):
    loader = our_class(Numbers(40), batch_size=2, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    os.kill(iterator._workers[0].pid, signal.SIGKILL)
    for step, _ in enumerate(iterator):
        if step == 15 and not ends:
            break
    del iterator
    assert loader.stats().deaths == 1


class Augmented(Numbers):
    def __getitem__(self, index):
        return index, drawn()[1:]


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_seed_gives_the_same_augmentation_for_any_number_of_workers(our_class, shuffle):
    def run(workers):
        torch.manual_seed(1)
        loader = our_class(
            Augmented(12), batch_size=3, shuffle=shuffle, num_workers=workers, seed=5, collate_fn=identity
        )
        return [list(loader) for _ in range(2)]

    one, two, three = (run(workers) for workers in (1, 2, 3))
    assert one == two == three
    assert one[0] != one[1]
    assert len({augmentation for batch in one[0] for _, augmentation in batch}) == 12


def test_a_seed_gives_the_same_augmentation_inline(our_class):
    def run(workers):
        loader = our_class(Augmented(6), batch_size=2, num_workers=workers, seed=5, collate_fn=identity)
        return list(loader)

    assert run(0) == run(2)


def test_another_seed_gives_another_augmentation(our_class):
    def run(seed):
        return list(our_class(Augmented(6), batch_size=2, num_workers=2, seed=seed, collate_fn=identity))

    assert run(5) == run(5)
    assert run(5) != run(6)


def test_with_a_seed_a_kill_changes_no_augmentation(our_class, tmp_path):
    class MortalAugmented(Mortal):
        def __getitem__(self, index):
            return super().__getitem__(index), drawn()[1:]

    def run(marker):
        loader = our_class(MortalAugmented(marker), batch_size=2, num_workers=2, seed=5, collate_fn=identity)
        return list(loader)

    assert run(tmp_path / "died") == run(tmp_path / "died")


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning")  # torch, of its own quantized tensors
@pytest.mark.parametrize("name", sorted(UNSENDABLE & (SPECIAL.keys() | {"sparse tensors"})))
def test_tensors_that_torchs_workers_cannot_send(our_class, name):
    tensor = torch.eye(3).to_sparse() if name == "sparse tensors" else SPECIAL[name][0]
    (found,) = our_class([tensor], batch_size=None, num_workers=1)
    assert_same(found, tensor)


def test_what_cannot_be_pickled_is_an_error_and_no_hang(our_class):
    assert "mapping proxies" not in SENDABLE
    loader = our_class(Numbers(1), collate_fn=lambda batch: (number for number in batch), num_workers=1)
    with pytest.raises(Exception, match="pickle"):
        list(loader)


class Deadly(Numbers):
    """One of its samples ends the worker, in one way or another."""

    def __init__(self, end, count=4):
        super().__init__(count)
        self.end = end

    def __getitem__(self, index):
        if index == 1:
            self.end()
        return index


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), r"DataLoader worker \(pid \d+\) is killed by signal: Segm"),
        (lambda: os._exit(3), r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly"),
    ],
    ids=["signal", "exit"],
)
def test_a_batch_that_kills_again_and_again_is_told_of_as_torch_does(our_class, end, message):
    with pytest.raises(RuntimeError, match=message):
        list(our_class(Deadly(end), num_workers=1))
