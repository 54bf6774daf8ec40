"""The Trainer of transformers with Stoker's workers, by a mixin: a small vision transformer learns digits.

python examples/train_trainer.py
"""

import os
import sys
import tempfile

import numpy as np
import torch
import transformers
from sklearn.datasets import load_digits
from transformers import TrainingArguments, ViTConfig, ViTForImageClassification

from stoker.torch import TrainerMixin

EPOCHS = 6


class Trainer(TrainerMixin, transformers.Trainer):
    """Batches for training, evaluation and after a resume come from Stoker's workers."""

    def log(self, logs, *args, **kwargs):
        """One line for each epoch: the loss comes first, then the accuracy."""
        if "loss" in logs:
            self.loss = float(logs["loss"])
        if "eval_accuracy" in logs:
            self.accuracy = logs["eval_accuracy"]
            print(f"epoch {self.state.epoch:.0f}: loss {self.loss:.3f}, accuracy {self.accuracy:.1%}")


class Digits:
    """Scikit-learn's digits; every fifth is held out for the test."""

    def __init__(self, train):
        images, labels = load_digits(return_X_y=True)
        chosen = (np.arange(len(labels)) % 5 != 0) == train
        self.images = (images[chosen] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
        self.labels = labels[chosen]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"pixel_values": self.images[index], "labels": int(self.labels[index])}


def accuracy(predicted):
    return {"accuracy": float((predicted.predictions.argmax(1) == predicted.label_ids).mean())}


if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"  # the model is made from a configuration, not downloaded
    torch.set_num_threads(1)
    size = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            num_train_epochs=EPOCHS,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=64,
            learning_rate=3e-3,
            dataloader_num_workers=2,
            dataloader_persistent_workers=True,
            dataloader_pin_memory=False,
            eval_strategy="epoch",
            logging_strategy="epoch",
            save_strategy="no",
            use_cpu=True,
            disable_tqdm=True,
            report_to="none",
        )
        model = ViTForImageClassification(ViTConfig(image_size=8, patch_size=4, num_channels=1, num_labels=10, **size))
        trainer = Trainer(model, arguments, None, Digits(True), Digits(False), compute_metrics=accuracy)
        trainer.train()
    sys.exit(None if trainer.accuracy > 0.85 else "it has not learned")
