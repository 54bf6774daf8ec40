"""`.npy` chunks in S3, over a network that is slow and far away: bytes a second of a loader, and of plain downloads.

s3fs finds the server through `AWS_ENDPOINT_URL`, and anything will do for the keys. Both go over all files several
times. The loader's first epoch is its warm-up: before its end the next one is prefetched, as that does in turn. How far
differs by a few files, and so by a few percent what was measured.
"""

from __future__ import annotations

import http.client
import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

_LATENCY_S = 0.05
_BYTES_PER_S = 200e6 / 8
_FILES, _ROWS, _WIDTH = 64, 256, 1024  # 1 MB of float32 a file
_BATCH = 64
_THREADS = 16
_EPOCHS = 3  # beside the warm-up
_BUCKET = "bucket"


def measure() -> dict[str, float]:
    """Bytes a second of `stoker`, in its `first` epoch too, of `plain` downloads, and the network's `limit`."""
    os.environ |= {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": "us-east-1"}
    with _serving("s3_server") as server:
        names = _upload(server)
        with _serving("far_away", str(server), str(_LATENCY_S), str(_BYTES_PER_S)) as port:
            os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
            return {**_load(), "plain": _download(port, names), "limit": _BYTES_PER_S}


@contextmanager
def _serving(module: str, *arguments: str) -> Iterator[int]:
    """A server's port; it ends with us, since its input then does."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = process.stdout.readline()
            if not port:
                raise RuntimeError(f"{module} did not start: are moto[server] and s3fs installed?")
            yield int(port)
        finally:
            process.stdin.close()


def _upload(port: int) -> list[str]:
    """Past the slow network."""
    import boto3

    client: Any = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}")
    client.create_bucket(Bucket=_BUCKET)
    file = io.BytesIO()
    np.save(file, np.random.default_rng(0).random((_ROWS, _WIDTH), dtype=np.float32))
    names = [f"data/{number:05}.npy" for number in range(_FILES)]
    for name in names:
        client.put_object(Bucket=_BUCKET, Key=name, Body=file.getvalue())
    return names


def _load() -> dict[str, float]:
    import s3fs  # noqa: F401 -- takes a second, which is not to count

    import stoker

    opened = perf_counter()
    chunks, workers = stoker.Chunks(f"s3://{_BUCKET}/data"), stoker.Threads(_THREADS)
    with stoker.Loader(chunks, _BATCH, shuffle=True, workers=workers) as loader:
        first = _epoch(loader)
        begin = perf_counter()
        total = sum(_epoch(loader) for _ in range(_EPOCHS))
        return {"first": first / (begin - opened), "stoker": total / (perf_counter() - begin)}


def _epoch(loader: Any) -> int:
    return sum(int(batch.nbytes) for batch in loader)


def _download(port: int, names: list[str]) -> float:
    """The same files, as many times, each thread over a connection that it keeps."""
    local = threading.local()

    def fetch(name: str) -> int:
        if not hasattr(local, "connection"):
            local.connection = http.client.HTTPConnection("127.0.0.1", port)
        # Unsigned requests are refused; what the signature says is not looked at.
        local.connection.request("GET", f"/{_BUCKET}/{name}", headers={"Authorization": "AWS any:any"})
        response = local.connection.getresponse()
        assert response.status == http.HTTPStatus.OK, response.reason
        return len(response.read())

    with ThreadPoolExecutor(_THREADS) as threads:
        list(threads.map(fetch, names[:_THREADS]))  # connects
        begin = perf_counter()
        total = sum(threads.map(fetch, names * _EPOCHS))
        return total / (perf_counter() - begin)
