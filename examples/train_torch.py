"""Plain torch: a program that had torch's DataLoader, and changed one import. It stops, and goes on where it was.

python examples/train_torch.py
"""

import sys
import tempfile
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import Dataset

from stoker.torch import DataLoader  # was: from torch.utils.data import DataLoader

EPOCHS = 6


class Digits(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index] + 0.1 * torch.randn(64), self.labels[index]


images, labels = load_digits(return_X_y=True)
images, labels = torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(labels)
held_out = torch.arange(len(labels)) % 5 == 0
train = Digits(images[~held_out], labels[~held_out])
checkpoint = Path(tempfile.mkdtemp(), "checkpoint.pt")


def run(stop_after=None):
    """Trains to the end, or stops after so many batches, as if the machine were taken away."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    # The generator shuffles, and is part of the loader's state; the seed is that of augmentation in the workers.
    loader = DataLoader(train, 32, shuffle=True, num_workers=2, generator=torch.Generator().manual_seed(0), seed=0)
    first, steps, losses = 1, 0, []
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])  # goes on in the middle of the epoch
        first, losses = saved["epoch"], saved["losses"]
    for epoch in range(first, EPOCHS + 1):
        for features, targets in loader:
            loss = nn.functional.cross_entropy(model(features), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            steps += 1
            if steps == stop_after:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses}
                torch.save(state | {"loader": loader.state_dict(), "epoch": epoch}, checkpoint)
                return None
        accuracy = (model(images[held_out]).argmax(1) == labels[held_out]).float().mean().item()
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}, accuracy {accuracy:.1%}")
        losses = []
    return accuracy


run(stop_after=100)
sys.exit(None if run() > 0.85 else "it has not learned")
