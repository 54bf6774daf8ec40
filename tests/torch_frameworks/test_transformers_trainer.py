"""The Trainer of transformers with Stoker's workers: training, evaluation, prediction, and resume from a checkpoint."""

from __future__ import annotations

from typing import ClassVar

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("accelerate", reason="accelerate is not installed")

from torch.utils.data import Dataset, IterableDataset  # noqa: E402
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter  # noqa: E402
from transformers import Trainer, TrainerCallback, TrainingArguments  # noqa: E402

from stoker.torch import TrainerMixin  # noqa: E402
from stoker.torch.in_process import InProcess  # noqa: E402
from stoker.torch.in_workers import InWorkers  # noqa: E402

LENGTH, BATCH = 20, 2


class Lines(Dataset):
    def __len__(self):
        return LENGTH

    def __getitem__(self, index):
        return {"x": torch.tensor([float(index)]), "labels": torch.tensor([2.0 * index])}


class Stream(IterableDataset):
    """The same samples, in one worker or many."""

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        yield from (Lines()[k] for k in range(info.id, LENGTH, info.num_workers))


class Model(torch.nn.Module):
    """Notes what it is trained on, and evaluated on."""

    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(1, 1)
        torch.nn.init.ones_(self.line.weight)
        torch.nn.init.zeros_(self.line.bias)
        self.seen = {True: [], False: []}

    def forward(self, x, labels):
        self.seen[self.training].append([int(number) for number in x.flatten()])
        out = self.line(x / LENGTH)
        return {"loss": torch.nn.functional.mse_loss(out, labels / LENGTH), "logits": out}


class StokerTrainer(TrainerMixin, Trainer):
    pass


class Seeded(StokerTrainer):
    loader_options: ClassVar = {"seed": 3}


class StopAt(TrainerCallback):
    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **_):
        control.should_training_stop = state.global_step == self.step
        return control


def trainer(folder, cls=StokerTrainer, *, dataset=None, model=None, callbacks=(), **options):
    arguments = {
        "num_train_epochs": 2,
        "per_device_train_batch_size": BATCH,
        "per_device_eval_batch_size": 3,
        "dataloader_num_workers": 2,
        "dataloader_pin_memory": False,
        "save_strategy": "no",
        "logging_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "remove_unused_columns": False,
        "seed": 4,
    }
    return cls(
        model=model or Model(),
        args=TrainingArguments(output_dir=str(folder), **{**arguments, **options}),
        train_dataset=Lines() if dataset is None else dataset,
        eval_dataset=Lines(),
        callbacks=list(callbacks),
    )


def test_without_the_mixin_the_trainer_iterates_a_loader_of_torchs(tmp_path, iterated):
    trainer(tmp_path, Trainer, num_train_epochs=1).train()
    assert iterated == [_MultiProcessingDataLoaderIter]


@pytest.mark.parametrize("num_workers", [2, pytest.param(0, marks=pytest.mark.exhaustive)])
def test_training_iterates_ours_in_the_same_order(tmp_path, num_workers, iterated):
    expected = trainer(tmp_path, Trainer, dataloader_num_workers=num_workers)
    expected.train()
    iterated.clear()
    ours = trainer(tmp_path, dataloader_num_workers=num_workers)
    ours.train()
    assert iterated == [InWorkers if num_workers else InProcess] * 2
    assert ours.model.seen == expected.model.seen
    assert ours.model.line.weight.item() == expected.model.line.weight.item()
    assert [len(batch) for batch in ours.model.seen[True]] == [BATCH] * LENGTH


def test_evaluation_and_prediction_iterate_ours(tmp_path, iterated):
    one = trainer(tmp_path)
    metrics = one.evaluate()
    assert metrics["eval_loss"] == pytest.approx(trainer(tmp_path, Trainer, model=one.model).evaluate()["eval_loss"])
    iterated[1:] = []
    assert one.predict(Lines()).predictions.shape == (LENGTH, 1)
    assert one.model.seen[False][-7:] == [list(range(k, min(k + 3, LENGTH))) for k in range(0, LENGTH, 3)]
    assert iterated == [InWorkers] * 2


def test_evaluation_between_epochs_keeps_its_workers(tmp_path, iterated):
    one = trainer(tmp_path, dataloader_persistent_workers=True, eval_strategy="epoch")
    one.train()
    assert iterated == [InWorkers] * 2, "one for training, one for evaluation"
    assert len(one.model.seen[True]) == LENGTH
    assert len(one.model.seen[False]) == 14


@pytest.mark.parametrize(
    ("steps", "accumulated"),
    [
        (3, 1),
        (8, 2),
        pytest.param(5, 2, marks=pytest.mark.exhaustive, id="end of an epoch"),
        pytest.param(13, 1, marks=pytest.mark.exhaustive),
    ],
)
def test_a_resume_from_a_checkpoint_goes_on_with_the_next_batch(tmp_path, steps, accumulated, iterated):
    options = {"save_strategy": "steps", "save_steps": 1, "gradient_accumulation_steps": accumulated}
    whole = trainer(tmp_path / "whole", gradient_accumulation_steps=accumulated)
    whole.train()
    trainer(tmp_path / "parts", callbacks=[StopAt(steps)], **options).train()
    resumed = trainer(tmp_path / "parts", **options)
    resumed.train(resume_from_checkpoint=True)
    assert set(iterated) == {InWorkers}
    assert resumed.model.seen[True] == whole.model.seen[True][steps * accumulated :]
    assert resumed.model.line.weight.item() == whole.model.line.weight.item()


def test_options_hold_in_training_and_after_a_resume(tmp_path):
    options = {"save_strategy": "steps", "save_steps": 1, "dataloader_persistent_workers": True}
    trainer(tmp_path, Seeded, callbacks=[StopAt(3)], **options).train()
    resumed = trainer(tmp_path, Seeded, **options)
    seeds = []

    class Note(TrainerCallback):
        def on_epoch_begin(self, args, state, control, train_dataloader, **_):
            seeds.append(train_dataloader.base_dataloader.seed)

    resumed.add_callback(Note())
    resumed.train(resume_from_checkpoint=True)
    assert seeds == [3, 3]
    assert len(resumed.model.seen[True]) == LENGTH - 3


def test_a_stream_is_trained_on_and_resumed(tmp_path, iterated):
    options = {"max_steps": 15, "save_strategy": "steps", "save_steps": 1}
    whole = trainer(tmp_path / "whole", dataset=Stream(), **options)
    whole.train()
    trainer(tmp_path / "parts", dataset=Stream(), callbacks=[StopAt(4)], **options).train()
    resumed = trainer(tmp_path / "parts", dataset=Stream(), **options)
    resumed.train(resume_from_checkpoint=True)
    assert whole.model.seen[True][:4] == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert resumed.model.seen[True] == whole.model.seen[True][4:]
    assert set(iterated) == {InWorkers}


def test_a_dataset_of_hugging_face_is_trained_on(tmp_path, iterated):
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    numbers = [[float(k)] for k in range(LENGTH)]
    dataset = datasets.Dataset.from_dict({"x": numbers, "labels": numbers, "text": ["unused"] * LENGTH})
    one = trainer(tmp_path, dataset=dataset, num_train_epochs=1, remove_unused_columns=True)
    one.train()
    assert sorted(number for batch in one.model.seen[True] for number in batch) == list(range(LENGTH))
    assert iterated == [InWorkers]
