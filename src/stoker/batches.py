"""What a loader does with batches, as functions for code of your own: ``fetch``, ``collate``, ``convert`` and
``map_leaves``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from stoker.bridges import Framework, bridge, landed
from stoker.collation import collate as collated
from stoker.collation.columns import Columnar, Gathered, made
from stoker.collation.like_torch import like_torch, made_like_torch
from stoker.collation.tensors import is_tensor
from stoker.collation.tree import Attributes
from stoker.collation.tree import map_leaves as mapped
from stoker.sources.indexed import fetched


def fetch(dataset: Any, indices: Sequence[Any]) -> Sequence[Any]:
    """Reads samples of a dataset in the quickest way that it offers, as a ``Loader`` does.

    Arrays, tensors, torch's ``TensorDataset``, ``Subset`` of these and Hugging Face's ``Dataset`` give the samples of a
    batch at once; other datasets are asked for them by ``__getitems__``, if they have it, or one by one.

    Args:
        dataset: Has ``__getitem__`` or ``__getitems__``.
        indices: What to ask it for, as a list.

    Returns:
        The samples, in this order: a sequence, for ``collate``.

    Example:
        >>> import stoker
        >>> stoker.fetch("abc", [2, 0])
        ['c', 'a']
    """
    return fetched(dataset, indices)


def collate(
    samples: Iterable[Any],
    *,
    like: Literal["torch"] | None = None,
    copy: bool = True,
    otherwise: Callable[[], Any] | None = None,
) -> Any:
    """Makes one batch of samples, as a ``Loader`` does by default.

    Arrays and tensors are stacked along a new first axis, numbers become an array, strings and other objects become a
    list, and dicts, lists, tuples, namedtuples and dataclasses stay what they are. Call it in a ``collate`` function of
    your own to do something before or after it.

    Args:
        samples: The samples, all of one form, or one array or tensor that holds a sample in each row. There must be
            one at least.
        like: "torch": gives what ``torch.utils.data.default_collate`` gives, type by type: all arrays and numbers
            become tensors, and tuples become lists, in less time than torch takes. What is seldom met is left to torch.
        copy: False: arrays are not put together yet, but when a worker writes the batch into shared memory. Only for
            what a function returns in a worker; the samples must not change until then.
        otherwise: With ``like="torch"`` and ``copy=False``: a function that gives what the worker is to send in place
            of the batch if torch refuses to stack the samples. It saves looking at each tensor beforehand. None: all
            are looked at, and the error is raised here.

    Returns:
        The batch. It shares no memory with the samples.

    Raises:
        CollateError: The samples do not fit together, as when their arrays have different shapes.
        ValueError: There is no sample, or arguments do not go together.
        TypeError: ``samples`` is not a list of samples.

    Example:
        >>> import numpy as np, stoker
        >>> stoker.collate([{"x": np.array([1, 2]), "name": "a"}, {"x": np.array([3, 4]), "name": "b"}])
        {'x': array([[1, 2],
               [3, 4]]), 'name': ['a', 'b']}
    """
    if not isinstance(samples, Iterable) or isinstance(samples, str | bytes | Mapping):
        raise TypeError(f"collate() was called with a {type(samples).__name__}: pass a list of samples")
    is_whole = isinstance(samples, np.ndarray | Gathered | Columnar) or is_tensor(samples)
    rows: Any = samples if is_whole else list(samples)
    if not len(rows):
        raise ValueError("collate() was called without samples: pass one sample at least")
    if otherwise is not None and (copy or like != "torch"):
        raise ValueError('otherwise= is for batches that are not copied yet: pass like="torch" and copy=False with it')
    if like == "torch":
        return made_like_torch(rows) if copy else like_torch(rows, otherwise)
    if like is not None:
        raise ValueError(f'like={like!r}: pass "torch", or nothing')
    batch = collated(rows)
    return made(batch) if copy else batch


def convert(batch: Any, to: Framework, *, device: Any = None) -> Any:
    """Turns a batch into the arrays of a framework, as ``Loader(to=..., device=...)`` does.

    Args:
        batch: Any tree of arrays, tensors and other objects.
        to: "numpy", "torch", "jax", "tensorflow", "tinygrad" or "arrow".
        device: Where to put the arrays, as the framework calls it, such as "cuda:0". None: they stay in the memory of
            the CPU.

    Returns:
        The same tree with the framework's arrays, which use the memory of the batch where the framework can share it.
        What is no array, or has a type that the framework lacks, stays as it is.

    Raises:
        ValueError: ``to`` is unknown, or the device does not exist.
        ImportError: The framework is not installed.

    Example:
        >>> import numpy as np, stoker
        >>> stoker.convert({"x": np.array([1.0, 2.0]), "name": "a"}, to="torch")
        {'x': tensor([1., 2.], dtype=torch.float64), 'name': 'a'}
    """
    if not isinstance(to, str):
        raise TypeError(f'to={to!r}: pass the name of a framework, as in to="torch"')
    through = bridge(to, device)
    assert through is not None
    return landed(through(batch))


def map_leaves(function: Callable[[Any], Any], batch: Any) -> Any:
    """Calls a function with each leaf of a batch, and puts what it returns in the leaf's place.

    Args:
        function: Gets a leaf: an array, tensor, number, string or any other object that is not a container.
        batch: Dicts and other mappings, lists, tuples, namedtuples and dataclasses, nested in any way. A list is a
            container, so the function gets each string of a list of strings.

    Returns:
        A new tree of the same form.

    Example:
        >>> import numpy as np, stoker
        >>> stoker.map_leaves(len, {"x": np.array([1, 2]), "pair": (np.array([3]), "text")})
        {'x': 2, 'pair': (1, 4)}
    """
    if not callable(function):
        raise TypeError(f"function={function!r}: pass a function that gets a leaf; the batch is the second argument")
    return mapped(lambda leaf: leaf if type(leaf) is Attributes else function(leaf), batch)
