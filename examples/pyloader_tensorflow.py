"""PyLoader's interface with Keras: tell sentences from the garden from those from the workshop, file by file.

python examples/pyloader_tensorflow.py
"""

import itertools
import json
import random
import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from stoker.compat.pyloader import DataLoader, JsonLineDataReader, NumpyDataCollator, TextDataset

EPOCHS = 4
ANYWHERE = ["the", "a", "old", "and", "with", "under", "today", "she", "they", "took", "left", "found", "cold"]
GARDEN = ["rose", "bee", "hedge", "spade", "apple", "seed", "lawn", "pond", "moss", "worm", "tulip", "rake"]
WORKSHOP = ["hammer", "nail", "saw", "lathe", "bolt", "glue", "chisel", "drill", "screw", "vise", "plank", "wrench"]


def write_chunk(path, sentences):
    """One JSON object a line. Three words of a sentence tell its class, or in one case of ten mislead."""
    with path.open("w") as file:
        for _ in range(sentences):
            label = random.randrange(2)
            telling = [
                random.choice((WORKSHOP, GARDEN)[label if random.random() < 0.9 else 1 - label]) for _ in range(3)
            ]
            words = telling + random.choices(ANYWHERE, k=random.randint(5, 13))
            random.shuffle(words)
            file.write(json.dumps({"text": " ".join(words), "label": label}) + "\n")


def write_all(folder):
    for part, chunks in (("train", 10), ("test", 2)):
        (folder / part).mkdir()
        for number in range(chunks):
            write_chunk(folder / part / f"{number:02}.jsonl", 200)
    (folder / "vocabulary.txt").write_text("\n".join(["[PAD]", "[UNK]", *ANYWHERE, *GARDEN, *WORKSHOP]))


random.seed(0)
tf.keras.utils.set_random_seed(0)
with tempfile.TemporaryDirectory() as name:
    write_all(folder := Path(name))
    dataset = TextDataset(folder / "vocabulary.txt", ["text"], max_seq_len=16)
    layers = [tf.keras.layers.Embedding(dataset.vocab_size, 16, mask_zero=True)]  # pad_id is 0
    layers += [tf.keras.layers.GlobalAveragePooling1D(), tf.keras.layers.Dense(2)]
    model = tf.keras.Sequential(layers)
    model.compile(tf.keras.optimizers.Adam(0.01), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    reader, arrays = JsonLineDataReader(batch_size=32, shuffle=True), NumpyDataCollator()  # workers need no TensorFlow
    with DataLoader(reader, dataset, arrays, folder / "train", num_epoch=EPOCHS, shuffle=True) as loader:
        for epoch, batches in itertools.groupby(loader, lambda batch: loader.get_epoch()):
            losses = [float(model.train_on_batch(batch["text"], batch["label"])) for batch in batches]
            with DataLoader(reader, dataset, arrays, folder / "test", max_queue_size=1) as test:
                hits = [model(batch["text"]).numpy().argmax(1) == batch["label"] for batch in test]
            accuracy = float(np.concatenate(hits).mean())
            print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, accuracy {accuracy:.1%}")

sys.exit(None if accuracy > 0.85 else "it has not learned")
