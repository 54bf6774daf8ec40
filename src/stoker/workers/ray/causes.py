"""Why an actor is no more, or could not be had, in words."""

from __future__ import annotations

import re

from stoker.errors import StartError, message_of
from stoker.workers.ray.actor import Versions

_DETAIL = re.compile(r"Worker exit type: (\w+) Worker exit detail: (.*?)(?: Some common causes include|$)", re.DOTALL)


def cause_of(error: BaseException) -> str:
    """What Ray says of it, in a line."""
    text = message_of(error)
    detail = _DETAIL.search(text)
    if detail:
        return f"{detail[1]} ({detail[2].strip().rstrip('.')}, as Ray has it)"
    if _names_lost_node(text):
        return "the loss of its node"
    if isinstance(error, TimeoutError):
        return text
    if _is_unavailable(error):
        return "the loss of the connection to its actor, whose node may be down"
    last = [line.strip() for line in text.splitlines() if line.strip()][-1:]
    return f"{type(error).__name__} ({last[0].rstrip('.')})" if last else type(error).__name__


def is_loss_of_node(error: BaseException) -> bool:
    """Whether not only the actor is gone, but its node as well, as far as one can tell."""
    text = message_of(error)
    return not _DETAIL.search(text) and (_names_lost_node(text) or _is_unavailable(error))


def _names_lost_node(text: str) -> bool:
    return "node has died" in text or "node was terminated" in text or "node is dead" in text.lower()


def _is_unavailable(error: BaseException) -> bool:
    return type(error).__name__ == "ActorUnavailableError"


def cannot_start(error: BaseException) -> StartError | None:
    """The error to raise where no actor can come up, and trying again would end the same way."""
    from ray.exceptions import RuntimeEnvSetupError

    text = message_of(error)
    if isinstance(error, RuntimeEnvSetupError):
        return StartError(f"stoker.Ray(runtime_env=...): Ray could not set it up on a node: {text}")
    if "No module named 'stoker" in text or "failed to import" in text:
        wanted = f"stoker=={Versions.here().stoker}"
        return StartError(
            f"a node of the Ray cluster cannot import Stoker: {text.splitlines()[-1]}. Install {wanted} on all nodes, "
            f"or pass runtime_env={{'pip': ['{wanted}']}} to stoker.Ray"
        )
    if getattr(error, "_actor_init_failed", False):
        return StartError(f"a worker could not be started on Ray: {text}")
    return None


def check_versions(there: Versions) -> None:
    """Raises StartError where pickles of ours may not be readable there, or mean something else."""
    here = Versions.here()
    if there != here:
        raise StartError(
            f"a node of the Ray cluster has Python {there.python} and Stoker {there.stoker}, and this process has "
            f"Python {here.python} and Stoker {here.stoker}: install the same on both sides, or pass a runtime_env "
            f"with them to stoker.Ray"
        )
