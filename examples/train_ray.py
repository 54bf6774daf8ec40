"""Trains a small classifier with Ray Train on two CPU workers, each fed by a Stoker worker of its own on the cluster.

pip install 'stoker[ray,torch]' 'ray[train]'
python examples/train_ray.py            # starts a Ray on this machine
python examples/train_ray.py auto       # on the cluster that runs
"""

from __future__ import annotations

import sys

import ray
import ray.train.torch
import torch
import torch.distributed
from ray.train import ScalingConfig

import stoker

SAMPLES, FEATURES, CLASSES, EPOCHS = 2048, 16, 4, 3


class Clusters:
    """Points around a centre for each class: sample i is always the same."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        label = index % CLASSES
        noise = torch.randn(FEATURES, generator=torch.Generator().manual_seed(index))
        return noise + 2 * torch.nn.functional.one_hot(torch.tensor(label), FEATURES), label


def train() -> None:
    """Runs in each worker of Ray Train."""
    model = ray.train.torch.prepare_model(torch.nn.Linear(FEATURES, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    # Each rank reads its own part: shard="auto" finds the rank in torch.distributed, which Ray Train has set up.
    workers = stoker.Ray(1, num_cpus=0.5)
    with stoker.Loader(Clusters, 64, shuffle=True, shard="auto", workers=workers) as loader:
        for epoch in range(EPOCHS):
            right = seen = 0
            for points, labels in loader:
                scores = model(points)
                labels = torch.from_numpy(labels)
                loss = torch.nn.functional.cross_entropy(scores, labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                right += int((scores.argmax(1) == labels).sum())
                seen += len(labels)
            counts = torch.tensor([right, seen])
            torch.distributed.all_reduce(counts)  # over both ranks
            accuracy, seen = counts[0].item() / counts[1].item(), counts[1].item()
            ray.train.report({"epoch": epoch, "accuracy": accuracy})
            if ray.train.get_context().get_world_rank() == 0:
                print(f"epoch {epoch}: {seen} samples, accuracy {accuracy:.3f}")


def main() -> None:
    if sys.argv[1:]:
        ray.init(address=sys.argv[1])
    else:
        ray.init(address="local", num_cpus=4, include_dashboard=False)
    ray.train.torch.TorchTrainer(train, scaling_config=ScalingConfig(num_workers=2, use_gpu=False)).fit()


if __name__ == "__main__":
    main()
