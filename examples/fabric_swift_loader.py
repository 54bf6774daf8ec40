"""Lightning Fabric with SwiftLoader's interface: one loader, made once, feeds two processes.

python examples/fabric_swift_loader.py
"""

import sys

import numpy as np
import torch
from lightning_fabric import Fabric  # or, from the larger package: from lightning.fabric import Fabric
from sklearn.datasets import load_digits
from torch import nn

from stoker.compat.swift_loader import SwiftLoader

CONSUMERS, EPOCHS = 2, 6


class Digits:
    """Scikit-learn's digits; every fifth is held out for the test."""

    def __init__(self, train):
        images, labels = load_digits(return_X_y=True)
        chosen = (np.arange(len(labels)) % 5 != 0) == train
        self.images, self.labels = (images[chosen] / 16).astype(np.float32), labels[chosen]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


def run(fabric, train_loader, test_loader):
    """What each of the processes does."""
    torch.set_num_threads(1)
    fabric.seed_everything(0, verbose=False)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    model, optimizer = fabric.setup(model, torch.optim.Adam(model.parameters(), lr=0.01))

    # A loader is told here whom it feeds: consumer i of n gets its part of the dataset.
    train_loader.start(fabric.global_rank, device=fabric.device)
    test_loader.start(fabric.global_rank, device=fabric.device)
    for epoch in range(1, EPOCHS + 1):
        losses = []
        for images, labels in train_loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            fabric.backward(loss)
            optimizer.step()
            losses.append(loss.detach())
        with torch.no_grad():
            hits = torch.cat([model(images).argmax(1) == labels for images, labels in test_loader])
        loss, accuracy = (fabric.all_reduce(values.float().mean()) for values in (torch.stack(losses), hits))
        fabric.print(f"epoch {epoch}: loss {loss:.3f}, accuracy {accuracy:.1%}")
    train_loader.close()
    test_loader.close()
    return float(accuracy)


if __name__ == "__main__":  # for Fabric, which starts this file again in each process; Stoker does not need it
    train_loader, test_loader = (
        SwiftLoader(
            dataset_class=Digits,
            dataset_kwargs={"train": train},
            batch_size=16,
            nb_consumer=CONSUMERS,
            worker_per_consumer=1,
            shuffle=train,
            seed=0,
        )
        for train in (True, False)
    )
    fabric = Fabric(accelerator="cpu", strategy="ddp_spawn", devices=CONSUMERS)
    accuracy = fabric.launch(run, train_loader, test_loader)
    sys.exit(None if accuracy > 0.85 else "it has not learned")
