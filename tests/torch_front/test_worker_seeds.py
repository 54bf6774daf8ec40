"""Random numbers in workers are those that torch's workers draw."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.torch_front.datasets import Drawing, DrawingStream, Informed, Numbers, drawn, identity

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data

WORKERS = [1, 2, pytest.param(3, marks=pytest.mark.exhaustive)]


def base_seed():
    return torch.empty((), dtype=torch.int64).random_().item()


def streams(seed, worker, count):
    """What the streams of one worker give, from what torch does to seed them."""
    generator = torch.Generator().manual_seed(seed + worker)
    python = random.Random(seed + worker)
    array = np.random.RandomState(torch.utils.data._utils.worker._generate_state(seed, worker))
    return [
        (
            seed + worker,
            python.random(),
            int(array.randint(1 << 30)),
            float(torch.rand((), dtype=torch.float64, generator=generator)),
        )
        for _ in range(count)
    ]


def interleaved(seed, workers, rounds):
    columns = [streams(seed, worker, rounds) for worker in range(workers)]
    return [column[step] for step in range(rounds) for column in columns]


@pytest.fixture(autouse=True)
def seed():
    """The base seed of the next iterator."""
    torch.manual_seed(4321)
    with torch.random.fork_rng():
        return base_seed()


@pytest.mark.parametrize("workers", WORKERS)
def test_map_style_workers_draw_what_torchs_draw(loader_class, seed, workers):
    loader = loader_class(Drawing(3 * workers), batch_size=None, collate_fn=identity, num_workers=workers)
    assert list(loader) == interleaved(seed, workers, 3)


@pytest.mark.parametrize("workers", WORKERS)
def test_streams_in_workers_draw_what_torchs_draw(loader_class, seed, workers):
    loader = loader_class(DrawingStream(3), batch_size=None, collate_fn=identity, num_workers=workers)
    assert list(loader) == interleaved(seed, workers, 3)


def test_batches_draw_in_the_order_of_their_samples(loader_class, seed):
    loader = loader_class(Drawing(8), batch_size=2, collate_fn=identity, num_workers=2)
    zero, one = streams(seed, 0, 4), streams(seed, 1, 4)
    assert list(loader) == [zero[:2], one[:2], zero[2:], one[2:]]


def test_collate_fn_draws_from_the_workers_streams(loader_class, seed):
    loader = loader_class(Numbers(4), collate_fn=lambda batch: drawn(), num_workers=2)
    assert list(loader) == interleaved(seed, 2, 2)


def test_each_epoch_of_fresh_workers_has_other_seeds(loader_class):
    with torch.random.fork_rng():
        seeds = [base_seed(), base_seed()]
    loader = loader_class(Drawing(4), batch_size=None, collate_fn=identity, num_workers=2)
    assert [list(loader), list(loader)] == [interleaved(each, 2, 2) for each in seeds]


def test_persistent_workers_go_on_with_their_streams(loader_class, seed):
    loader = loader_class(
        Drawing(4), batch_size=None, collate_fn=identity, num_workers=2, persistent_workers=True, prefetch_factor=1
    )
    assert list(loader) + list(loader) == interleaved(seed, 2, 4)


def test_the_generator_of_the_loader_seeds_the_workers(loader_class):
    given, copy = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    seed = torch.empty((), dtype=torch.int64).random_(generator=copy).item()
    loader = loader_class(Drawing(4), batch_size=None, collate_fn=identity, num_workers=2, generator=given)
    assert list(loader) == interleaved(seed, 2, 2)


def test_shuffle_does_not_change_the_seeds_of_workers(loader_class, seed):
    loader = loader_class(Drawing(4), batch_size=None, shuffle=True, collate_fn=identity, num_workers=2)
    assert list(loader) == interleaved(seed, 2, 2)


def test_worker_info_has_the_seed(loader_class, seed):
    loader = loader_class(Informed(4), batch_size=None, collate_fn=identity, num_workers=2)
    assert [info[2] for info in loader] == [seed, seed + 1] * 2


def test_an_extreme_seed_is_taken_as_it_is(loader_class):
    torch.manual_seed(-1)
    with torch.random.fork_rng():
        seed = base_seed()
    assert list(loader_class(Drawing(2), batch_size=None, collate_fn=identity, num_workers=1)) == streams(seed, 0, 2)


def test_workers_compute_with_one_thread(loader_class):
    class Threads(Numbers):
        def __getitem__(self, index):
            return torch.get_num_threads()

    assert list(loader_class(Threads(2), batch_size=None, num_workers=2)) == [1, 1]


def test_this_process_keeps_its_seed(loader_class, num_workers):
    torch.manual_seed(77)
    list(loader_class(Numbers(4), num_workers=num_workers))
    assert torch.initial_seed() == 77


def test_default_dtype_reaches_the_workers(loader_class):
    class Made(Numbers):
        def __getitem__(self, index):
            return torch.ones(1)

    torch.set_default_dtype(torch.float64)
    try:
        batches = list(loader_class(Made(2), num_workers=1))
    finally:
        torch.set_default_dtype(torch.float32)
    assert [batch.dtype for batch in batches] == [torch.float64] * 2
