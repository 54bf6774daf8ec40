"""The cursor among chunk files, against a consumer who keeps a list of all samples it has seen."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from stoker.plan import ChunkCursor

# Groups: loose samples before the first batch, batches, loose samples after the last one. Batches have SIZE samples.
SIZE = 3
groups = st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, 4), st.integers(0, SIZE - 1)), max_size=8)


class Consumer:
    """Takes batch by batch, from groups that come in any order. A sample is (place, its number in the group)."""

    def __init__(self, shapes):
        self.shapes = shapes
        self.cursor = ChunkCursor(7)
        self.seen, self.waiting = [], []

    def samples(self, place):
        lead, batches, rest = self.shapes[place]
        return [(place, n) for n in range(lead + SIZE * batches + rest)]

    def loose(self, place):
        """As they are numbered among the loose ones."""
        lead, batches, _ = self.shapes[place]
        samples = self.samples(place)
        return samples[:lead] + samples[lead + SIZE * batches :]

    def joins(self, least):
        while len(self.waiting) >= least:
            joined, self.waiting = self.waiting[:SIZE], self.waiting[SIZE:]
            self.cursor = self.cursor.join(len(joined))
            self.seen += joined
            yield

    def group(self, place):
        """The steps of taking it."""
        lead, batches, rest = self.shapes[place]
        samples = self.samples(place)
        self.cursor = self.cursor.begin(place, lead)
        self.waiting += samples[:lead]
        yield
        yield from self.joins(SIZE)
        for nth in range(batches):
            self.seen += samples[lead + nth * SIZE : lead + (nth + 1) * SIZE]
            if nth + 1 < batches:
                self.cursor = self.cursor.hand_out(place, nth + 1)
                yield
        self.cursor = self.cursor.finish(place, range(lead, lead + rest))
        self.waiting += samples[lead + batches * SIZE :]
        yield
        yield from self.joins(SIZE)

    def still_to_come(self):
        """What somebody reads who knows the cursor and the groups, and nothing else."""
        cursor = self.cursor
        found = [self.loose(place)[nth] for place, nth in cursor.waiting]
        for place in cursor.remaining(len(self.shapes)):
            lead, _, _ = self.shapes[place]
            handed = cursor.handed(place)
            found += self.samples(place) if handed is None else self.samples(place)[lead + SIZE * handed :]
        return found


def check(consumer):
    every = [one for place in range(len(consumer.shapes)) for one in consumer.samples(place)]
    cursor = consumer.cursor
    assert sorted(consumer.seen + consumer.still_to_come()) == every, "one was lost, or would come twice"
    assert [consumer.loose(place)[nth] for place, nth in cursor.waiting] == consumer.waiting
    assert list(cursor.taken) == sorted(set(cursor.taken))
    assert all(place > cursor.place for place in cursor.taken)
    assert not {place for place, _ in cursor.partly} & set(cursor.taken)
    assert all(place >= cursor.place for place, _ in cursor.partly)


@given(groups, st.randoms(use_true_random=False), st.integers(1, 8))
def test_what_was_taken_and_what_is_still_to_come_is_everything_once(shapes, random: Random, ahead):
    consumer, left = Consumer(shapes), list(range(len(shapes)))
    assert not consumer.cursor.is_within
    while left:
        place = left.pop(random.randrange(min(ahead, len(left))))
        for _ in consumer.group(place):
            check(consumer)
            assert consumer.cursor.is_within
    assert consumer.cursor.is_over(len(shapes))
    assert consumer.cursor.place == len(shapes)
    for _ in consumer.joins(1):
        check(consumer)
    assert (consumer.cursor.taken, consumer.cursor.partly, consumer.cursor.waiting) == ((), (), ())
    assert consumer.cursor.epoch == 7


@given(groups.filter(bool), st.data())
def test_a_group_that_is_passed_over_or_cannot_be_read_again_takes_its_samples_with_it(shapes, data):
    consumer = Consumer(shapes)
    gone = data.draw(st.integers(0, len(shapes) - 1))
    for place in range(len(shapes)):
        if place == gone:
            consumer.cursor = consumer.cursor.pass_over(place, left_out=2)
            consumer.seen += consumer.samples(place)  # as far as anybody asks
        else:
            for _ in consumer.group(place):
                check(consumer)
    assert consumer.cursor.left_out == 2
    lost = consumer.cursor.waiting[:1]
    without = consumer.cursor.without_waiting(lost)
    assert without.waiting == consumer.cursor.waiting[1:]


def test_a_group_that_was_begun_before_a_resume_is_begun_but_once():
    cursor = ChunkCursor().begin(4, 2, left_out=1)
    again = cursor.hand_out(4, 3).begin(4, 2, left_out=1)
    assert again == cursor.hand_out(4, 3)
    assert (again.waiting, again.left_out, again.handed(4), again.handed(5)) == (((4, 0), (4, 1)), 1, 3, None)


def test_it_is_a_value():
    cursor = ChunkCursor()
    cursor.begin(0, 1).finish(0, [1, 2]).join(2)
    assert cursor == ChunkCursor()
