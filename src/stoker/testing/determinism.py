"""The same stream, whoever makes it."""

from __future__ import annotations

from contextlib import ExitStack

from stoker.counts import checked_count
from stoker.testing.makers import MakeLoader, Makers
from stoker.testing.streams import Due, kept


def assert_deterministic(make_loader: MakeLoader, *others: MakeLoader, epochs: int = 2, in_order: bool = True) -> None:
    """Asserts that loaders made in different ways deliver the same stream: the same batches in the same order.

    Fails for a dataset whose samples depend on anything but their index and the generators that Stoker seeds
    (``random``, ``numpy.random``, torch's): on how often it was called, on the process, on the clock.

    Args:
        make_loader: Makes a new loader at each call. It is the yardstick, so make it simple: ``workers=0``.
        others: Make loaders with other workers, backends or prefetch. None: ``make_loader`` is called twice.
        epochs: How many epochs to compare. One epoch is held in memory.
        in_order: False: each epoch is compared as a multiset of batches, for loaders with ``in_order=False``.

    Raises:
        AssertionError: With epoch, batch, the path to the first leaf that differs, and both values.

    Example:
        >>> import numpy as np, stoker
        >>> from stoker.testing import assert_deterministic
        >>> def make(workers):
        ...     return stoker.Loader(np.arange(100), batch_size=8, shuffle=True, workers=workers)
        >>> assert_deterministic(lambda: make(0), lambda: make(2), lambda: make(stoker.Threads(2)))
    """
    epochs = checked_count("epochs", epochs, "a number of epochs, 1 or more")
    makers, makes = Makers(), others or (make_loader,)
    with ExitStack() as opened:
        yardstick = opened.enter_context(makers.loader(make_loader))
        loaders = [
            opened.enter_context(makers.loader(make, f"others[{number}]" if others else "make_loader"))
            for number, make in enumerate(makes)
        ]
        for epoch in range(epochs):
            expected = [kept(batch) for batch in yardstick]
            for number, loader in enumerate(loaders):
                who = f"the loader of others[{number}]" if others else "the second loader"
                Due(expected, epoch=epoch, in_order=in_order).take_all(loader, f"{who}, beside the first")
