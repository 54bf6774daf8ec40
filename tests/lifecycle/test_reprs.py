"""``repr``: what a loader, a stream or a dataset of files is, before, while and after it is used, and no secrets."""

from __future__ import annotations

import functools
import pickle

from stoker import Chunks, Loader, Mix, Pack, Threads, Weighted, stream
from tests.datasets import Rows


class Secretive(Rows):
    """Its own repr tells what it should not."""

    def __repr__(self):
        return "token=hunter2"


def test_a_loader_tells_what_it_is_at_any_time():
    loader = Loader(Secretive(10), 4, shuffle=True, workers=Threads(2))
    about = "Loader(Secretive, batch_size=4, shuffle=True, len=3, epoch={}, workers=Threads(n=2), {})"
    assert repr(loader) == about.format(0, "not started")
    assert repr(pickle.loads(pickle.dumps(loader))) == repr(loader)
    list(loader)
    assert repr(loader) == about.format(1, "running")
    loader.close()
    assert repr(loader) == about.format(1, "closed")
    with Loader(functools.partial(Secretive, n=3)) as other, Loader({"x": [1]}) as columns:
        assert repr(other).startswith("Loader(partial(Secretive), batch_size=32")
        assert repr(columns).startswith("Loader(Table, ")


def test_a_loader_tells_its_length_where_that_is_known_without_starting_anything():
    asked = []
    known = Loader(range(10), 4, order=Weighted([1] * 10, length=5))
    assert ", len=2, " in repr(known)
    unknown = [
        Loader(lambda: range(10), 4),
        Loader(range(10), 4, order=lambda epoch: asked.append(epoch) or [0]),
        Loader(Mix([range(3)], ends="never")),
        Loader([[1], [2, 3]], 4, pack=Pack(8)),
        Loader(range(10), 4, shard="auto"),
    ]
    assert [repr(loader) for loader in unknown if "len=" in repr(loader)] == []
    assert asked == []
    with unknown[0] as made:
        assert len(made) == 3
        assert ", len=3, " in repr(made)


def test_a_stream_tells_what_it_is_at_any_time():
    results = stream(abs, range(3), workers=Threads(1))
    assert repr(results) == "Stream(abs, 0 of 3 items taken, workers=Threads(n=1), not started)"
    next(results)
    assert repr(results) == "Stream(abs, 1 of 3 items taken, workers=Threads(n=1), running)"
    list(results)
    assert repr(results) == "Stream(abs, 3 of 3 items taken, workers=Threads(n=1), closed)"
    with stream(abs, iter([1])) as endless:
        assert repr(endless) == "Stream(abs, 0 items taken, workers=Inline(), not started)"


def test_chunks_tell_their_first_file_and_no_secrets():
    found = Chunks(["s3://user:hunter2@bucket/a.csv?token=hunter2", "b.csv", "c.csv"], interleave=2)
    assert repr(found) == "Chunks('s3://bucket/a.csv' and 2 more, interleave=2, across_chunks=True)"
    assert repr(Chunks("data")) == "Chunks('data', interleave=4, across_chunks=True)"
