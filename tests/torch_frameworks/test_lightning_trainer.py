"""Lightning's Trainer with Stoker's workers: all its loops, teardown, and checkpoints in the middle of an epoch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning.pytorch", reason="lightning is not installed")

from lightning.pytorch import LightningDataModule, LightningModule, Trainer  # noqa: E402
from lightning.pytorch.callbacks import BasePredictionWriter, Callback, ModelCheckpoint  # noqa: E402
from lightning.pytorch.overrides.distributed import UnrepeatedDistributedSamplerWrapper  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

from stoker.torch import DataLoader  # noqa: E402
from stoker.torch.in_workers import InWorkers  # noqa: E402
from tests.children import children  # noqa: E402
from tests.torch_frameworks.samples import Numbers, Stream, numbers  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("one_process"),
    pytest.mark.filterwarnings("ignore:The '.*_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:You defined a `validation_step` but have no `val_dataloader`"),
]


class Model(LightningModule):
    """Notes the batches that each loop gives it."""

    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(1, 1)
        torch.nn.init.ones_(self.line.weight)
        torch.nn.init.zeros_(self.line.bias)
        self.seen = {"fit": [], "validate": [], "test": [], "predict": []}

    def training_step(self, batch, _):
        self.seen["fit"].append(numbers(batch))
        return torch.nn.functional.mse_loss(self.line(batch["x"]), 2 * batch["x"])

    def validation_step(self, batch, _):
        self.seen["validate"].append(numbers(batch))

    def test_step(self, batch):
        self.seen["test"].append(numbers(batch))

    def predict_step(self, batch, _):
        self.seen["predict"].append(numbers(batch))
        return self.line(batch["x"])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-4)


def trainer(folder, *, callbacks=(), **options):
    arguments = {
        "accelerator": "cpu",
        "devices": 1,
        "max_epochs": 2,
        "logger": False,
        "enable_checkpointing": any(isinstance(one, ModelCheckpoint) for one in callbacks),
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "num_sanity_val_steps": 0,
        "default_root_dir": str(folder),
        "callbacks": list(callbacks),
    }
    return Trainer(**{**arguments, **options})


def loader(length=20, **options):
    return DataLoader(Numbers(length), **{"batch_size": 4, "num_workers": 2, **options})


def flat(batches):
    return [number for batch in batches for number in batch]


IN_ORDER = [list(range(k, k + 4)) for k in range(0, 20, 4)]


def test_fit_and_validation_iterate_ours(tmp_path, iterated):
    model = Model()
    trainer(tmp_path).fit(model, loader(shuffle=True), loader())
    assert iterated == [InWorkers] * 4
    assert model.seen["validate"] == IN_ORDER * 2
    first, second = model.seen["fit"][:5], model.seen["fit"][5:]
    assert sorted(flat(first)) == sorted(flat(second)) == list(range(20))


def test_test_and_predict_iterate_ours(tmp_path, iterated):
    """To predict, Lightning makes the loader again, with a batch sampler that notes which samples were taken."""
    model, one = Model(), trainer(tmp_path)
    one.test(model, loader(), verbose=False)
    predictions = one.predict(model, loader())
    assert model.seen["test"] == model.seen["predict"] == IN_ORDER
    assert len(predictions) == 5
    assert type(one.predict_dataloaders) is DataLoader
    assert iterated == [InWorkers] * 2


def test_predictions_know_which_samples_they_are_of(tmp_path):
    seen = []

    class Note(BasePredictionWriter):
        def write_on_batch_end(self, trainer, module, prediction, batch_indices, batch, batch_idx, dataloader_idx):
            seen.append((numbers(batch), batch_indices))

    trainer(tmp_path, callbacks=[Note("batch")]).predict(Model(), loader())
    assert seen == [(batch, batch) for batch in IN_ORDER]


def test_samplers_are_injected_into_loaders_made_again(tmp_path, iterated):
    model, one = Model(), trainer(tmp_path, strategy="ddp")
    one.fit(model, loader(shuffle=True, seed=3), loader())
    assert type(one.train_dataloader) is DataLoader
    assert type(one.train_dataloader.sampler) is DistributedSampler
    assert one.train_dataloader.seed == 3
    assert model.seen["fit"][:5] != model.seen["fit"][5:]
    assert sorted(flat(model.seen["fit"][5:])) == list(range(20))
    one.predict(model, loader())
    assert type(one.predict_dataloaders.batch_sampler.sampler) is UnrepeatedDistributedSamplerWrapper
    assert model.seen["predict"] == IN_ORDER
    assert iterated == [InWorkers] * 5


def test_one_batch_is_overfitted_without_shuffling(tmp_path):
    model = Model()
    with pytest.warns(UserWarning, match="requested to overfit"):
        trainer(tmp_path, overfit_batches=1).fit(model, loader(shuffle=True))
    assert model.seen["fit"] == [IN_ORDER[0]] * 2


def test_several_loaders_and_a_stream_go_together(tmp_path, iterated):
    class Both(Model):
        def training_step(self, batch, index):
            return sum(super(Both, self).training_step(part, index) for part in batch.values())

    model = Both()
    loaders = {"map": loader(8), "stream": DataLoader(Stream(8), 2, num_workers=2)}
    trainer(tmp_path, max_epochs=1).fit(model, loaders)
    assert model.seen["fit"][::2] == IN_ORDER[:2] * 2, "Lightning begins the shorter one again"
    assert model.seen["fit"][1::2] == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert set(iterated) == {InWorkers}


def test_workers_that_persist_stay_for_the_training_and_end_with_it(tmp_path, iterated):
    pids = []

    class Note(Callback):
        def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
            pids.extend(batch["pid"].tolist())

    before = {child.pid for child in children()}
    given = loader(persistent_workers=True)
    one = trainer(tmp_path, callbacks=[Note()])
    one.fit(Model(), given)
    assert iterated == [InWorkers]
    assert len(set(pids)) == 2
    assert given._iterator is None
    assert {child.pid for child in children()} <= before


def test_an_exception_in_training_ends_the_workers(tmp_path):
    class Broken(Model):
        def training_step(self, batch, index):
            raise ArithmeticError("in the step")

    before = {child.pid for child in children()}
    given = loader(400, persistent_workers=True)
    with pytest.raises(ArithmeticError, match="in the step"):
        trainer(tmp_path).fit(Broken(), given)
    assert {child.pid for child in children()} <= before


@pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`, callbacks")
@pytest.mark.parametrize("persistent", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_a_checkpoint_in_the_middle_of_an_epoch_goes_on_with_the_next_batch(tmp_path, persistent, iterated):
    def given():
        sampler = DistributedSampler(range(20), num_replicas=1, rank=0)  # whose epoch Lightning sets
        return loader(sampler=sampler, persistent_workers=persistent)

    stop, whole = 3, Model()
    trainer(tmp_path).fit(whole, given())
    saved = ModelCheckpoint(tmp_path, every_n_train_steps=stop, filename="at")
    part = Model()
    trainer(tmp_path, callbacks=[saved], max_steps=stop).fit(part, given())
    resumed = Model()
    trainer(tmp_path).fit(resumed, given(), ckpt_path=tmp_path / "at.ckpt")
    assert part.seen["fit"] == whole.seen["fit"][:stop]
    assert resumed.seen["fit"] == whole.seen["fit"][stop:]
    assert resumed.line.weight.item() == whole.line.weight.item()
    assert set(iterated) == {InWorkers}


@pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`, callbacks")
@pytest.mark.parametrize("stop", [3, 7])
def test_the_rest_of_a_shuffled_epoch_is_that_of_the_checkpoint(tmp_path, stop):
    """Though the generator of the process, which has shuffled it, is elsewhere by then."""
    saved = ModelCheckpoint(tmp_path, every_n_train_steps=stop, filename="at")
    whole, resumed = Model(), Model()
    trainer(tmp_path, callbacks=[saved], max_steps=stop + 1).fit(whole, loader(shuffle=True))
    trainer(tmp_path, max_steps=stop + 2).fit(resumed, loader(shuffle=True), ckpt_path=tmp_path / "at.ckpt")
    assert resumed.seen["fit"][0] == whole.seen["fit"][stop]
    epoch = whole.seen["fit"][stop // 5 * 5 :] + resumed.seen["fit"][1:]
    assert sorted(flat(epoch)) == sorted(set(flat(epoch))), "no sample is there twice"


@pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`, callbacks")
def test_a_checkpoint_at_the_end_of_an_epoch_goes_on_with_the_next_one(tmp_path):
    saved = ModelCheckpoint(tmp_path, save_on_train_epoch_end=True, filename="at")
    part, resumed = Model(), Model()
    trainer(tmp_path, callbacks=[saved], max_epochs=1).fit(part, loader())
    trainer(tmp_path, max_epochs=3).fit(resumed, loader(), ckpt_path=tmp_path / "at.ckpt")
    assert part.seen["fit"] == IN_ORDER
    assert resumed.seen["fit"] == IN_ORDER * 2


def test_a_data_module_reloads_its_loaders_each_epoch(tmp_path, iterated):
    class Module(LightningDataModule):
        made = 0

        def train_dataloader(self):
            self.made += 1
            return loader(8)

    module, model = Module(), Model()
    trainer(tmp_path, reload_dataloaders_every_n_epochs=1).fit(model, datamodule=module)
    assert module.made == 2
    assert model.seen["fit"] == IN_ORDER[:2] * 2
    assert set(iterated) == {InWorkers}
