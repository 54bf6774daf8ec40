"""``assert_deterministic`` passes streams that are the same, and names the first batch that is not."""

from __future__ import annotations

import pytest

from stoker import Loader, Threads
from stoker.testing import assert_deterministic
from tests.datasets import Augmented, Forest, Rows
from tests.testing.fakes import Counting, Entropic, Fake, Scattered


def loader(dataset=Augmented, workers=0, **options):
    return Loader(dataset(40), 5, workers=workers, **{"shuffle": True, "seed": 3, **options})


def test_a_good_dataset_passes_on_every_backend(backend):
    assert_deterministic(loader, lambda: loader(workers=backend), lambda: loader(workers=backend, prefetch=5))


def test_a_single_function_is_called_twice():
    made = []

    def make():
        made.append(loader(Forest))
        return made[-1]

    assert_deterministic(make)
    assert len(made) == 2


def test_out_of_order_streams_are_compared_as_multisets():
    assert_deterministic(loader, lambda: loader(workers=Threads(4), in_order=False), in_order=False, epochs=3)
    assert_deterministic(Scattered, in_order=False)
    with pytest.raises(AssertionError, match="epoch 0, batch"):
        assert_deterministic(lambda: Scattered(batches=50))


@pytest.mark.parametrize("source", ["urandom", "system", "generator"])
def test_randomness_that_no_seed_reaches_is_found(source, backend):
    def make(workers):
        return Loader(Entropic(40, source), 5, workers=workers)

    with pytest.raises(AssertionError, match=r"epoch 0, batch 0: batch\['drawn'\]\[0\] is \d+, not \d+; 5 of 5"):
        assert_deterministic(lambda: make(backend))


def test_a_dataset_that_knows_its_process_is_found():
    def make(workers):
        return Loader(Entropic(40, "process"), 5, workers=workers)

    with pytest.raises(AssertionError, match=r"others\[0\].*epoch 0, batch 0: batch\['drawn'\]"):
        assert_deterministic(lambda: make(0), lambda: make(1))


def test_a_dataset_that_counts_its_calls_is_found():
    one = Counting(40)
    with pytest.raises(AssertionError, match=r"the second loader.*epoch 0, batch 0: batch\[0, 0\] is \d+, not \d+"):
        assert_deterministic(lambda: Loader(one, 5))
    with pytest.raises(AssertionError, match=r"others\[0\]"):
        assert_deterministic(lambda: loader(Counting), lambda: loader(Counting, workers=Threads(2)))


def test_another_order_and_another_length_are_found():
    with pytest.raises(AssertionError, match=r"epoch 0, batch 0: batch.* values differ$"):
        assert_deterministic(lambda: loader(Rows), lambda: loader(Rows, seed=4))
    with pytest.raises(AssertionError, match=r"others\[1\].*epoch 0 ended with 1 of 8 batches lost: batch 7"):
        assert_deterministic(*[lambda n=n: Loader(Rows(n), 5) for n in (40, 40, 35)])
    with pytest.raises(AssertionError, match=r"epoch 0 goes on after its last batch"):
        assert_deterministic(*[lambda n=n: Loader(Rows(n), 5) for n in (35, 40)])


def test_a_difference_in_a_later_epoch_is_found():
    with pytest.raises(AssertionError, match="epoch 1, batch 3"):
        assert_deterministic(lambda: Fake("noise"))
    assert_deterministic(lambda: Fake("noise"), epochs=1)


def test_what_was_lost_is_told_from_what_changed():
    class Skipping(Fake):
        def __iter__(self):
            return (batch for place, batch in enumerate(super().__iter__()) if place != 2)

    with pytest.raises(AssertionError, match=r"epoch 0, batch 2: .* It is batch 3 of this epoch: those before"):
        assert_deterministic(Fake, Skipping)

    class Twice(Fake):
        def __iter__(self):
            for place, batch in enumerate(super().__iter__()):
                yield batch
                if place == 2:
                    yield batch

    with pytest.raises(AssertionError, match=r"epoch 0, batch 3: .* It is batch 2 of this epoch once more"):
        assert_deterministic(Fake, Twice)


def test_mistakes_of_the_caller_are_told():
    with loader() as used:
        with pytest.raises(TypeError, match=r"make_loader is Loader\(.*lambda: Loader"):
            assert_deterministic(used)
        with pytest.raises(ValueError, match="the same loader twice"):
            assert_deterministic(lambda: used)
    with pytest.raises(TypeError, match=r"others\[0\]\(\) gave a int, which has no __iter__"):
        assert_deterministic(loader, lambda: 3)
    with pytest.raises(ValueError, match="epochs=0"):
        assert_deterministic(loader, epochs=0)


def test_what_was_made_is_closed_also_on_failure():
    made = []

    def make():
        made.append(Fake("noise"))
        return made[-1]

    with pytest.raises(AssertionError):
        assert_deterministic(make)
    assert [fake.closed for fake in made] == [True, True]
