"""dataset_server's interface: augmented digits are kept in a cache, and made anew every third epoch.

python examples/dataset_server_digits.py
"""

import sys
import tempfile
import time

import numpy as np
import torch
from scipy import ndimage
from sklearn.datasets import load_digits
from torch import nn

from stoker.compat.dataset_server import DataLoader

EPOCHS = 6


class Digits:
    """Scikit-learn's digits; every fifth is held out for the test, the others are turned, moved and blurred."""

    def __init__(self, train):
        images, labels = load_digits(return_X_y=True)
        chosen = (np.arange(len(labels)) % 5 != 0) == train
        self.train = train
        self.images, self.labels = images[chosen].reshape(-1, 8, 8) / 16, labels[chosen]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        if self.train:
            image = ndimage.rotate(image, np.random.uniform(-15, 15), reshape=False, mode="nearest")
            image = ndimage.shift(image, np.random.uniform(-0.5, 0.5, 2), mode="nearest")
            image = ndimage.gaussian_filter(image, np.random.uniform(0, 0.4))
        return {"image": image[None].astype(np.float32), "label": self.labels[index]}


torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(576, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

# All samples are on disk while epochs 1 to 3 and 4 to 6 run. A folder that stays would serve the next run, too.
with tempfile.TemporaryDirectory() as folder:
    train_loader = DataLoader(
        dataset_class=Digits,
        dataset_params={"train": True},
        batch_size=32,
        nb_worker=2,
        shuffle=True,
        device="cpu",
        cache_setting={"prefix": f"{folder}/digits", "update_frequency": 3},
    )
    test_loader = DataLoader(Digits, {"train": False}, batch_size=128, nb_worker=1, device="cpu")
    with train_loader, test_loader:
        for epoch in range(1, EPOCHS + 1):
            losses, began = [], time.perf_counter()
            for batch in train_loader:
                loss = nn.functional.cross_entropy(model(batch["image"]), batch["label"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            seconds = time.perf_counter() - began
            with torch.no_grad():
                hits = torch.cat([model(batch["image"]).argmax(1) == batch["label"] for batch in test_loader])
            accuracy = float(hits.float().mean())
            print(f"epoch {epoch}: {seconds:.2f} s, loss {np.mean(losses):.3f}, accuracy {accuracy:.1%}")

sys.exit(None if accuracy > 0.85 else "it has not learned")
