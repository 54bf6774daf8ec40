"""Servers for tests, in processes of their own on this machine: an S3 that moto plays, and a web server."""

from __future__ import annotations

import collections
import contextlib
import gc
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any


def s3_server() -> AbstractContextManager[int]:
    """Gives its port."""
    return serving("moto.server", "-H", "127.0.0.1", "-p", "0", told=r"127\.0\.0\.1:(\d+)")


def web_server(folder: Path) -> AbstractContextManager[int]:
    """Shows what is in the folder; gives its port."""
    return serving("http.server", "0", "-b", "127.0.0.1", "-d", str(folder), told=r"port (\d+)")


@contextlib.contextmanager
def serving(*arguments: str, told: str) -> Iterator[int]:
    """A server in another process; gives the port that it tells."""
    command = [sys.executable, "-u", "-m", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        try:
            found = next(filter(None, (re.search(told, line) for line in server.stdout)))
            # A line for each request: one that nobody reads would be the server's last when the pipe is full.
            reader = threading.Thread(target=collections.deque, args=(server.stdout, 0))
            reader.start()
            yield int(found[1])
        finally:
            server.kill()
            reader.join()


def forget(system: Any) -> None:
    """Closes the connections that fsspec keeps."""
    system.clear_instance_cache()
    gc.collect()
