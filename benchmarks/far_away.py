"""A network that is slow and far away: a proxy which delays each request, and lets so many bytes a second pass in all.

    client ── request, after the latency ──> proxy ──> server
           <── answer, at the bandwidth that all connections share ──

`python -m benchmarks.far_away PORT LATENCY_S BYTES_PER_S` is such a proxy for a server on this machine, in a process of
its own. The first line of its output is its own port; it ends when its input does.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio import StreamReader, StreamWriter
from time import monotonic

_PIECE = 2**16  # bytes that pass at once
_BURST_S = 0.02  # of bandwidth that may be made up for: timers are late by a millisecond or so


class Bandwidth:
    """What all connections share: each piece takes its time on the line, one after the other."""

    def __init__(self, bytes_per_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._free_at = 0.0

    async def take(self, count: int) -> None:
        self._free_at = max(self._free_at, monotonic() - _BURST_S) + count / self._bytes_per_s
        await asyncio.sleep(max(self._free_at - monotonic(), 0))


class Proxy:
    """Connects each client to the server."""

    def __init__(self, port: int, latency_s: float, bandwidth: Bandwidth) -> None:
        self._port, self._latency_s, self._bandwidth = port, latency_s, bandwidth

    async def __call__(self, client: StreamReader, to_client: StreamWriter) -> None:
        server, to_server = await asyncio.open_connection("127.0.0.1", self._port)
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):  # the latter at the end of the proxy
            await asyncio.gather(self._ask(client, to_server), self._answer(server, to_client))
        to_client.close()

    async def _ask(self, client: StreamReader, to_server: StreamWriter) -> None:
        while request := await client.read(_PIECE):
            await asyncio.sleep(self._latency_s)
            to_server.write(request)
            await to_server.drain()
        to_server.close()

    async def _answer(self, server: StreamReader, to_client: StreamWriter) -> None:
        while piece := await server.read(_PIECE):
            await self._bandwidth.take(len(piece))
            to_client.write(piece)
            await to_client.drain()


async def _serve(port: int, latency_s: float, bytes_per_s: float) -> None:
    proxy = Proxy(port, latency_s, Bandwidth(bytes_per_s))
    listening = await asyncio.start_server(proxy, "127.0.0.1", 0)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])))
