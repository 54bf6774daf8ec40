"""``Mix`` in a loader: sources by weight, each through its own epochs, whoever makes the batches."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker
from stoker import Inline, Loader, Mix, Processes, Threads
from stoker.plan.mixed import MixedStream
from tests.streams import assert_same, epochs

WEB, CODE, BOOKS = range(100), range(1000, 1030), range(2000, 2007)
WEIGHTS = {"web": 0.6, "code": 0.3, "books": 0.1}


def mix(weights=WEIGHTS, **options):
    return Mix({"web": WEB, "code": CODE, "books": BOOKS}, weights, **options)


def samples(loader, count=1):
    return [sample for epoch in epochs(loader, count) for batch in epoch for sample in batch.tolist()]


def source_of(sample):
    return ["web", "code", "books"][sample // 1000]


class Numbers:
    """A dataset without arrays, of any length."""

    def __init__(self, length, first=0):
        self.length, self.first = length, first

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return {"x": self.first + index}


class Together(Numbers):
    """Notes which samples were asked for in one call."""

    def __init__(self, length, first=0):
        super().__init__(length, first)
        self.calls = []

    def __getitems__(self, indices):
        self.calls.append(list(indices))
        return [self[index] for index in indices]


class Failing(Numbers):
    def __getitem__(self, index):
        if index % 5 == 3:
            raise KeyError(f"no {index}")
        return super().__getitem__(index)


def test_after_each_batch_sources_have_their_shares():
    with Loader(mix(), 10, shuffle=True) as loader:
        found = samples(loader)
    for stop in range(10, len(found) + 1, 10):
        counted = Counter(map(source_of, found[:stop]))
        assert all(abs(counted[name] - stop * weight) <= 1 for name, weight in WEIGHTS.items())


@pytest.mark.parametrize("by", ["quota", "chance"])
def test_each_source_has_each_sample_once_an_epoch_of_its_own(by):
    """Over the borders of the loader's epochs, which are not theirs."""
    with Loader(mix(by=by, length=130), 7, shuffle=True, seed=3) as loader:
        found = samples(loader, 9)
    for name, source in {"web": WEB, "code": CODE, "books": BOOKS}.items():
        own = [sample for sample in found if source_of(sample) == name]
        assert len(own) > 3 * len(source)
        for start in range(0, len(own) - len(source) + 1, len(source)):
            assert sorted(own[start : start + len(source)]) == list(source)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 9)), min_size=1, max_size=5),
    st.sampled_from(["first", "all"]),
    st.sampled_from(["quota", "chance"]),
)
def test_an_epoch_ends_where_a_naive_model_says(sources, ends, by):
    lengths, weights = [length for length, _ in sources], [float(weight) for _, weight in sources]
    found = Mix([range(length) for length in lengths], weights, ends=ends, by=by)
    stream = MixedStream.of([(0, tuple(weights))], by, 0).assigned(0, 20_000)[0].tolist()
    counts, expected = [0] * len(lengths), None
    for position, source in enumerate(stream):
        if ends == "first" and counts[source] == lengths[source]:
            expected = position
            break
        counts[source] += 1
        if ends == "all" and all(count >= length for count, length in zip(counts, lengths, strict=True)):
            expected = position + 1
            break
    assert len(Loader(found, 1)) == expected


def test_the_next_epoch_goes_on_where_the_last_one_ended():
    with Loader(mix(length=50), 10, shuffle=True) as short, Loader(mix(length=150), 10, shuffle=True) as long:
        assert samples(short, 3) == samples(long)


def test_a_mix_that_never_ends_goes_on_and_has_no_length():
    with Loader(mix(ends="never"), 50, shuffle=True) as loader:
        found = []
        for _ in range(3):  # each loop goes on where the last one was left
            for count, batch in enumerate(loader):
                found += batch.tolist()
                if count == 12:
                    break
        with pytest.raises(TypeError, match="ends='never'"):
            len(loader)
        loader.set_epoch(1)
        with pytest.raises(ValueError, match="it has epoch 0 only"):
            next(iter(loader))
    with Loader(mix(length=len(found)), 50, shuffle=True) as loader:
        assert samples(loader) == found


@pytest.mark.parametrize("workers", [Inline(), Threads(2), Processes(2)])
@pytest.mark.parametrize("shuffle", [False, True, 5])
def test_the_stream_is_the_same_on_any_backend(workers, shuffle):
    with Loader(mix(tag="source"), 8, shuffle=shuffle) as loader:
        expected = epochs(loader, 2)
    with Loader(mix(tag="source"), 8, shuffle=shuffle, workers=workers) as loader:
        assert_same(epochs(loader, 2), expected)


@pytest.mark.parametrize("shards", [2, 3])
def test_shards_together_have_the_stream_of_one(shards):
    with Loader(mix(length=120), 12, shuffle=True) as loader:
        expected = samples(loader, 2)
    found = []
    for shard in range(shards):
        with Loader(mix(length=120), 12 // shards, shuffle=True, shard=(shard, shards)) as loader:
            found.append([batch for epoch in epochs(loader, 2) for batch in epoch])
    assert [
        sample for batches in zip(*found, strict=True) for batch in batches for sample in batch.tolist()
    ] == expected


def test_out_of_order_each_batch_still_comes_once():
    with Loader(mix(length=300), 10, shuffle=True, workers=Threads(3), in_order=False) as loader:
        found = [tuple(batch.tolist()) for batch in loader]
    with Loader(mix(length=300), 10, shuffle=True) as loader:
        assert Counter(found) == Counter(tuple(batch.tolist()) for batch in loader)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_weights_may_be_a_tensor(dtype):
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, dtype)
    sources = {"a": list(range(30)), "b": list(range(100, 110))}
    loaders = [Loader(Mix(sources, weights), 4) for weights in (torch.tensor([3, 1], dtype=dtype), [3, 1])]
    assert_same(*([batch.tolist() for batch in loader] for loader in loaders))
    with pytest.raises(ValueError, match="3 for 2 sources"):
        Mix(sources, torch.tensor([3, 1, 1]))


def test_weights_by_default_are_the_lengths():
    with Loader(mix(None), 137) as loader:
        assert sorted(samples(loader)) == [*WEB, *CODE, *BOOKS]


def test_a_tag_says_where_a_sample_came_from():
    rows = Mix({"a": Numbers(10), "b": Numbers(10, 100)}, tag="source")
    with Loader(rows, 6) as loader:
        for batch in loader:
            assert (batch["source"] == batch["x"] // 100).all()
    with Loader(mix(tag="source"), 6) as loader:
        for values, numbers in loader:
            assert (numbers == values // 1000).all()
    with (
        Loader(Mix([Numbers(3)], tag="x"), 2) as loader,
        pytest.raises(ValueError, match="have a key 'x' already: pass another tag="),
    ):
        next(iter(loader))


def test_a_source_is_asked_once_a_batch_for_all_of_its_samples():
    first, second = Together(50), Together(50, 100)
    with Loader(Mix([first, second]), 10, workers=Inline()) as loader:
        batch = next(iter(loader))
    assert batch["x"].tolist() == [0, 100, 1, 101, 2, 102, 3, 103, 4, 104]
    assert first.calls[0] == second.calls[0] == [0, 1, 2, 3, 4]


ROWS, OTHERS = np.arange(80.0).reshape(40, 2), np.arange(100.0, 180.0).reshape(40, 2)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ROWS, OTHERS),
        ({"x": ROWS}, {"x": OTHERS}),
        ({"x": ROWS}, [{"x": row} for row in OTHERS]),
        (ROWS, OTHERS.astype("float32")),
        (ROWS, np.asfortranarray(OTHERS)),
        ({"x": ROWS, "y": ROWS[:, 0]}, {"y": OTHERS[:, 0].copy(), "x": OTHERS}),
    ],
)
@pytest.mark.parametrize("workers", [Inline(), Threads(2)])
def test_batches_of_arrays_are_what_their_rows_one_by_one_give(one, other, workers):
    """Rows of arrays are gathered at once, where all sources have them in the same form."""

    def rows(source):
        return [source[index] for index in range(40)] if not isinstance(source, dict) else Rows(source)

    with Loader(Mix([one, other], [2, 1]), 7, shuffle=True, workers=workers) as loader:
        found = epochs(loader, 2)
    with Loader(Mix([rows(one), rows(other)], [2, 1]), 7, shuffle=True) as loader:
        assert_same(found, epochs(loader, 2))


class Rows:
    def __init__(self, columns):
        self.columns = columns

    def __len__(self):
        return 40

    def __getitem__(self, index):
        return {name: column[index] for name, column in self.columns.items()}


@pytest.mark.parametrize("workers", [Inline(), Processes(1)])
def test_samples_that_fail_are_left_out_and_their_source_is_named(workers, caplog, tmp_path):
    broken = Mix({"good": Numbers(20), "bad": Failing(20, 100)})
    with Loader(broken, 8, workers=workers, on_error="skip") as loader:
        found = [x for batch in loader for x in batch["x"].tolist()]
    assert sorted(found) == [*range(20), *(100 + i for i in range(20) if i % 5 != 3)]
    with Loader(broken, 8, workers=workers) as loader, pytest.raises(KeyError) as caught:
        list(loader)
    assert any("source 'bad'" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("workers", [Inline(), Processes(1)])
def test_a_sample_that_fails_is_replaced_by_one_of_its_source(workers):
    broken = Mix({"good": Numbers(20), "bad": Failing(20, 100)})
    with Loader(broken, 8, workers=workers, on_error="replace") as loader:
        found = [x for batch in loader for x in batch["x"].tolist()]
    assert [x // 100 for x in found] == [0, 1] * 20
    assert not any(x % 5 == 3 for x in found if x >= 100)


class Flaky(Numbers):
    """Each sample fails when it is first asked for."""

    def __init__(self, length, first=0):
        super().__init__(length, first)
        self.calls = Counter()

    def __getitem__(self, index):
        self.calls[index] += 1
        if self.calls[index] == 1:
            raise OSError("not yet")
        return super().__getitem__(index)


def test_a_read_that_fails_is_tried_again_sample_by_sample():
    flaky = Flaky(10, 100)
    with Loader(Mix([Numbers(10), flaky]), 10, retry=stoker.Retry(3, backoff=0.0)) as loader:
        assert sorted(x for batch in loader for x in batch["x"].tolist()) == [*range(10), *range(100, 110)]
    assert flaky.calls == Counter(dict.fromkeys(range(10), 2))


def test_which_samples_are_in_a_batch_and_any_batch_is_the_next_one():
    found = mix(length=100)
    with Loader(found, 10, shuffle=True) as loader:
        batches = [[batch.tolist() for batch in epoch] for epoch in epochs(loader, 2)]
        for epoch, step in [(0, 0), (0, 7), (1, 3)]:
            assert [found[index] for index in loader.indices(epoch, step)] == batches[epoch][step]
            loader.seek(epoch, step)
            assert next(iter(loader)).tolist() == batches[epoch][step]
        loader.seek(0, 8)
        loader.skip(4)
        assert next(iter(loader)).tolist() == batches[1][2]
    with Loader(mix(ends="never"), 10, shuffle=True) as loader:
        loader.skip(10**6)
        assert next(iter(loader)).tolist() == [found[index] for index in loader.indices(0, 10**6)]


def test_a_number_of_a_sample_leads_to_its_source():
    assert [mix().locate(index) for index in (0, 99, 100, 136)] == [("web", 0), ("web", 99), ("code", 0), ("books", 6)]
    assert [mix()[index] for index in (0, 99, 100, 136)] == [0, 99, 1000, 2006]
    assert len(mix()) == 137
    with pytest.raises(IndexError, match="index 137 is out of range"):
        mix().locate(137)


def test_a_cache_keeps_samples_also_when_the_weights_are_others(tmp_path):
    """What sample i is does not depend on them."""

    def made(weights):
        found = Mix({"a": Numbers(30), "b": Numbers(30, 100)}, weights, length=60)
        with Loader(found, 10, cache=stoker.Cache(tmp_path / "cache")) as loader:
            values = [x for batch in loader for x in batch["x"].tolist()]
            return Counter(x // 100 for x in values), loader.stats()

    assert made([1, 1])[0] == {0: 30, 1: 30}
    counts, stats = made([1, 2])
    assert counts == {0: 20, 1: 40}
    assert stats.samples == 60


def test_ten_sources_of_a_billion_samples_begin_at_once_and_in_little_memory():
    huge = Mix({f"s{i}": Numbers(10**9) for i in range(10)}, [2.0**-i for i in range(10)])
    tracemalloc.start()
    with Loader(huge, 256, shuffle=True) as loader:
        batch = next(iter(loader))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(batch["x"]) == 256
    assert peak < 20 * 2**20


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Mix({}), ValueError, "no sources"),
        (lambda: Mix(5), TypeError, "by name"),
        (lambda: Mix({"a": []}), ValueError, "'a' has no samples"),
        (lambda: Mix({1: [1]}), TypeError, "no str"),
        (lambda: Mix({"a": 3}), TypeError, "has no __getitem__"),
        (lambda: Mix({"a": Numbers}), TypeError, "makes a dataset"),
        (lambda: Mix({"a": mix()}), TypeError, "is a Mix itself"),
        (lambda: Mix({"a": stoker.Chunks("x.csv")}), TypeError, "is a Chunks, whose samples have no numbers"),
        (lambda: mix({"web": 1}), ValueError, "no weight for 'code'"),
        (lambda: mix({**WEIGHTS, "wiki": 1}), ValueError, "'wiki', which is no source"),
        (lambda: mix([1, 2]), ValueError, "2 for 3 sources"),
        (lambda: mix([1, -1, 1]), ValueError, "'code' is -1"),
        (lambda: mix([1, float("nan"), 1]), ValueError, "'code' is nan"),
        (lambda: mix([1, float("inf"), 1]), ValueError, "'code' is inf"),
        (lambda: mix([1, 10**400, 1]), ValueError, "pass a finite number"),
        (lambda: Mix([("web", range(3)), ("code", range(3))]), TypeError, "pass a dict"),
        (lambda: mix([0, 0, 0]), ValueError, "all weights are 0"),
        (lambda: mix(["1", 1, 1]), TypeError, "'web' is '1'"),
        (lambda: mix(3), TypeError, "weights=3"),
        (lambda: mix([(5, WEIGHTS)]), ValueError, "the first of which is 0"),
        (lambda: mix([(0, WEIGHTS), (0, WEIGHTS)]), ValueError, "rising steps"),
        (lambda: mix([(0, WEIGHTS), 3]), TypeError, "in a schedule"),
        (lambda: mix(by="luck"), ValueError, "'quota' or 'chance'"),
        (lambda: mix(ends="soon"), ValueError, "'first', 'all' or 'never'"),
        (lambda: mix(length=0), ValueError, "length=0"),
        (lambda: mix(length=5, ends="all"), ValueError, "pass one of them"),
        (lambda: mix(tag=3), TypeError, "tag=3"),
        (lambda: Loader(mix([1, 0, 1], ends="all")), ValueError, "'code' never comes to its end"),
        (lambda: Loader(mix(), order=[1, 2]), ValueError, "order= with a Mix"),
        (lambda: Loader(mix(), rotation=stoker.Rotation(2)), ValueError, "leave rotation out"),
    ],
)
def test_bad_arguments_are_refused_with_a_remedy(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_function_that_makes_a_mix_is_refused():
    with Loader(lambda: mix(), 4) as loader, pytest.raises(TypeError, match="pass the Mix itself"):
        next(iter(loader))
