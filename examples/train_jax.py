"""Plain JAX: a network with one hidden layer learns scikit-learn's digits.

python examples/train_jax.py
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

import stoker

EPOCHS, RATE = 6, 0.2


class Digits:
    """Digits with noise, which is new each epoch and yet the same in each run: the loader seeds numpy."""

    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        noise = np.random.normal(0, 0.1, 64).astype(np.float32)
        return {"image": self.images[index] + noise, "label": self.labels[index]}


def scores(weights, images):
    first, second = weights
    return jax.nn.relu(images @ first) @ second


def loss_of(weights, batch):
    chosen = jax.nn.log_softmax(scores(weights, batch["image"]))
    return -jnp.take_along_axis(chosen, batch["label"][:, None], axis=1).mean()


@jax.jit
def step(weights, batch):
    loss, gradients = jax.value_and_grad(loss_of)(weights, batch)
    return jax.tree.map(lambda weight, gradient: weight - RATE * gradient, weights, gradients), loss


images, labels = load_digits(return_X_y=True)
images, labels = (images / 16).astype(np.float32), labels.astype(np.int32)  # JAX has no 64 bits unless it is told to
held_out = np.arange(len(labels)) % 5 == 0
train, test = Digits(images[~held_out], labels[~held_out]), (images[held_out], labels[held_out])
weights = [
    jax.random.normal(jax.random.key(0), (64, 64)) * (2 / 64) ** 0.5,
    jax.random.normal(jax.random.key(1), (64, 10)) * (2 / 64) ** 0.5,
]

# drop_last: each new shape of a batch is one more compilation
with stoker.Loader(train, 32, shuffle=True, drop_last=True, workers=2, to="jax") as loader:
    for epoch in range(1, EPOCHS + 1):
        losses = []
        for batch in loader:  # jax.Arrays over the memory that the workers wrote
            weights, loss = step(weights, batch)
            losses.append(loss)
        accuracy = float((scores(weights, test[0]).argmax(1) == test[1]).mean())
        print(f"epoch {epoch}: loss {np.mean(losses):.3f}, accuracy {accuracy:.1%}")

sys.exit(None if accuracy > 0.85 else "it has not learned")
