"""Keras and its `fit`: a network with one hidden layer learns scikit-learn's digits.

python examples/train_keras.py
"""

import sys

import keras
import numpy as np
from sklearn.datasets import load_digits

import stoker

EPOCHS = 6


class Digits:
    """Digits with noise, which is new each epoch and yet the same in each run: the loader seeds numpy."""

    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index] + np.random.normal(0, 0.1, 64).astype(np.float32), self.labels[index]


def forever(loader):
    """Keras asks for so many steps an epoch, of one generator that has no end."""
    while True:
        yield from loader


def tell(epoch, logs):
    print(f"epoch {epoch + 1}: loss {logs['loss']:.3f}, accuracy {logs['val_accuracy']:.1%}")


images, labels = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32)
held_out = np.arange(len(labels)) % 5 == 0
train, test = Digits(images[~held_out], labels[~held_out]), (images[held_out], labels[held_out])

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.layers.Dense(64, "relu"), keras.layers.Dense(10)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.005), loss, metrics=["accuracy"])

with stoker.Loader(train, 32, shuffle=True, drop_last=True, workers=2) as loader:
    history = model.fit(
        forever(loader),
        steps_per_epoch=len(loader),
        epochs=EPOCHS,
        shuffle=False,  # the loader does
        validation_data=test,
        callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=tell)],
        verbose=0,
    )

sys.exit(None if history.history["val_accuracy"][-1] > 0.85 else "it has not learned")
