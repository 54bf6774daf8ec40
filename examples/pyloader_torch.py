"""PyLoader's interface with torch: tell sentences from the sea from those from the kitchen, file by file.

python examples/pyloader_torch.py
"""

import itertools
import json
import random
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

from stoker.compat.pyloader import DataCollator, DataLoader, JsonLineDataReader, TextDataset

EPOCHS = 4
ANYWHERE = ["the", "a", "old", "and", "with", "under", "today", "she", "they", "took", "left", "found", "cold"]
SEA = ["boat", "wave", "sail", "harbour", "gull", "tide", "anchor", "deck", "rope", "fog", "island", "captain"]
KITCHEN = ["oven", "bread", "spoon", "salt", "onion", "soup", "plate", "knife", "butter", "stove", "cook", "pepper"]


class Tensors(DataCollator):
    """Runs in the workers."""

    def collate_batch(self, batch_data):
        return {key: torch.tensor(values) for key, values in batch_data.items()}


def write_chunk(path, sentences):
    """One JSON object a line. Three words of a sentence tell its class, or in one case of ten mislead."""
    with path.open("w") as file:
        for _ in range(sentences):
            label = random.randrange(2)
            telling = [random.choice((KITCHEN, SEA)[label if random.random() < 0.9 else 1 - label]) for _ in range(3)]
            words = telling + random.choices(ANYWHERE, k=random.randint(5, 13))
            random.shuffle(words)
            file.write(json.dumps({"text": " ".join(words), "label": label}) + "\n")


def write_all(folder):
    for part, chunks in (("train", 10), ("test", 2)):
        (folder / part).mkdir()
        for number in range(chunks):
            write_chunk(folder / part / f"{number:02}.jsonl", 200)
    (folder / "vocabulary.txt").write_text("\n".join(["[PAD]", "[UNK]", *ANYWHERE, *SEA, *KITCHEN]))


random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as name:
    write_all(folder := Path(name))
    dataset = TextDataset(folder / "vocabulary.txt", ["text"], max_seq_len=16)
    words = nn.EmbeddingBag(dataset.vocab_size, 16, padding_idx=dataset.pad_id)  # their mean
    model = nn.Sequential(words, nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    reader = JsonLineDataReader(batch_size=32, shuffle=True)
    with DataLoader(reader, dataset, Tensors(), folder / "train", num_epoch=EPOCHS, shuffle=True) as loader:
        for epoch, batches in itertools.groupby(loader, lambda batch: loader.get_epoch()):
            losses = []
            for batch in batches:
                loss = nn.functional.cross_entropy(model(batch["text"]), batch["label"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            with DataLoader(reader, dataset, Tensors(), folder / "test", max_queue_size=1) as test, torch.no_grad():
                hits = torch.cat([model(batch["text"]).argmax(1) == batch["label"] for batch in test])
            accuracy = float(hits.float().mean())
            print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, accuracy {accuracy:.1%}")

sys.exit(None if accuracy > 0.85 else "it has not learned")
