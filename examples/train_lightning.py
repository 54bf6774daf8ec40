"""Lightning's Trainer with the drop-in: stopped in the middle of an epoch, and resumed with the next batch.

python examples/train_lightning.py
"""

import logging
import sys
import tempfile
import warnings

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset

from stoker.torch import DataLoader  # the one line that changes

EPOCHS = 5


class Classifier(LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        self.losses, self.hits, self.accuracy = [], [], 0.0

    def training_step(self, batch):
        loss = nn.functional.cross_entropy(self.layers(batch[0]), batch[1])
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch):
        self.hits += (self.layers(batch[0]).argmax(1) == batch[1]).tolist()

    def on_validation_epoch_end(self):
        self.accuracy, loss = sum(self.hits) / len(self.hits), sum(self.losses) / len(self.losses)
        batches, rest = self.trainer.num_training_batches, len(self.losses)
        resumed = f"{rest} of {batches} batches, " if rest < batches else ""
        print(f"epoch {self.current_epoch + 1}: {resumed}loss {loss:.3f}, accuracy {self.accuracy:.1%}")
        self.losses, self.hits = [], []

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.003)


def fit(model, checkpoint=None, **options):
    images, labels = load_digits(return_X_y=True)
    data = TensorDataset(torch.from_numpy(images / 16).float(), torch.from_numpy(labels))
    held_out = range(0, len(data), 5)
    train = torch.utils.data.Subset(data, [k for k in range(len(data)) if k % 5])
    test = torch.utils.data.Subset(data, held_out)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "num_sanity_val_steps": 0}
    Trainer(accelerator="cpu", **quiet, **options).fit(
        model,
        DataLoader(train, 16, shuffle=True, num_workers=2, persistent_workers=True),
        DataLoader(test, 64, num_workers=1, persistent_workers=True),
        ckpt_path=checkpoint,
    )


if __name__ == "__main__":
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        saving = ModelCheckpoint(folder, "in the middle", every_n_train_steps=30)  # a third of the first epoch
        fit(Classifier(), callbacks=[saving], max_steps=30)
        model = Classifier()
        fit(model, saving.best_model_path, enable_checkpointing=False, max_epochs=EPOCHS)
    sys.exit(None if model.accuracy > 0.85 else "it has not learned")
