"""The demo's model: one hidden layer, in plain numpy, so that the demo installs in seconds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]


class Classifier:
    """A two-layer network trained by gradient descent with momentum."""

    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        random = np.random.default_rng(0)
        self._weights = [_random_layer(random, inputs, hidden), _random_layer(random, hidden, classes)]
        self._momenta = [np.zeros_like(weights) for weights in self._weights]

    def train(self, images: Floats, labels: Labels, rate: float = 0.01) -> float:
        """One step on one batch; returns the batch's mean loss before it."""
        x, hidden, chances = self._forward(images)
        each = np.arange(len(labels))
        loss = -np.log(chances[each, labels] + 1e-9).mean()
        chances[each, labels] -= 1  # now the gradient of the loss by the scores
        by_scores: Floats = chances / np.float32(len(labels))
        by_hidden = (by_scores @ self._weights[1].T) * (hidden > 0)
        self._descend([x.T @ by_hidden, hidden.T @ by_scores], rate)
        return float(loss)

    def accuracy(self, images: Floats, labels: Labels) -> float:
        """The part of the labels that it gets right."""
        return float((self._forward(images)[2].argmax(axis=1) == labels).mean())

    def _forward(self, images: Floats) -> tuple[Floats, Floats, Floats]:
        x = images.reshape(len(images), -1)
        hidden = np.maximum(x @ self._weights[0], 0)
        scores = hidden @ self._weights[1]
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        return x, hidden, chances / chances.sum(axis=1, keepdims=True)

    def _descend(self, gradients: list[Floats], rate: float) -> None:
        for weights, momentum, gradient in zip(self._weights, self._momenta, gradients, strict=True):
            momentum *= 0.9
            momentum -= rate * gradient
            weights += momentum


def _random_layer(random: np.random.Generator, inputs: int, outputs: int) -> Floats:
    return random.normal(0, np.sqrt(2 / inputs), (inputs, outputs)).astype(np.float32)
