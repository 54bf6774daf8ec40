"""The demo's data: scikit-learn's handwritten digits, enlarged and bent, so that loading costs something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage  # type: ignore[import-untyped]

SIDE = 64  # pixels; the originals are 8 x 8
CLASSES = 10
_HELD_OUT = 360  # of 1,797 digits; the rest is trained on

Sample = dict[str, Any]


@dataclass(frozen=True)
class Digits:
    """An endless supply of bent digits, of which ``length`` make an epoch."""

    images: NDArray[np.float32]
    labels: NDArray[np.int64]
    length: int

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Sample:
        at = index % len(self.labels)
        return {"image": _bend(_enlarge(self.images[at])), "label": self.labels[at]}


def load(length: int) -> tuple[Digits, NDArray[np.float32], NDArray[np.int64]]:
    """The dataset to train on, and the held-out images and labels, enlarged but not bent."""
    from sklearn.datasets import load_digits  # here, since workers have no need of it and it is slow to import

    digits = load_digits()
    images, labels = (digits.images / 16).astype(np.float32), digits.target.astype(np.int64)
    held_out = np.stack([_enlarge(image) for image in images[-_HELD_OUT:]])
    return Digits(images[:-_HELD_OUT], labels[:-_HELD_OUT], length), held_out, labels[-_HELD_OUT:]


def _enlarge(image: NDArray[np.float32]) -> NDArray[np.float32]:
    large: NDArray[np.float32] = ndimage.zoom(image, SIDE // len(image), order=3)
    return large


def _bend(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """A random rotation, shift and noise. The loader seeds numpy, so an epoch can be repeated exactly."""
    image = ndimage.rotate(image, np.random.uniform(-15, 15), reshape=False, order=1)
    image = ndimage.shift(image, np.random.uniform(-4, 4, size=2), order=1)
    return image + np.random.normal(0, 0.1, image.shape).astype(np.float32)
