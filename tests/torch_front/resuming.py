"""What is needed to compare a resumed run with one that was not interrupted; datasets and samplers with a state."""

from __future__ import annotations

import itertools
import pickle

import pytest

from tests.torch_front.datasets import Numbers, share

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data


def more(*values):
    """Parameters that would most likely show the same as others."""
    return [pytest.param(value, marks=pytest.mark.exhaustive) for value in values]


def plain(batch):
    """A batch as something that can be compared."""
    if isinstance(batch, torch.Tensor):
        return batch.tolist()
    return [plain(part) for part in batch] if isinstance(batch, (list, tuple)) else batch


def read(batches):
    return [plain(batch) for batch in batches]


def take(iterator, count):
    return read(itertools.islice(iterator, count))


def stored(state):
    """A state as it comes back from a file."""
    return pickle.loads(pickle.dumps(state))


def interrupted(make, steps, epochs=2, before=0):
    """A state after some steps, what an uninterrupted run gives from there on, and torch's generator at that time."""
    loader = make()
    for _ in range(before):
        read(loader)
    iterator = iter(loader)
    take(iterator, steps)
    state = stored(loader.state_dict())
    generator = torch.get_rng_state()
    rest = [read(iterator)]
    rest += [read(loader) for _ in range(epochs - 1)]
    return state, rest, generator


def resumed(make, state, epochs=2):
    """What a fresh loader gives after it has loaded the state."""
    loader = make()
    loader.load_state_dict(state)
    return [read(loader) for _ in range(epochs)]


class Positioned(data.Sampler):
    """A sampler of the user's that knows where it is."""

    def __init__(self, count):
        self.count = count
        self.position = 0
        self.given = 0

    def __len__(self):
        return self.count

    def __iter__(self):
        while self.position < self.count:
            self.position += 1
            self.given += 1
            yield (self.position * 7) % self.count
        self.position = 0

    def state_dict(self):
        return {"position": self.position}

    def load_state_dict(self, state):
        self.position = state["position"]


class PositionedBatches(Positioned):
    """The same for batches."""

    def __iter__(self):
        for index in super().__iter__():
            yield [index, 0]


class Epochs(Positioned):
    """A sampler whose order follows from how many epochs it has ended."""

    epoch = 0

    def __iter__(self):
        for index in super().__iter__():
            yield (index + self.epoch) % self.count
        self.epoch += 1

    def state_dict(self):
        return {**super().state_dict(), "epoch": self.epoch}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.epoch = state["epoch"]


class Tallied(Numbers):
    """A map-style dataset whose samples follow from how many it has made."""

    made = 0

    def __getitem__(self, index):
        self.made += 1
        return index, self.made

    def state_dict(self):
        return {"made": self.made}

    def load_state_dict(self, state):
        self.made = state["made"]


class Resumable(data.IterableDataset):
    """A stream whose dataset knows where it is; workers share the samples."""

    def __init__(self, count=20):
        self.count = count
        self.position = 0
        self.given = 0

    def __iter__(self):
        own = range(*share(self.count))
        while self.position < len(own):
            self.position += 1
            self.given += 1
            yield own[self.position - 1]
        self.position = 0

    def state_dict(self):
        return {"position": self.position}

    def load_state_dict(self, state):
        self.position = state["position"]


class Position:
    """An iterator that knows where it is."""

    def __init__(self, numbers):
        self.numbers = numbers
        self.position = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.position == len(self.numbers):
            raise StopIteration
        self.position += 1
        return self.numbers[self.position - 1]

    def state_dict(self):
        return {"position": self.position}

    def load_state_dict(self, state):
        self.position = state["position"]


class ByIterator(data.IterableDataset):
    """A stream whose iterator has the state."""

    def __init__(self, count=20):
        self.count = count

    def __iter__(self):
        return Position(range(*share(self.count)))


class Both(ByIterator):
    """Dataset and iterator have a state each: how many epochs have begun, and where this one is."""

    begun = 0

    def __iter__(self):
        self.begun += 1
        return Position([100 * self.begun + number for number in range(*share(self.count))])

    def state_dict(self):
        return {"begun": self.begun}

    def load_state_dict(self, state):
        self.begun = state["begun"] - 1


class UnevenByIterator(ByIterator):
    """Worker 0 has but two samples."""

    def __iter__(self):
        info = data.get_worker_info()
        return Position(range(2)) if info is not None and info.id == 0 else Position(range(100, 108))
