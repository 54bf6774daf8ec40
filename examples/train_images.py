"""A folder of JPEGs for each class, as ImageNet has it: decoded and augmented in workers, learned by a small network.

python examples/train_images.py
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import nn

import stoker

EPOCHS, SIZE = 4, 32


def draw(root, count, seed):
    """Discs and squares of any colour, somewhere in a photo of noise: in place of your own files."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        image = Image.fromarray(rng.integers(0, 90, (120, 160, 3), np.uint8))
        pen, kind = ImageDraw.Draw(image), ["disc", "square"][number % 2]
        (x, y, size), colour = rng.integers((5, 5, 50), (80, 40, 75)), tuple(rng.integers(150, 255, 3).tolist())
        (pen.ellipse if kind == "disc" else pen.rectangle)((x, y, x + size, y + size), colour)
        (root / kind).mkdir(parents=True, exist_ok=True)
        image.save(root / kind / f"{number}.jpg")


class Folder:
    """Gives (pixels, class): arrays of uint8, a quarter of the bytes that floats would have."""

    def __init__(self, root, is_training):
        self.files, self.is_training = sorted(root.glob("*/*.jpg")), is_training
        self.names = sorted({file.parent.name for file in self.files})

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        with Image.open(self.files[index]) as image:
            image.draft("RGB", (SIZE, SIZE))  # has the decoder make it smaller, where that is quicker
            pixels = np.asarray(image.convert("RGB").resize((SIZE, SIZE)))
        if self.is_training and np.random.rand() < 0.5:  # new in each epoch, and the same in each run
            pixels = pixels[:, ::-1]
        return pixels, self.names.index(self.files[index].parent.name)


class Model(nn.Sequential):
    def forward(self, images):
        return super().forward(images.permute(0, 3, 1, 2).float() / 255)  # bytes until here


root = Path(tempfile.mkdtemp())
draw(root / "train", 500, seed=1)
draw(root / "test", 100, seed=2)
torch.manual_seed(0)
stages = [(nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU()) for a, b in ((3, 16), (16, 32), (32, 64))]
model = Model(*sum(stages, ()), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
train = stoker.Loader(Folder(root / "train", True), 32, shuffle=True, workers=2, to="torch", on_error="skip")
test = stoker.Loader(Folder(root / "test", False), 50, workers=2, to="torch")

with train, test:
    for epoch in range(1, EPOCHS + 1):
        model.train()
        losses = []
        for images, labels in train:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        right = sum(int((model(images).argmax(1) == labels).sum()) for images, labels in test)
        print(f"epoch {epoch}: loss {np.mean(losses):.3f}, accuracy {right / 100:.1%}")

sys.exit(None if right / 100 > 0.85 else "it has not learned")
