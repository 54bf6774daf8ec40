"""What each kind of workers says of itself, so that no other room of the house asks which kind it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Traits:
    """What the engine needs to know of a kind of workers.

    Attributes:
        is_inline: The consumer is the worker, so nothing is done ahead and nobody is there to end a hang.
        is_here: Workers are on this machine, and see its memory and its files.
        is_announced: A worker says when it is up, and is sent nothing before that.
        is_elastic: Workers come and go, so nothing can be promised to one of them.
        shares_interpreter: Workers are threads of the consumer's process, and share its interpreter lock.
        most_ahead: ``prefetch`` may be multiplied by up to so much while they work.
        imports_modules: Workers do, for the dataset.
        run_seconds: Batches that are quick to make are requested together, up to so much work, since a request has a
            cost. 0: each batch is requested by itself.
        run_bytes: And up to so many bytes.
    """

    is_inline: bool = False
    is_here: bool = True
    is_announced: bool = False
    is_elastic: bool = False
    shares_interpreter: bool = False
    most_ahead: int = 1
    imports_modules: bool = False
    run_seconds: float = 0.0
    run_bytes: int = 0
