"""Random numbers belong to the batch also where a library is imported late, or its functions were taken by name."""

from __future__ import annotations

import importlib
import random
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from stoker import Inline, Loader, Processes, Threads
from tests.streams import assert_same, epochs
from tests.workers import drawing

# Stands in for torch, which takes seconds to import.
FAKE_TORCH = """
    import random

    class Tensor:
        pass

    class Generator(random.Random):
        manual_seed = random.Random.seed
        get_state = random.Random.getstate
        set_state = random.Random.setstate

    default_generator = Generator()

    def rand():
        return default_generator.random()
"""

PROGRAM = """
    import sys
    import numpy as np
    import stoker

    class Late:
        def __len__(self):
            return 12
        def __getitem__(self, index):
            import torch
            return torch.rand()

    def collate(samples):
        import torch
        return np.array([*samples, torch.rand()])

    def drawn(workers, batches=6, **options):
        with stoker.Loader(Late(), 2, workers=workers, collate=collate, **options) as loader:
            return [batch.tolist() for batch, _ in zip(loader, range(batches))]

    starts = "nursery", "fork", "spawn"
    ways = [stoker.Processes(1), *[stoker.Processes(2, start=start) for start in starts]]
    streams = [drawn(workers) for workers in ways]
    with stoker.Loader(Late(), 2, workers=1, collate=collate) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with stoker.Loader(Late(), 2, workers=1, collate=collate) as loader:
        loader.load_state_dict(state)
        streams.append(streams[0][:1] + [batch.tolist() for batch in loader])
    assert "torch" not in sys.modules
    finders = list(sys.meta_path)
    streams.append(drawn(0))  # it is imported here, in the first batch
    import torch
    after = torch.rand()
    streams.append(drawn(0))
    assert sys.meta_path == finders
    assert all(stream == streams[0] for stream in streams), streams
    assert len({number for batch in streams[0] for number in batch}) == 18
    assert after not in {number for batch in streams[0] for number in batch}
"""


def test_torch_is_seeded_as_soon_as_it_is_imported(tmp_path):
    """Contract: random numbers are reproducible also in a library that is imported late."""
    (tmp_path / "torch.py").write_text(textwrap.dedent(FAKE_TORCH))
    (tmp_path / "train.py").write_text(textwrap.dedent(PROGRAM))
    ran = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr


class Importing:
    """Imports a library when the first sample is made, as some do to start quickly."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        importlib.import_module("draws_when_imported")
        return np.array([random.random(), np.random.rand()])


@pytest.mark.parametrize(
    "workers", [Inline(), Threads(2), *[Processes(2, start=start) for start in ("nursery", "fork", "spawn")]], ids=repr
)
def test_what_a_library_draws_while_it_is_imported_does_not_count(workers, tmp_path, monkeypatch):
    (tmp_path / "draws_when_imported.py").write_text("import random, numpy\nrandom.random(), numpy.random.rand(9)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    finders = list(sys.meta_path)
    try:
        with Loader(Importing(), 2, workers=workers) as loader:
            found = epochs(loader, 1)
        assert sys.meta_path == finders
        importlib.import_module("draws_when_imported")
        with Loader(Importing(), 2) as loader:
            assert_same(epochs(loader, 1), found)
    finally:
        sys.modules.pop("draws_when_imported", None)


@pytest.mark.parametrize("count", [1, 3])
def test_functions_that_were_taken_by_name_draw_from_the_threads_own_generators(count):
    random.seed(7)
    np.random.seed(7)
    before, taken = (random.getstate(), np.random.get_state()[1].tolist()), vars(drawing).copy()
    with Loader(drawing.Drawing(), 6, workers=Inline()) as loader:
        expected = epochs(loader, 2)
    with Loader(drawing.Drawing(), 6, workers=Threads(count)) as loader:
        assert_same(epochs(loader, 2), expected)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    assert vars(drawing) == taken
