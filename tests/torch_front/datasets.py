"""Datasets and samplers of the tests, at module level so that each way to start a worker can have them."""

from __future__ import annotations

import os
import random
import signal

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data


def values(batches):
    """Batches of numbers as lists."""
    return [batch.tolist() for batch in batches]


def numbers(batches):
    """All numbers of all batches."""
    return [number for batch in batches for number in batch.tolist()]


def identity(batch):
    """A collate_fn that leaves samples alone."""
    return batch


class Numbers(data.Dataset):
    """Sample i is i."""

    def __init__(self, count=10):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index


class Scaled(Numbers):
    """Samples follow from an attribute, or from what a worker_init_fn makes of it."""

    factor = 1

    def __getitem__(self, index):
        return index * self.factor


class Held(data.Dataset):
    """Given samples."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


class Process(Numbers):
    """The process that made the sample, and how many samples this copy of the dataset has made."""

    made = 0

    def __getitem__(self, index):
        self.made += 1
        return os.getpid(), self.made


class Informed(Numbers):
    """What get_worker_info says while a sample is made."""

    def __getitem__(self, index):
        info = data.get_worker_info()
        return None if info is None else (info.id, info.num_workers, info.seed, info.dataset is self)


def drawn():
    """One number of each stream, and the seed of torch's."""
    return (
        torch.initial_seed(),
        random.random(),
        int(np.random.randint(1 << 30)),
        float(torch.rand((), dtype=torch.float64)),
    )


class Drawing(Numbers):
    """Random numbers."""

    def __getitem__(self, index):
        return drawn()


class Failing(Numbers):
    """Raises an error for one index."""

    def __init__(self, error, at=3, count=10):
        super().__init__(count)
        self.error, self.at = error, at

    def __getitem__(self, index):
        if index == self.at:
            raise self.error
        return index


class Gated(Numbers):
    """Waits for a gate before one of the samples, where there is a worker to wait."""

    def __init__(self, path, at=0, count=10):
        super().__init__(count)
        self.path, self.at = path, at

    def __getitem__(self, index):
        if index == self.at:
            os.close(os.open(self.path, os.O_RDONLY))
        return index


def die_once(marker):
    """Kills this process, unless that has happened before."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class Mortal(Numbers):
    """The worker that first makes one of the samples dies of it."""

    def __init__(self, marker, at=5, count=20):
        super().__init__(count)
        self.marker, self.at = str(marker), at

    def __getitem__(self, index):
        if index == self.at:
            die_once(self.marker)
        return index


class MortalStream(data.IterableDataset):
    """The worker that first comes to one of the samples dies of it; workers share the samples."""

    def __init__(self, marker, at=5, count=20):
        self.marker, self.at, self.count = str(marker), at, count

    def __iter__(self):
        for number in range(*share(self.count)):
            if number == self.at:
                die_once(self.marker)
            yield number


def share(count):
    """The arguments of a range that this worker has for its own."""
    info = data.get_worker_info()
    return (0, count, 1) if info is None else (info.id, count, info.num_workers)


class Stream(data.IterableDataset):
    """The first numbers, the same in each worker."""

    def __init__(self, count=10):
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


class Sized(Stream):
    """Claims a length, rightly or not."""

    def __init__(self, count=10, claimed=10):
        super().__init__(count)
        self.claimed = claimed

    def __len__(self):
        return self.claimed


class Split(Stream):
    """Each worker has its share."""

    def __iter__(self):
        return iter(range(*share(self.count)))


class Uneven(data.IterableDataset):
    """Worker w gives ``counts[w]`` samples: 100 * w, 100 * w + 1, ..."""

    def __init__(self, *counts):
        self.counts = counts

    def __iter__(self):
        info = data.get_worker_info()
        worker = 0 if info is None else info.id
        return iter(range(100 * worker, 100 * worker + self.counts[worker]))


class FailingStream(Stream):
    """Raises an error in place of a sample, or in place of an iterator if that is sample -1."""

    def __init__(self, error, at=3, count=10):
        super().__init__(count)
        self.error, self.at = error, at

    def __iter__(self):
        if self.at == -1:
            raise self.error
        return self._samples()

    def _samples(self):
        for number in range(self.count):
            if number == self.at:
                raise self.error
            yield number


class DrawingStream(Stream):
    """Random numbers."""

    def __iter__(self):
        return (drawn() for _ in range(self.count))


class InformedStream(Stream):
    """What get_worker_info says when the iterator is made and while a sample is made."""

    def __iter__(self):
        info = data.get_worker_info()
        for _ in range(self.count):
            yield info.id, info.num_workers, info.dataset is self, data.get_worker_info() is info


class Recorded(data.Sampler):
    """A user's own sampler that notes each start, what it has given and its end."""

    def __init__(self, indices):
        self.indices = indices
        self.log = []

    def __len__(self):
        return len(self.indices)

    def __iter__(self):
        self.log.append("start")
        for index in self.indices:
            self.log.append(index)
            yield index
        self.log.append("end")

    @property
    def given(self):
        """How many indices have been taken since the last start."""
        return len([entry for entry in self.log[self.log.index("start") :] if isinstance(entry, (int, list))])


class Endless(data.Sampler):
    """Never ends, and so has no length."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        while True:
            yield from range(self.count)
