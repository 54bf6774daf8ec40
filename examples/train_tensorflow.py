"""Keras and a GradientTape: a network with one hidden layer learns scikit-learn's digits.

python examples/train_tensorflow.py
"""

import sys

import numpy as np
import tensorflow as tf
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
        noise = np.random.normal(0, 0.1, 64).astype(np.float32)
        return {"image": self.images[index] + noise, "label": self.labels[index]}


tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential([tf.keras.layers.Dense(64, "relu"), tf.keras.layers.Dense(10)])
model.build((None, 64))
optimizer = tf.keras.optimizers.Adam(0.005)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


images, labels = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32)
held_out = np.arange(len(labels)) % 5 == 0
train, test = Digits(images[~held_out], labels[~held_out]), (images[held_out], labels[held_out])

# drop_last: each new shape of a batch is one more trace
with stoker.Loader(train, 32, shuffle=True, drop_last=True, workers=2, to="tensorflow") as loader:
    for epoch in range(1, EPOCHS + 1):
        losses = [float(step(batch["image"], batch["label"])) for batch in loader]
        accuracy = float((model(test[0]).numpy().argmax(1) == test[1]).mean())
        print(f"epoch {epoch}: loss {np.mean(losses):.3f}, accuracy {accuracy:.1%}")

sys.exit(None if accuracy > 0.85 else "it has not learned")
