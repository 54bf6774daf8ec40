"""Sealed objects: pickled once and for all, and opened when somebody needs them.

A state is what a dataset says of where it is, as it is then, whatever it does to those objects afterwards. A batch of
Python objects is sealed alone, so that it shares none with other batches of its bundle, and opened when its turn comes:
thousands of objects that lie waiting would set off garbage collections.
"""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

_BY_TORCH = b"_rebuild_tensor"  # how the functions begin that a tensor's pickle names


class SealedBatch(NamedTuple):
    """A batch of Python objects on its way."""

    pickled: bytes

    def opened(self) -> Any:
        return pickle.loads(self.pickled)


def sealed(state: dict[str, Any]) -> bytes:
    return pickle.dumps(state, pickle.HIGHEST_PROTOCOL)


def opened(state: bytes | None) -> dict[str, Any]:
    """A new copy each time. Nothing is told by None."""
    found: dict[str, Any] = {} if state is None else pickle.loads(state)
    return found


def sealed_batch(batch: Any) -> SealedBatch | None:
    """None where Stoker has a better way: it pickles tensors without all that they are views of, and says what it is
    that cannot be pickled."""
    try:
        pickled = pickle.dumps(batch, 4)  # 5 reads arrays within objects more slowly
    except Exception:  # whatever a class of the user's may raise
        return None
    return None if _BY_TORCH in pickled else SealedBatch(pickled)
