"""A small transformer learns a made-up language from documents that are packed into rows, several in each.

python examples/train_language_model.py
"""

import sys

import numpy as np
import torch
from torch import nn

import stoker

EPOCHS, WORDS, ROW, WIDTH = 4, 32, 64, 32


def documents(count, seed):
    """Of different lengths. Which word follows depends on the one before it, but for one in twenty, which is noise."""
    rng = np.random.default_rng(seed)
    for length in rng.lognormal(2.7, 0.7, count).astype(int) + 2:
        words = [int(rng.integers(1, WORDS))]
        while len(words) < length:
            words.append(int(rng.integers(1, WORDS)) if rng.random() < 0.05 else 1 + (words[-1] * 5 + 7) % (WORDS - 1))
        yield np.array(words, dtype=np.int32)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(ROW, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0, batch_first=True)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, batch):
        segments = batch["segment_ids"]
        sees = segments[:, :, None] == segments[:, None, :]  # its own document only,
        sees &= torch.ones(ROW, ROW, dtype=torch.bool).tril()  # and of that what is before it
        vectors = self.words(batch["tokens"]) + self.places(batch["position_ids"])
        return self.head(self.layer(vectors, ~sees.repeat_interleave(4, dim=0)))


def predicted(model, batch):
    """Logits and targets, where the next token is one of the same document."""
    segments = batch["segment_ids"]
    within = (segments[:, 1:] == segments[:, :-1]) & (segments[:, 1:] > 0)
    return model(batch)[:, :-1][within], batch["tokens"][:, 1:][within].long()


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
options = {"batch_size": 8, "workers": 2, "pack": stoker.Pack(ROW), "to": "torch"}
train = stoker.Loader(list(documents(2000, seed=1)), shuffle=True, **options)
test = stoker.Loader(list(documents(200, seed=2)), **options)

with train, test:
    for epoch in range(1, EPOCHS + 1):
        losses = []
        for batch in train:  # tokens, segment_ids and position_ids, each (8, 64)
            loss = nn.functional.cross_entropy(*predicted(model, batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad():
            pairs = [predicted(model, batch) for batch in test]
        hits = torch.cat([logits.argmax(1) == targets for logits, targets in pairs])
        accuracy = hits.float().mean().item()  # about 95 %: nobody can tell noise
        print(f"epoch {epoch}: loss {np.mean(losses):.3f}, accuracy {accuracy:.1%}")

sys.exit(None if accuracy > 0.85 else "it has not learned")
