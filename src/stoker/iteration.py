"""The iterator over an epoch of a loader, and how the loader tells which of its iterators may go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stoker.errors import ClosedError
from stoker.session import Session

if TYPE_CHECKING:
    import typing_extensions

    B_co = typing_extensions.TypeVar("B_co", covariant=True, default=Any)  # a Loader is a Loader[Any]
else:
    B_co = TypeVar("B_co", covariant=True)


@dataclass(slots=True)
class Pass:
    """One time through an epoch, or what is left of it. What a loader knows of its newest iterator, which knows it.

    Attributes:
        epoch: The one that is gone through.
        is_begun: A batch was asked for, so that the next loop is another epoch.
        is_disturbed: It was interrupted, or the loader was moved: its epoch may be another by now.
    """

    epoch: int
    is_begun: bool = False
    is_disturbed: bool = False


@dataclass(slots=True)
class Passes:
    """The pass that may go on; None: no iterator may, and the next loop begins where the consumer is."""

    current: Pass | None = None

    def is_done_with(self, epoch: int) -> bool:
        """Whether the next loop is not of that epoch, since one has begun to take it already."""
        return self.current is not None and self.current.is_begun and self.current.epoch == epoch

    def move(self) -> None:
        """The consumer is elsewhere now. Who goes through that epoch goes on there, and others end."""
        if self.current is not None:
            self.current.is_begun, self.current.is_disturbed = False, True


class Iteration(Generic[B_co]):
    """The iterator over an epoch. Keeps its loader alive, and not the other way round."""

    def __init__(self, loader: Any, session: Session, passes: Passes, own: Pass) -> None:
        self._loader, self._session = loader, session
        self._passes, self._pass = passes, own
        self._ended = False

    def __iter__(self) -> Iteration[B_co]:
        return self

    def __next__(self) -> B_co:
        if self._ended:
            raise StopIteration
        own = self._pass
        if self._passes.current is not own:
            raise ClosedError(
                "this iterator was replaced by a newer one of the same loader (or the loader was closed or moved): "
                "make two loaders to iterate twice at the same time"
            )
        own.is_begun = True
        try:
            if own.is_disturbed and self._session.epoch != own.epoch:
                delivery = None
            else:
                delivery = self._session.offer()
                if delivery is None:
                    self._session.end_epoch()
        except BaseException:
            own.is_disturbed = True
            raise
        if delivery is None:
            self._ended, self._passes.current = True, None
            raise StopIteration
        # Without a call from here on: an interrupt comes either before it is counted, or when the caller has it.
        batch, delivery.data, delivery.is_taken = delivery.data, None, True
        return batch  # type: ignore[no-any-return]
