"""tinygrad: a linear classifier learns scikit-learn's digits.

python examples/train_tinygrad.py
DEV=PYTHON python examples/train_tinygrad.py  # where there is neither a GPU nor clang; then it learns 0 and 1 only
"""

import sys

import numpy as np
from sklearn.datasets import load_digits
from tinygrad import Context, Device, Tensor, TinyJit, nn

import stoker

# The device PYTHON interprets each kernel, number by number.
SIDE, CLASSES, EPOCHS = (4, 2, 2) if Device.DEFAULT == "PYTHON" else (8, 10, 6)


class Digits:
    """Digits with noise, which is new each epoch and yet the same in each run: the loader seeds numpy."""

    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        noise = np.random.normal(0, 0.1, self.images.shape[1]).astype(np.float32)
        return {"image": self.images[index] + noise, "label": self.labels[index]}


images, labels = load_digits(n_class=CLASSES, return_X_y=True)
images = images.reshape(-1, SIDE, 8 // SIDE, SIDE, 8 // SIDE).mean((2, 4)).reshape(-1, SIDE * SIDE) / 16
images, labels = images.astype(np.float32), labels.astype(np.int32)
held_out = np.arange(len(labels)) % 5 == 0
train, test = Digits(images[~held_out], labels[~held_out]), (images[held_out], labels[held_out])

weights = Tensor.zeros(SIDE * SIDE, CLASSES).contiguous().realize()
optimizer = nn.optim.SGD([weights], lr=0.5, momentum=0.9)


@TinyJit
@Context(TRAINING=1)
def step(images, labels):
    optimizer.zero_grad()
    loss = (images @ weights).sparse_categorical_crossentropy(labels).backward()
    optimizer.step()
    return loss.realize()


# drop_last: TinyJit wants one shape
with stoker.Loader(train, 32, shuffle=True, drop_last=True, workers=2, to="tinygrad") as loader:
    for epoch in range(1, EPOCHS + 1):
        losses = [step(batch["image"], batch["label"]).item() for batch in loader]
        accuracy = ((test[0] @ weights.numpy()).argmax(1) == test[1]).mean()
        print(f"epoch {epoch}: loss {np.mean(losses):.3f}, accuracy {accuracy:.1%}")

sys.exit(None if accuracy > 0.85 else "it has not learned")
