"""tinyloader's interface: workers turn and blur scikit-learn's digits, and a linear classifier learns them by tinygrad.

python examples/tinyloader_digits.py
DEV=PYTHON python examples/tinyloader_digits.py  # where there is neither a GPU nor clang; then it learns 0 and 1 only
"""

import sys

import numpy as np
from scipy import ndimage
from sklearn.datasets import load_digits
from tinygrad import Context, Device, Tensor, TinyJit, nn

from stoker.compat.tinyloader import Loader, load_with_workers

# The device PYTHON interprets each kernel, number by number.
SIDE, CLASSES, EPOCHS = (4, 2, 2) if Device.DEFAULT == "PYTHON" else (8, 10, 6)
BATCH = 32


class Digits(Loader):
    """Batches of digits that are turned and blurred. An item is the digits' numbers; they travel, the digits don't."""

    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def load(self, request):
        return np.stack([self.augmented(self.images[n]) for n in request]), self.labels[request]

    def augmented(self, image):
        image = ndimage.rotate(image, np.random.uniform(-15, 15), reshape=False, mode="nearest")
        return shrunk(ndimage.gaussian_filter(image, np.random.uniform(0, 0.4)))


def shrunk(images):
    """One row for each image, of SIDE x SIDE numbers."""
    blocks = images.reshape(*images.shape[:-2], SIDE, 8 // SIDE, SIDE, 8 // SIDE)
    return blocks.mean((-3, -1)).reshape(*images.shape[:-2], SIDE * SIDE)


def batches(count):
    """Epoch after epoch without end, each in another order: nothing is drawn before it is needed."""
    order = np.random.default_rng(0)
    while True:
        yield from order.permutation(count)[: count - count % BATCH].reshape(-1, BATCH)


images, labels = load_digits(n_class=CLASSES, return_X_y=True)
images, labels = images.reshape(-1, 8, 8).astype(np.float32) / 16, labels.astype(np.int32)
held_out = np.arange(len(labels)) % 5 == 0
test_images, test_labels = shrunk(images[held_out]), labels[held_out]
train = Digits(images[~held_out], labels[~held_out])
steps = len(train.labels) // BATCH

weights = Tensor.zeros(SIDE * SIDE, CLASSES).contiguous().realize()
optimizer = nn.optim.SGD([weights], lr=0.5, momentum=0.9)


@TinyJit
@Context(TRAINING=1)
def step(images, labels):
    optimizer.zero_grad()
    loss = (images @ weights).sparse_categorical_crossentropy(labels).backward()
    optimizer.step()
    return loss.realize()


with load_with_workers(train, batches(len(train.labels)), num_worker=2) as generator:
    for epoch in range(1, EPOCHS + 1):
        losses = [step(*next(generator)).item() for _ in range(steps)]
        accuracy = ((test_images @ weights.numpy()).argmax(1) == test_labels).mean()
        print(f"epoch {epoch}: loss {np.mean(losses):.3f}, accuracy {accuracy:.1%}")

sys.exit(None if accuracy > 0.85 else "it has not learned")
