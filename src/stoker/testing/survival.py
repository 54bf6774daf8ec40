"""The same stream, whatever happens to the workers."""

from __future__ import annotations

from stoker.counts import checked_count
from stoker.testing.faults import chaos
from stoker.testing.makers import MakeLoader, Makers
from stoker.testing.streams import Due, kept


def assert_survives(
    make_loader: MakeLoader, *, faults: float = 0.2, epochs: int = 2, seed: int = 0, in_order: bool = True
) -> None:
    """Asserts that the stream is the same when workers are killed, crash and are stopped: see ``chaos``.

    Args:
        make_loader: Makes a new loader at each call. Two of them are open at a time.
        faults: How likely a fault is before a batch.
        epochs: How many epochs to compare. One epoch is held in memory.
        seed: Of the faults.
        in_order: False: each epoch is compared as a multiset of batches, for loaders with ``in_order=False``.

    Raises:
        AssertionError: The streams differ; or there are worker processes, and no fault has come to pass.

    Example:
        >>> import numpy as np, stoker
        >>> from stoker.testing import assert_survives
        >>> assert_survives(lambda: stoker.Loader(np.arange(400), batch_size=8, shuffle=True, workers=2))
    """
    epochs = checked_count("epochs", epochs, "a number of epochs, 1 or more")
    makers = Makers("worker_pids", "stats")
    with makers.loader(make_loader) as calm, makers.loader(make_loader) as rough:
        disturbed = chaos(rough, faults=faults, seed=seed)
        for epoch in range(epochs):
            due = Due([kept(batch) for batch in calm], epoch=epoch, in_order=in_order)
            due.take_all(disturbed, f"under chaos with seed {seed}, beside an undisturbed run")
    if disturbed.found_workers and not disturbed.survived:
        raise AssertionError(
            f"no worker was harmed in {epochs} epochs: nothing was tried. Raise faults={faults} or epochs={epochs}"
        )
