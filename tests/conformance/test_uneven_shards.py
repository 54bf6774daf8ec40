"""``even_shards=False`` for real: together the shards have each sample just once, for evaluation."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import numpy as np
import pytest

from stoker import Cache, Chunks, Inline, Loader, Processes, Rotation, StateError, Threads
from stoker.testing import assert_resumable
from tests.datasets import Rows


def indices(batches):
    return [int(index) for batch in batches for index in batch[:, 0]]


def make(shard, length=33, size=16, **options):
    return Loader(Rows(length), size, shard=shard, even_shards=False, **options)


def test_33_samples_in_batches_of_16_on_2_shards(backend):
    """With even shards, sample 32 comes in both."""
    with Loader(Rows(33), 16, shard=(0, 2)) as first, Loader(Rows(33), 16, shard=(1, 2)) as second:
        assert Counter(indices(first) + indices(second)) == Counter(range(33)) + Counter([32])
    with make((0, 2), workers=backend) as first, make((1, 2), workers=backend) as second:
        assert (len(first), len(second)) == (2, 1)
        for _ in range(2):
            shares = [[len(batch) for batch in loader] for loader in (first, second)]
            assert shares == [[16, 1], [16]]
        assert Counter(indices(first) + indices(second)) == Counter(range(33))


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("length", [0, 1, 2, 32, 33, 34, 46])
@pytest.mark.parametrize("workers", [Inline(), Threads(3)], ids=repr)
def test_any_number_of_samples(workers, length, in_order):
    found = Counter()
    for rank in range(5):
        with make((rank, 5), length, 4, workers=workers, in_order=in_order, shuffle=True) as loader:
            loader.warm_up()
            for _ in range(3):
                batches = [batch.copy() for batch in loader]
                assert len(batches) == len(loader)
                found.update(indices(batches))
            assert loader.epoch == 3
    assert found == Counter({index: 3 for index in range(length)})


@pytest.mark.parametrize("shard", [(0, 3), (2, 3)])
@pytest.mark.parametrize("options", [{}, {"rotation": Rotation(2)}, {"shuffle": True, "in_order": False}], ids=repr)
def test_it_resumes_at_any_step(shard, options):
    assert_resumable(
        lambda: make(shard, 25, 4, **options),
        resume_with=lambda: make(shard, 25, 4, workers=Threads(2), **options),
        in_order=options.get("in_order", True),
    )


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2), (1, 4), (4, 1)])
@pytest.mark.parametrize("steps", range(5))
def test_it_resumes_with_another_number_of_shards(before, after, steps):
    """Of whichever shard the state is: all save the same."""
    found, states = Counter(), []
    for rank in range(before):
        with make((rank, before), 33, 4, shuffle=True, workers=Threads(1)) as loader:
            found.update(indices(itertools.islice(loader, steps)))
            states.append(json.loads(json.dumps(loader.state_dict())))
    assert states == [states[0]] * before
    for rank in range(after):
        with make((rank, after), 33, 4, shuffle=True) as loader:
            loader.load_state_dict(states[-1])
            if loader.epoch == 0:
                found.update(indices(loader))
    assert found == Counter(range(33))


def test_in_the_last_round_those_without_a_batch_are_at_the_same_epoch_as_the_others():
    """So that ``for epoch in range(loader.epoch, n)`` is as long on every process."""
    with make((0, 2)) as first, make((1, 2)) as second:
        next(iter(first)), next(iter(second))
        state = first.state_dict()
        assert state == second.state_dict()
    with make((0, 2)) as first, make((1, 2)) as second:
        for loader, lengths in ((first, [1, 16, 1]), (second, [16])):
            loader.load_state_dict(state)
            assert loader.epoch == 0
            assert [len(batch) for _ in range(loader.epoch, 2) for batch in loader] == lengths
            assert loader.epoch == 2


def test_a_state_of_even_shards_is_refused():
    with Loader(Rows(33), 16, shard=(0, 2)) as even, make((0, 2)) as uneven:
        with pytest.raises(StateError, match="saved with even_shards=True"):
            uneven.load_state_dict(even.state_dict())
        with pytest.raises(StateError, match="saved with even_shards=False"):
            even.load_state_dict(uneven.state_dict())


def test_rotation_uses_each_sample_just_so_often(backend):
    found = Counter()
    for rank in range(4):
        with make((rank, 4), 11, 4, rotation=Rotation(3), workers=backend, shuffle=True) as loader:
            batches = [batch.copy() for batch in loader]
            assert len(batches) == len(loader)
            found.update(indices(batches))
    assert found == Counter({index: 3 for index in range(11)})


def test_with_a_cache(tmp_path):
    for _ in range(2):
        found = Counter()
        for rank in range(4):
            with make((rank, 4), 33, 4, cache=Cache(tmp_path / "cache"), workers=Processes(1)) as loader:
                found.update(indices(loader))
        assert found == Counter(range(33))


def test_with_drop_last_there_is_nothing_to_choose():
    found = Counter()
    for rank in range(2):
        with make((rank, 2), drop_last=True) as loader, Loader(Rows(33), 16, shard=(rank, 2), drop_last=True) as even:
            assert len(loader) == len(even) == 1
            found.update(indices(loader))
    assert found == Counter(range(32))


@pytest.mark.parametrize("value", [None, 0, "no"])
def test_anything_but_a_flag_is_refused(value):
    with pytest.raises(TypeError, match=r"even_shards is .*: pass True or False"):
        Loader(Rows(33), even_shards=value)


# Files


@pytest.fixture
def folder(tmp_path):
    """11 samples in each of 3 files."""
    for number in range(3):
        np.save(tmp_path / f"{number}.npy", np.repeat(np.arange(number * 11, number * 11 + 11), 2).reshape(11, 2))
    return tmp_path


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("size", [1, 4, 16, 100])
@pytest.mark.parametrize("shards", [1, 2, 5, 40])
def test_files_too(folder, shards, size, shuffle):
    found, counts = Counter(), []
    for rank in range(shards):
        with Loader(Chunks(folder), size, shuffle=shuffle, shard=(rank, shards), even_shards=False) as loader:
            batches = [batch.copy() for batch in loader]
            assert len(batches) == len(loader)
            assert len(list(loader)) == len(batches)
            counts.append(len(batches))
            found.update(indices(batches))
    assert found == Counter(range(33))
    assert max(counts) - min(counts) <= 1


def test_files_resume_and_the_choice_is_part_of_their_state(folder):
    def make(**options):
        return Loader(Chunks(folder), 16, shard=(1, 2), **options)

    assert_resumable(lambda: make(even_shards=False))
    with make() as even, make(even_shards=False) as uneven:
        for one, other, saved in ((even, uneven, "True"), (uneven, even, "False")):
            with pytest.raises(StateError, match=f"saved with even_shards={saved}"):
                other.load_state_dict(one.state_dict())
