"""A program for each of two ranks of DistributedDataParallel: rank 1 reads slowly. Ends when its input does."""

from __future__ import annotations

import json
import select
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

import stoker
from stoker.torch import DataLoader

QUICK_S, SLOW_S, STEP_S = 0.001, 0.05, 0.005  # a sample of rank 0, of rank 1; a step


class Numbers(torch.utils.data.Dataset):
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __len__(self) -> int:
        return 200

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(self.seconds)
        return torch.full((1,), float(index))


def is_over() -> bool:
    """On any rank: all end with the same step."""
    told = torch.tensor(float(bool(select.select([sys.stdin], [], [], 0)[0])))
    dist.all_reduce(told)
    return bool(told)


def main() -> None:
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    dataset = Numbers(SLOW_S if rank == 1 else QUICK_S)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, 2, sampler=sampler, num_workers=1, persistent_workers=True, watch=True)
    ended = False
    while not ended:
        for batch in loader:
            model(batch).sum().backward()
            time.sleep(STEP_S)
            if ended := is_over():
                break
    found = [None] * ranks
    dist.all_gather_object(found, loader.stats())
    dist.destroy_process_group()
    diagnosis = stoker.compare_ranks(found)
    print(json.dumps([diagnosis.rank, diagnosis.culprit.name, diagnosis.sentence]))


if __name__ == "__main__":
    main()
