"""A program for each rank: plain DistributedDataParallel with gloo, stopped in the middle of an epoch and resumed."""

from __future__ import annotations

import json

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

from stoker.torch import DataLoader
from tests.torch_frameworks.samples import Numbers, numbers

LENGTH, BATCH, EPOCHS = 22, 4, 2


def loader():
    sampler = DistributedSampler(range(LENGTH), seed=3)
    return DataLoader(Numbers(LENGTH), BATCH, sampler=sampler, num_workers=1, persistent_workers=True)


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    batches, types, state = [], [], None
    train = loader()
    for epoch in range(EPOCHS):
        train.sampler.set_epoch(epoch)
        iterator = iter(train)
        types.append(type(iterator).__name__)
        for step, batch in enumerate(iterator):
            loss = torch.nn.functional.mse_loss(model(batch["x"]), 2 * batch["x"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            batches.append(numbers(batch))
            if (epoch, step) == (1, 0):
                state = train.state_dict()
    resumed = loader()
    resumed.sampler.set_epoch(1)
    resumed.load_state_dict(state)
    rest = [numbers(batch) for batch in resumed]
    weight = model.module.weight.item()
    dist.destroy_process_group()
    print(json.dumps({"batches": batches, "types": types, "rest": rest, "weight": weight}))


if __name__ == "__main__":
    main()
