"""Lightning Fabric with Stoker's workers: injected samplers, re-creation, checkpoints."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning.fabric", reason="lightning is not installed")

from lightning.fabric import Fabric  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

import stoker  # noqa: E402
from stoker.torch import DataLoader  # noqa: E402
from stoker.torch.in_workers import InWorkers  # noqa: E402
from tests.torch_frameworks.samples import Drawn, Numbers, Stream, numbers  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_process")


def fabric(strategy="auto"):
    one = Fabric(accelerator="cpu", devices=1, strategy=strategy)
    one.launch()
    return one


def loader(length=20, **options):
    return DataLoader(Numbers(length), **{"batch_size": 4, "num_workers": 2, **options})


def test_a_loader_that_fabric_sets_up_iterates_ours(iterated):
    setup = fabric().setup_dataloaders(loader())
    assert [numbers(batch)[0] for batch in setup] == [0, 4, 8, 12, 16]
    assert iterated == [InWorkers]


def test_a_loader_made_again_for_an_injected_sampler_is_ours_with_all_its_arguments(iterated):
    def init(worker):
        pass

    own = {"seed": 3, "recover": False, "snapshot_every_n_steps": 2, "progress": True, "watch": stoker.Watch()}
    given = loader(shuffle=True, timeout=50, worker_init_fn=init, **own)
    setup = fabric("ddp").setup_dataloaders(given)
    made = setup._dataloader
    assert made is not given
    assert type(made) is DataLoader
    assert type(made.sampler) is DistributedSampler
    assert ({name: getattr(made, name) for name in own}, made.timeout) == (own, 50)
    orders = [[number for batch in setup for number in numbers(batch)] for _ in range(2)]
    assert [sorted(order) for order in orders] == [list(range(20))] * 2
    assert given.watch_url is None
    assert made.watch_url.startswith("http://127.0.0.1:")
    assert orders[0] != orders[1], "Fabric sets the epoch of the sampler"
    assert iterated == [InWorkers] * 2


class OfTheUser(DataLoader):
    def __init__(self, dataset, *args, name, **kwargs):
        self.name = name
        super().__init__(dataset, *args, **kwargs)


def test_a_subclass_of_ours_is_made_again_as_it_is(iterated):
    setup = fabric("ddp").setup_dataloaders(OfTheUser(Numbers(8), 4, num_workers=2, name="its name"))
    made = setup._dataloader
    assert (type(made), made.name) == (OfTheUser, "its name")
    assert [numbers(batch) for batch in setup] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert iterated == [InWorkers]


def test_a_stream_goes_through_fabric(iterated):
    setup = fabric("ddp").setup_dataloaders(DataLoader(Stream(6), 2, num_workers=2))
    assert [numbers(batch) for batch in setup] == [[0, 2], [1, 3], [4], [5]]
    assert iterated == [InWorkers]


def test_workers_are_seeded_by_fabric():
    """With ``workers=True`` it sets ``worker_init_fn`` when it gets the loader, after the loader was made."""

    def drawn():
        one = fabric()
        one.seed_everything(1, workers=True, verbose=False)
        setup = one.setup_dataloaders(DataLoader(Drawn(8), 4, num_workers=2))
        assert setup._dataloader.worker_init_fn is not None
        return [batch["drawn"].tolist() for batch in setup]

    assert drawn() == drawn()


def test_batches_of_a_checkpoint_in_the_middle_of_an_epoch_go_on(tmp_path, iterated):
    one = fabric()
    setup = one.setup_dataloaders(loader(shuffle=True))
    seen = []
    for batch in setup:
        seen.append(numbers(batch))
        if len(seen) == 2:
            one.save(tmp_path / "checkpoint", {"loader": setup, "steps": 2})
    other = fabric()
    again = other.setup_dataloaders(loader(shuffle=True))
    state = {"loader": again, "steps": 0}
    other.load(tmp_path / "checkpoint", state)
    assert state["steps"] == 2
    assert [numbers(batch) for batch in again] == seen[2:]
    assert iterated == [InWorkers] * 2


def test_workers_that_persist_end_with_the_loader():
    setup = fabric().setup_dataloaders(loader(persistent_workers=True))
    first, second = ({pid for batch in setup for pid in batch["pid"].tolist()} for _ in range(2))
    assert first == second
