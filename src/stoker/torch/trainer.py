"""The Trainer of Hugging Face transformers, with Stoker's workers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

from stoker.torch.adoption import adopt


class TrainerMixin:
    """Has a ``transformers.Trainer`` load with Stoker: in training, evaluation, prediction, and after a resume.

    The Trainer builds its loaders itself, from ``TrainingArguments``, whose names that begin with ``dataloader_`` mean
    what they mean there. Name this class before the Trainer:

        class Trainer(stoker.torch.TrainerMixin, transformers.Trainer):
            loader_options = {"seed": 0}

    Attributes:
        loader_options: Options for ``stoker.torch.adopt``.
    """

    loader_options: ClassVar[Mapping[str, Any]] = {}

    def get_train_dataloader(self) -> Any:
        return adopt(super().get_train_dataloader(), **self.loader_options)  # type: ignore[misc]

    def get_eval_dataloader(self, *args: Any, **kwargs: Any) -> Any:
        return adopt(super().get_eval_dataloader(*args, **kwargs), **self.loader_options)  # type: ignore[misc]

    def get_test_dataloader(self, *args: Any, **kwargs: Any) -> Any:
        return adopt(super().get_test_dataloader(*args, **kwargs), **self.loader_options)  # type: ignore[misc]

    def get_batch_samples(self, epoch_iterator: Any, *args: Any, **kwargs: Any) -> Any:
        # In the epoch that a resume begins in, the Trainer has left our loader for another, which skips batches. We
        # meet it here at the earliest: as the generator that iterates it, which has not begun to.
        if inspect.isgenerator(epoch_iterator) and inspect.getgeneratorstate(epoch_iterator) == inspect.GEN_CREATED:
            loader = inspect.getgeneratorlocals(epoch_iterator).get("self")
            if hasattr(loader, "base_dataloader"):
                adopt(loader, **self.loader_options)
        return super().get_batch_samples(epoch_iterator, *args, **kwargs)  # type: ignore[misc]
