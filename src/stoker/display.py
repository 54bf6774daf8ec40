"""A display: a progress bar, and a place on the live page, for what delivers batches."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stoker.arguments import checked_flag
from stoker.observe import Bars, Counts
from stoker.observe.page import Observed, Watch, checked_watch

if TYPE_CHECKING:
    from stoker.observe.page.watching import Watching


class Display:
    """Shows what a loader of your own does that has its batches made by streams, one after the other.

    ``Loader`` and ``stream`` have one each, behind their ``progress`` and ``watch``. This class is for code like
    ``stoker.torch.DataLoader``, which makes a new stream for each epoch: it stays in one place on the live page.

    Args:
        counts: An object with ``batches``, the number delivered so far, and ``waited``, the seconds for which the
            consumer has waited for them.
        progress: As in ``Loader``.
        watch: As in ``Loader``. The page ends with ``end()``, or when the display is garbage collected.

    Raises:
        TypeError: An argument has the wrong type.

    Example:
        >>> import types, stoker
        >>> counts = types.SimpleNamespace(batches=0, waited=0.0)
        >>> display = stoker.Display(counts, progress=True)
        >>> squares = stoker.stream(abs, [-1, -2])
        >>> display.show(squares.observed)
        >>> display.begin("numbers", squares, total=lambda: 2)
        >>> for number in squares:
        ...     counts.batches += 1
        ...     display.tick()
        >>> display.end()
    """

    def __init__(self, counts: Counts, *, progress: bool = False, watch: bool | Watch = False) -> None:
        self._progress, self._watch = checked_flag("progress", progress), checked_watch(watch)
        self._counts = counts
        self._bars = Bars(counts)
        self._watching: Watching | None = None

    @property
    def watch_url(self) -> str | None:
        """Where the live page is, once something was shown; None without ``watch``."""
        return None if self._watching is None else self._watching.url

    def show(self, observed: Observed) -> None:
        """Shows it on the live page, if that is wanted, from now on and in place of what was shown before.

        Args:
            observed: ``stream.observed``.

        Raises:
            OSError, ValueError: The page cannot be served there.
        """
        if self._watch is None:
            return
        if self._watching is None:
            from stoker.observe.page.watching import Watching  # which imports a server

            watching = Watching(self._watch)
            weakref.finalize(self, watching.end)
            self._watching = watching  # when it is sure that it ends, as an interrupt may come before any line
        self._watching.show(observed)

    def begin(
        self, name: str, iterator: object, *, done: int = 0, total: Callable[[], int | None] | None = None
    ) -> None:
        """Begins a bar, if that is wanted, in place of the one before.

        Args:
            name: Of what is being gone through, such as "epoch 3".
            iterator: The bar ends when this is garbage collected, at the latest.
            done: The number of batches of it that the consumer has already.
            total: A function that returns how many there are, or None as long as nobody knows. None: nobody ever will.
        """
        self._bars.end()
        if self._progress:
            self._bars.begin(name, done, total, iterator)

    def tick(self) -> None:
        """To be called when the consumer asks for a batch: draws the bar a few times a second."""
        bar = self._bars.bar
        if bar is not None:
            bar.tick()

    def end_bar(self) -> None:
        """Takes the bar away, and leaves a line that sums up. May be called twice."""
        self._bars.end()

    def end(self) -> None:
        """Takes the bar away, and the place on the page; the page ends with the last one on it. May be called twice."""
        self._bars.end()
        if self._watching is not None:
            self._watching.end()

    def __getstate__(self) -> dict[str, Any]:
        """A copy shows nothing yet."""
        return vars(self) | {"_watching": None}
