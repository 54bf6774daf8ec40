"""A program for each rank: Accelerate on two processes, with a map-style dataset and with a stream."""

from __future__ import annotations

import json
import sys
import warnings

import torch
from accelerate import Accelerator, skip_first_batches
from accelerate.utils import DataLoaderConfiguration
from torch.utils.data.dataloader import _BaseDataLoaderIter

from stoker.torch import DataLoader, adopt
from tests.torch_frameworks.iterators import noting
from tests.torch_frameworks.samples import Numbers, Stream, numbers

LENGTH, BATCH = 22, 4


def main(folder):
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", message="This DataLoader will create")
    types = []
    _BaseDataLoaderIter.__init__ = noting(types)
    torch.manual_seed(1)
    seedable = DataLoaderConfiguration(use_seedable_sampler=True)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, dataloader_config=seedable)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    shuffled = DataLoader(Numbers(LENGTH), BATCH, shuffle=True, num_workers=1)
    model, optimizer, prepared = accelerator.prepare(model, optimizer, shuffled)
    train = adopt(prepared)
    accelerator.register_for_checkpointing(train)
    said = {"batches": [], "synced": [], "pids": []}
    for batch in train:
        with accelerator.accumulate(model):
            accelerator.backward(torch.nn.functional.mse_loss(model(batch["x"]), 2 * batch["x"]))
            optimizer.step()
            optimizer.zero_grad()
        said["batches"].append(numbers(batch))
        said["synced"].append(accelerator.sync_gradients)
        said["pids"] += batch["pid"].tolist()
        if len(said["batches"]) == 2:
            accelerator.save_state(folder)
    accelerator.load_state(folder)
    train.set_epoch(0)
    said["rest"] = [numbers(batch) for batch in train]

    test = adopt(accelerator.prepare(DataLoader(Numbers(LENGTH), BATCH, num_workers=1)))
    said["gathered"] = [numbers(accelerator.gather_for_metrics(batch)) for batch in test]
    said["skipped"] = [numbers(batch) for batch in adopt(skip_first_batches(test, 2))]
    stream = adopt(accelerator.prepare(DataLoader(Stream(LENGTH), BATCH, num_workers=1)))
    said["streamed"] = [numbers(accelerator.gather_for_metrics(batch)) for batch in stream]
    said["types"] = [one.__name__ for one in types]
    accelerator.end_training()
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1])
