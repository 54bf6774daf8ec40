"""The example with Ray Train trains, on the cluster of these tests, each sample once an epoch over both ranks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_ray.py"


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_ray_train_with_two_workers(cluster):
    pytest.importorskip("torch")
    pytest.importorskip("ray.train.torch")
    done = subprocess.run([sys.executable, EXAMPLE, cluster.address], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert "epoch 2: 2048 samples, accuracy 0.8" in done.stdout + done.stderr
