"""Two processes train one model with DistributedDataParallel, each on its own half of scikit-learn's digits.

torchrun --standalone --nproc-per-node 2 examples/train_torch_ddp.py
"""

import sys

import numpy as np
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import stoker

EPOCHS = 6


class Digits:
    """Digits with noise, which is new each epoch and yet the same in each run: the loader seeds numpy."""

    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        noise = np.random.normal(0, 0.1, 64).astype(np.float32)
        return {"image": self.images[index] + noise, "label": self.labels[index]}


torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

images, labels = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32)
held_out = np.arange(len(labels)) % 5 == 0
train, test = Digits(images[~held_out], labels[~held_out]), (torch.from_numpy(images[held_out]), labels[held_out])

# shard="auto" asks torch.distributed. Every process gets the same number of batches, so none waits for another in
# vain; together they see each digit once an epoch. No sampler, and no set_epoch.
with stoker.Loader(train, 16, shuffle=True, shard="auto", workers=2, to="torch") as loader:
    for epoch in range(1, EPOCHS + 1):
        seen = torch.zeros(2)  # samples, and the sum of their losses
        for batch in loader:
            loss = nn.functional.cross_entropy(model(batch["image"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += torch.tensor([1, loss.item()]) * len(batch["label"])
        dist.all_reduce(seen)
        accuracy = float((model(test[0]).argmax(1).numpy() == test[1]).mean())
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {seen[0]:.0f} digits, loss {seen[1] / seen[0]:.3f}, accuracy {accuracy:.1%}")

dist.destroy_process_group()
sys.exit(None if accuracy > 0.85 else "it has not learned")
