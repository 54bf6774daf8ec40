"""``stoker replay --step``: makes the batch of a step again, here in the foreground, and says what is in it.

It is the batch that a loader with the same settings makes: the same samples, with the same random numbers.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import stoker
from stoker.cli.dataset import found
from stoker.cli.debugger import debug
from stoker.cli.frames import story
from stoker.cli.quarantine import CannotReplay
from stoker.cli.terminal import output, print_json, printable

_OF_A_STATE = ("batch_size", "shuffle", "seed", "drop_last")
_LISTED = 256  # samples that are named; --json has them all


def add_options(parser: argparse.ArgumentParser) -> None:
    """The settings of the loader, where no state tells them."""
    group = parser.add_argument_group("of the batch of a step")
    group.add_argument("--step", type=int, metavar="N", help="make the batch of this step again, from 0 on")
    group.add_argument("--epoch", type=int, default=0, metavar="N", help="of this epoch (default: 0)")
    group.add_argument("--batch-size", type=int, default=32, metavar="N", help="as the loader has it (default: 32)")
    group.add_argument(
        "--shuffle", type=int, nargs="?", const=True, default=False, metavar="WINDOW", help="as the loader has it"
    )
    group.add_argument("--seed", type=int, default=0, metavar="N", help="as the loader has it (default: 0)")
    group.add_argument("--drop-last", action="store_true", help="as the loader has it")
    group.add_argument("--shard", type=_shard, default=(0, 1), metavar="I/N", help="as in 0/8 (default: 0/1)")
    group.add_argument("--collate", metavar="NAME", help="MODULE:NAME or PATH.py:NAME of the loader's collate")
    group.add_argument("--order", metavar="NAME", help="MODULE:NAME or PATH.py:NAME of the loader's order")


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit code.

    Raises:
        CannotReplay: The batch is not there, or it is not known which one it is.
    """
    console = output(quiet=arguments.json)
    state = None if arguments.file is None else _state_in(arguments.file)
    dataset = _dataset(arguments.dataset, state)
    with _loader(dataset, state, arguments) as loader:
        told: dict[str, Any] = {"epoch": arguments.epoch, "step": arguments.step, "indices": _sought(loader, arguments)}
        if isinstance(dataset, stoker.Mix):
            told["sources"] = [list(dataset.locate(index)) for index in told["indices"]]
        console.print(f"step {arguments.step} of epoch {arguments.epoch}: samples {_listed(told)}", markup=False)
        try:
            told["arrays"] = [_told(path, leaf) for path, leaf in _leaves(next(iter(loader)), "batch")]
        except Exception as error:
            told["error"] = _printable_lines(story(error))
            console.print(told["error"], style="red")
            if arguments.pdb:
                debug(error)
    for array in told.get("arrays", ()):
        console.print(_line(array))
    if arguments.json:
        print_json(told)
    return 1 if "error" in told else 0


def _sought(loader: stoker.Loader, arguments: argparse.Namespace) -> list[int]:
    """Goes to the batch; returns the indices of its samples."""
    try:
        loader.seek(arguments.epoch, arguments.step)
        return loader.indices(arguments.epoch, arguments.step)
    except (IndexError, ValueError) as error:
        raise CannotReplay(str(error)) from error
    except Exception as error:
        raise _not_made(arguments.dataset, error) from error


def _listed(told: dict[str, Any]) -> str:
    """The numbers of the samples; in a mixture those in their sources, as in ``web[17]``."""
    indices = told["indices"]
    more = f", ... {len(indices)} in all" if len(indices) > _LISTED else ""
    named = [f"{printable(name)}[{own}]" for name, own in told.get("sources", ())] or list(map(str, indices))
    return ", ".join(named[:_LISTED]) + more


def _line(array: dict[str, Any]) -> str:
    return printable("  ".join([f"  {array['name']}", *(f"{key} {array[key]}" for key in array if key != "name")]))


def _printable_lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def _dataset(name: str | None, state: dict[str, Any] | None) -> Any:
    if name is None:
        raise CannotReplay("--step needs a dataset: pass --dataset MODULE:NAME, or --dataset PATH.py:NAME")
    dataset = found(name)
    if state is None or "mixture" not in state or isinstance(dataset, stoker.Mix) or not callable(dataset):
        return dataset
    try:  # a loader needs a Mix, and no function that makes one
        return dataset()
    except Exception as error:
        raise _not_made(name, error) from error


def _not_made(name: str, error: Exception) -> CannotReplay:
    return CannotReplay(f"the dataset {name} cannot be made:\n{story(error)}")


def _loader(dataset: Any, state: dict[str, Any] | None, arguments: argparse.Namespace) -> stoker.Loader:
    settings = {name: getattr(arguments, name) for name in (*_OF_A_STATE, "shard")}
    for name in ("collate", "order"):
        given = getattr(arguments, name)
        settings[name] = None if given is None else found(given, f"--{name} ")
    if state is not None:
        settings |= _settings_in(state, arguments)
    try:
        loader = stoker.Loader(dataset, workers=stoker.Inline(), **settings)
        if state is not None:
            loader.load_state_dict(state)  # which checks that it belongs to this dataset
        return loader
    except (TypeError, ValueError, stoker.StateError) as error:
        raise CannotReplay(str(error)) from error


def _state_in(file: str) -> dict[str, Any]:
    try:
        with open(file, encoding="utf-8") as opened:
            state = json.load(opened)
        if not isinstance(state, dict) or not all(name in state["plan"] for name in _OF_A_STATE):
            raise ValueError("it is other JSON")
        return state
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotReplay(
            f"{file} is no state of a Loader that was saved as JSON ({type(error).__name__}: {error}). With --step, "
            f"pass json.dumps(loader.state_dict()) as a file, or no file and --batch-size, --shuffle, --seed, ..."
        ) from error


def _settings_in(state: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """Those of the loader that has saved the state."""
    plan, shards, file = state["plan"], state.get("shards"), arguments.file
    if plan.get("rotation") is not None:
        raise CannotReplay(f"{file} has {plan['rotation']}: batches of rotating samples cannot be made by themselves")
    if plan.get("order") is not None and arguments.order is None and "mixture" not in state:
        raise CannotReplay(
            f"{file} has order={plan['order']!r}, which a state does not hold: pass --order MODULE:NAME, or --order "
            f"PATH.py:NAME"
        )
    if arguments.shard[1] != shards:
        raise CannotReplay(f"{file} is of {shards} shards: pass --shard I/{shards} to say which one's batch you want")
    return {name: plan[name] for name in _OF_A_STATE} | {"even_shards": plan.get("even_shards", True)}


def _shard(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    return int(index), int(count)


def _leaves(batch: Any, path: str) -> Iterator[tuple[str, Any]]:
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        batch = {field.name: getattr(batch, field.name) for field in dataclasses.fields(batch)}
    if isinstance(batch, Mapping):
        for key, value in batch.items():
            yield from _leaves(value, f"{path}[{key!r}]")
    elif isinstance(batch, list | tuple):
        for place, value in enumerate(batch):
            yield from _leaves(value, f"{path}[{place}]")
    else:
        yield path, batch


def _told(path: str, leaf: Any) -> dict[str, Any]:
    """What a look at it tells: its form, and whether its numbers are as they should be."""
    try:
        array = np.asarray(leaf)
    except Exception:  # a tensor of a type that numpy has not
        array = np.empty(0, object)
    if array.dtype.kind not in "biuf" or not array.size:
        shape = list(getattr(leaf, "shape", ()))
        return {"name": path, "type": type(leaf).__name__} | ({"shape": shape} if shape else {})
    told: dict[str, Any] = {"name": path, "shape": list(array.shape), "dtype": str(array.dtype)}
    wide = array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    if finite.size:
        told |= {"min": float(finite.min()), "max": float(finite.max()), "mean": float(finite.mean())}
    return told | {"nonfinite": int(array.size - finite.size)}
