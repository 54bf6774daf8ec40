"""What comes out of chunk files: every sample once, in an order that follows from plan and seed alone."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker import Chunks, Loader, Processes, StateError, Threads
from tests.chunks.files import cut, epochs, flat, load, numbers, write_chunks

SIZES = [3, 5, 7, 0, 1, 12]
TOTAL = sum(SIZES)

shapes = st.fixed_dictionaries(
    {
        "sizes": st.lists(st.integers(0, 12), min_size=1, max_size=8).filter(any),
        "batch_size": st.integers(1, 9),
        "interleave": st.integers(1, 4),
        "shuffle": st.booleans(),
        "seed": st.integers(0, 5),
    }
)


@pytest.fixture
def folder(tmp_path):
    write_chunks(tmp_path / "data", SIZES)
    return tmp_path / "data"


@given(shapes, st.booleans())
@settings(max_examples=40)
def test_each_sample_comes_once_an_epoch_in_full_batches(shape, drop_last):
    sizes, size = shape.pop("sizes"), shape.pop("batch_size")
    total = sum(sizes)
    with tempfile.TemporaryDirectory() as folder:
        write_chunks(Path(folder), sizes)
        for batches in load(Path(folder), size, drop_last=drop_last, **shape):
            assert [len(batch) for batch in batches[:-1]] == [size] * (len(batches) - 1)
            found = Counter(flat(batches))
            assert max(found.values(), default=1) == 1
            assert sum(found.values()) == (total - total % size if drop_last else total)
            if not shape["shuffle"]:
                assert batches == cut(list(range(total)), size)[: len(batches)]


@given(shapes)
@settings(max_examples=30)
def test_without_crossing_each_batch_has_samples_of_one_file(shape):
    sizes, size = shape.pop("sizes"), shape.pop("batch_size")
    with tempfile.TemporaryDirectory() as folder:
        write_chunks(Path(folder), sizes)
        with Loader(Chunks(folder, interleave=shape.pop("interleave"), across_chunks=False), size, **shape) as loader:
            for _ in range(2):
                seen = [(numbers(batch), batch["file"].tolist()) for batch in loader]
                assert all(len(set(files)) == 1 for _, files in seen)
                assert sorted(flat([batch for batch, _ in seen])) == list(range(sum(sizes)))
                expected = Counter(len(part) for many in sizes for part in cut(list(range(many)), size))
                assert Counter(len(batch) for batch, _ in seen) == expected


@given(shapes, st.integers(1, 5))
@settings(max_examples=30)
def test_shards_have_equal_numbers_of_batches_and_together_everything(shape, shards):
    sizes, size = shape.pop("sizes"), shape.pop("batch_size")
    with tempfile.TemporaryDirectory() as folder:
        write_chunks(Path(folder), sizes)
        found = [load(Path(folder), size, shard=(shard, shards), **shape) for shard in range(shards)]
        for epoch in range(2):
            assert len({len(shard[epoch]) for shard in found}) == 1
            together = Counter(number for shard in found for number in flat(shard[epoch]))
            assert set(together) == set(range(sum(sizes)))
            if sum(sizes) % (size * shards) >= shards or sum(sizes) % (size * shards) == 0:
                assert set(together.values()) == {1}


@given(
    shapes,
    st.lists(st.tuples(st.integers(0, 12), st.integers(1, 3)), max_size=4),
    st.booleans(),
    st.sampled_from([(0, 1), (0, 2), (1, 2), (2, 3), None]),
)
@settings(max_examples=25)
def test_it_resumes_anywhere_and_again(shape, stops, in_order, shard):
    """Contract: after load_state_dict, the stream goes on with the next batch that was not taken, with any number of
    workers. A shard of None: batches do not cross the borders of files."""
    sizes, size = shape.pop("sizes"), shape.pop("batch_size")
    interleave = shape.pop("interleave")

    def make(workers: int = 2) -> Loader:
        chunks = Chunks(folder, interleave=interleave, across_chunks=shard is not None)
        return Loader(chunks, size, workers=Threads(workers), in_order=in_order, shard=shard, **shape)

    with tempfile.TemporaryDirectory() as folder:
        write_chunks(Path(folder), sizes)
        with make() as loader:
            whole = epochs(loader, 2)
        got: list[list[list[int]]] = [[], []]
        state = None
        for stop, workers in [*stops, (None, 1)]:
            with make(workers) as loader:
                if state is not None:
                    loader.load_state_dict(state)
                    assert json.loads(json.dumps(loader.state_dict())) == state
                taken = 0
                while loader.epoch < 2 and taken != stop:
                    epoch = loader.epoch
                    for batch in loader:
                        got[epoch].append(numbers(batch))
                        taken += 1
                        if taken == stop:
                            break
                state = json.loads(json.dumps(loader.state_dict()))
    if in_order:
        assert got == whole
    else:
        assert [Counter(flat(epoch)) for epoch in got] == [Counter(flat(epoch)) for epoch in whole]


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_stream_is_the_same_for_every_backend(folder, backend, shuffle):
    """Contract: the same stream for any backend and any number of workers."""
    options = {"shuffle": shuffle, "interleave": 2, "seed": 3}
    assert load(folder, 4, workers=backend, **options) == load(folder, 4, **options)


def test_epochs_differ_and_seeds_do_too(folder):
    one, other = load(folder, 4, shuffle=True)
    assert one != other
    assert load(folder, 4, shuffle=True, seed=1)[0] != one
    with Loader(Chunks(folder, interleave=1), 4, shuffle=True) as loader:
        loader.set_epoch(1)
        assert epochs(loader, 1) == [other]


def test_a_loop_that_was_left_is_over(folder):
    with Loader(Chunks(folder, interleave=1), 4, shuffle=True, workers=Threads(1)) as loader:
        for _ in loader:
            break
        assert loader.epoch == 0
        assert epochs(loader, 1) == load(folder, 4, shuffle=True)[1:]


def test_resuming_in_the_middle_reads_no_file_before(folder, tmp_path):
    log = tmp_path / "log"

    def read(path):
        with open(log, "a") as file:
            file.write(path[-11:-6] + "\n")
        with open(path) as lines:
            yield from map(json.loads, lines)

    def make() -> Loader:
        return Loader(Chunks(folder, read, interleave=1), 3, shuffle=True, seed=1)

    with make() as loader:
        whole = epochs(loader, 1)[0]
    order = log.read_text().split()
    with make() as loader:
        iterator = iter(loader)
        got = [numbers(next(iterator)) for _ in range(len(whole) - 1)]
        state = loader.state_dict()
    log.write_text("")
    with make() as loader:
        loader.load_state_dict(state)
        got += [numbers(batch) for batch in loader]
    assert got == whole
    assert set(log.read_text().split()) < set(order[-4:])  # what was waiting for others, and what is left


def test_a_batch_may_be_held_and_never_changes(folder):
    """Contract: a held batch never changes."""
    with Loader(Chunks(folder, interleave=1), 4, shuffle=True, workers=2) as loader:
        held = [batch for _ in range(6) for batch in loader]
        assert [numbers(batch) for batch in held] == flat(load(folder, 4, 6, shuffle=True))  # type: ignore[arg-type]


def test_columns_and_samples_of_their_own_kind(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(12).reshape(6, 2))
    np.save(tmp_path / "b.npy", np.arange(12, 18).reshape(3, 2))
    with Loader(Chunks(tmp_path), 4) as loader:
        assert [batch.tolist() for batch in loader] == [
            [[0, 1], [2, 3], [4, 5], [6, 7]],
            [[8, 9], [10, 11], [12, 13], [14, 15]],
            [[16, 17]],
        ]
        assert len(loader) == 3


def test_single_samples(folder):
    with Loader(Chunks(folder, interleave=1), None, workers=Threads(2)) as loader:
        assert [sample["number"] for sample in loader] == list(range(TOTAL))


def test_a_collate_of_ones_own_gets_lists_of_samples(folder):
    with Loader(
        Chunks(folder, interleave=1), 4, collate=lambda samples: [s["number"] for s in samples], workers=2
    ) as loader:
        assert list(loader) == cut(list(range(TOTAL)), 4)


def test_random_numbers_follow_from_the_group_and_not_from_the_worker(folder):
    def noise(samples):
        return np.random.rand(len(samples))

    def draw(workers):
        with Loader(Chunks(folder, interleave=1), 4, shuffle=True, collate=noise, workers=workers) as loader:
            return [batch.tolist() for _ in range(2) for batch in loader]

    assert draw(0) == draw(2) == draw(Threads(3))


def test_to_and_stats(folder):
    with Loader(Chunks(folder, interleave=1), 4, to=lambda batch: batch["number"].sum(), workers=2) as loader:
        assert sum(map(int, loader)) == sum(range(TOTAL))
        stats = loader.stats()
        assert (stats.batches, stats.samples) == (7, TOTAL)


def test_it_pickles_before_its_first_use(folder):
    import pickle

    with Loader(Chunks(folder, interleave=1), 4, shuffle=True, workers=2) as loader:
        with pickle.loads(pickle.dumps(loader)) as copy:
            assert epochs(copy, 2) == load(folder, 4, shuffle=True)


@pytest.mark.parametrize("workers", [Threads(2), 2, Processes(2, start="fork")], ids=repr)
def test_dropped_it_ends_with_the_garbage(folder, workers):
    """Contract: nothing is left behind; the fixture of all tests looks."""
    for _ in Loader(Chunks(folder, interleave=1), 4, workers=workers):
        break


class TestStates:
    """A state that does not fit is refused, with words."""

    @pytest.fixture
    def state(self, folder):
        with Loader(Chunks(folder, interleave=1), 4, shuffle=True) as loader:
            next(iter(loader))
            return loader.state_dict()

    def test_of_another_plan(self, folder, state):
        with Loader(Chunks(folder, interleave=1), 5, shuffle=True) as loader:
            with pytest.raises(StateError, match="batch_size=4 and this loader has batch_size=5"):
                loader.load_state_dict(state)

    def test_of_other_files(self, folder, state):
        (folder / "more.jsonl").write_text('{"number": 1, "file": 9}\n')
        with Loader(Chunks(folder, interleave=1), 4, shuffle=True) as loader:
            with pytest.raises(StateError, match="the files are not those"):
                loader.load_state_dict(state)

    def test_of_another_shard(self, folder, state):
        with Loader(Chunks(folder, interleave=1), 4, shuffle=True, shard=(0, 2)) as loader:
            with pytest.raises(StateError, match="each shard reads its own part"):
                loader.load_state_dict(state)

    def test_damaged(self, folder, state):
        with Loader(Chunks(folder, interleave=1), 4, shuffle=True) as loader:
            with pytest.raises(StateError, match="damaged"):
                loader.load_state_dict(state | {"place": 2})
            with pytest.raises(StateError, match="not one of a loader of chunks"):
                loader.load_state_dict({"stoker_state": 2})

    def test_at_the_end_of_an_epoch_all_may_change(self, folder):
        with Loader(Chunks(folder, interleave=1), 4, shuffle=True) as loader:
            epochs(loader, 1)
            state = loader.state_dict()
        (folder / "more.jsonl").write_text('{"number": 28, "file": 9}\n')
        with Loader(Chunks(folder, interleave=1), 4, shuffle=True, shard=(0, 1)) as loader:
            loader.load_state_dict(state)
            assert loader.epoch == 1
            assert sorted(flat(epochs(loader, 1)[0])) == list(range(29))
