"""Accelerate with the drop-in, on any number of processes: `adopt` puts Stoker's workers under what it prepares.

python examples/train_accelerate.py, or accelerate launch --cpu --num_processes 2 examples/train_accelerate.py
"""

import sys

import torch
from accelerate import Accelerator
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import Subset, TensorDataset

from stoker.torch import DataLoader, adopt

EPOCHS = 6

torch.set_num_threads(1)
torch.manual_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

images, labels = load_digits(return_X_y=True)
data = TensorDataset(torch.from_numpy(images / 16).float(), torch.from_numpy(labels))
train = DataLoader(Subset(data, [k for k in range(len(data)) if k % 5]), 8, shuffle=True, num_workers=1)
test = DataLoader(Subset(data, range(0, len(data), 5)), 64, num_workers=1)

model, optimizer, train, test = accelerator.prepare(model, optimizer, train, test)
# Accelerate has built two loaders of torch's from ours, and keeps those. This puts ours in their places.
train, test = adopt(train), adopt(test)

for epoch in range(1, EPOCHS + 1):
    losses, hits = [], []
    for images, labels in train:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(images), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    for images, labels in test:
        hits.append(accelerator.gather_for_metrics(model(images).argmax(1) == labels))
    accuracy = torch.cat(hits).float().mean().item()  # of each held-out digit once, however many processes there are
    accelerator.print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}, accuracy {accuracy:.1%}")

accelerator.end_training()
sys.exit(None if accuracy > 0.85 else "it has not learned")
