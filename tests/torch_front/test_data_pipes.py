"""Data pipes of torch: each epoch draws a seed that all workers share, so that they shuffle alike and then split."""

from __future__ import annotations

from itertools import chain

import pytest

from tests.torch_front.datasets import values

torch = pytest.importorskip("torch", reason="torch is not installed")
pipes = pytest.importorskip("torch.utils.data.datapipes")

OTHERS = torch.utils.data.DataLoader


def shuffled(*, split):
    pipe = pipes.iter.IterableWrapper(range(12)).shuffle()
    return pipe.sharding_filter() if split else pipe


def epochs_of(loader_class, *, split, generator, **options):
    torch.manual_seed(7)
    own = torch.Generator().manual_seed(3) if generator else None
    loader = loader_class(shuffled(split=split), batch_size=2, shuffle=True, generator=own, **options)
    return [values(loader) for _ in range(3)], torch.rand(1).item()


@pytest.mark.parametrize("generator", [False, True], ids=["global", "generator"])
@pytest.mark.parametrize("split", [False, True], ids=["repeated", "split"])
def test_the_order_is_torchs_in_each_epoch(our_class, num_workers, split, generator):
    options = {"split": split, "generator": generator, "num_workers": num_workers}
    assert epochs_of(our_class, **options) == epochs_of(OTHERS, **options)


@pytest.mark.parametrize("generator", [False, True], ids=["global", "generator"])
def test_persistent_workers_get_the_seed_of_each_epoch(our_class, generator):
    options = {"split": True, "generator": generator, "num_workers": 2, "persistent_workers": True}
    assert epochs_of(our_class, **options) == epochs_of(OTHERS, **options)


def test_a_split_pipe_gives_each_sample_once(loader_class, num_workers):
    loader = loader_class(shuffled(split=True), batch_size=2, shuffle=True, num_workers=num_workers)
    assert sorted(chain.from_iterable(values(loader))) == list(range(12))


def test_a_pipe_with_indices(loader_class, num_workers):
    pipe = pipes.map.SequenceWrapper(range(5)).map(lambda number: number * 2)
    assert values(loader_class(pipe, batch_size=2, num_workers=num_workers)) == [[0, 2], [4, 6], [8]]
