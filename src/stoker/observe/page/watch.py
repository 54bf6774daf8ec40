"""Where the live page is served."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_LAST_PORT = 65535


@dataclass(frozen=True)
class Watch:
    """Where a process serves its live page, for ``Loader(watch=Watch(...))``. ``watch=True`` is ``Watch()``.

    Args:
        host: The address to listen at. The default is reachable from this machine only; "0.0.0.0" from everywhere that
            the network lets through. Whoever opens the page needs the token in its URL, which is sent unencrypted.
        port: The port to listen at. 0: any that is free, which is also taken if another watched process has that port.

    Example:
        >>> import stoker
        >>> stoker.Watch(host="0.0.0.0", port=8321)
        Watch(host='0.0.0.0', port=8321)
    """

    host: str = "127.0.0.1"
    port: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.host, str) or not self.host:
            raise TypeError(f'host={self.host!r}: pass the address to listen at, such as "127.0.0.1"')
        if isinstance(self.port, bool) or not isinstance(self.port, int) or not 0 <= self.port <= _LAST_PORT:
            raise ValueError(f"port={self.port!r}: pass a number from 0, for any that is free, to {_LAST_PORT}")


def checked_watch(watch: Any) -> Watch | None:
    """None: nothing is served."""
    if isinstance(watch, bool):
        return Watch() if watch else None
    if not isinstance(watch, Watch):
        raise TypeError(f"watch={watch!r}: pass True, False or stoker.Watch(host=..., port=...)")
    return watch
