"""Tables in Parquet files, read part by part: columns arrive as tensors, and only those that are named are read.

python examples/train_parquet.py
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import torch
from torch import nn

import stoker

EPOCHS, CITIES = 4, 20


def write(folder, files, rows, seed):
    """Who buys? In place of your own files: with a null here and there, and a column that nobody needs."""
    rng, taste = np.random.default_rng(seed), np.random.default_rng(0).normal(size=CITIES)
    folder.mkdir()
    for number in range(files):
        age, city, income = rng.uniform(18, 90, rows), rng.integers(0, CITIES, rows), rng.lognormal(10, 0.5, rows)
        score = 3 * taste[city] + (age - 54) / 10 + np.log(income) - 10 + rng.normal(0, 0.3, rows)
        columns = {
            "age": pyarrow.array(age, mask=rng.random(rows) < 0.01),
            "city": city,
            "income": income,
            "buys": score > 0,
            "comment": ["nobody needs this"] * rows,
        }
        pyarrow.parquet.write_table(pyarrow.table(columns), folder / f"{number:03}.parquet")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.city = nn.Embedding(CITIES, 8)
        self.layers = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, batch):
        age = (batch["age"].nan_to_num(54) - 54) / 20  # a null is NaN
        numbers = torch.stack([age, batch["income"].log() - 10], dim=1)
        return self.layers(torch.cat([numbers, self.city(batch["city"])], dim=1))[:, 0]


def loader(folder, **options):
    types = {"age": "float32", "income": "float32", "buys": "float32"}
    chunks = stoker.Chunks(
        folder, columns=["age", "income", "city", "buys"], dtypes=types
    )  # or "s3://bucket/*.parquet"
    return stoker.Loader(chunks, 128, workers=2, to="torch", **options)


root = Path(tempfile.mkdtemp())
write(root / "train", files=8, rows=2000, seed=1)
write(root / "test", files=2, rows=1000, seed=2)
torch.manual_seed(0)
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

with loader(root / "train", shuffle=True) as train, loader(root / "test") as test:
    for epoch in range(1, EPOCHS + 1):
        losses = []
        for batch in train:
            loss = nn.functional.binary_cross_entropy_with_logits(model(batch), batch["buys"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        hits = torch.cat([(model(batch) > 0) == (batch["buys"] > 0.5) for batch in test])
        accuracy = hits.float().mean().item()
        print(f"epoch {epoch}: loss {np.mean(losses):.3f}, accuracy {accuracy:.1%}")

sys.exit(None if accuracy > 0.85 else "it has not learned")
