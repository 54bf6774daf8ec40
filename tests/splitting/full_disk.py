"""In a mount namespace of its own: splits onto a small tmpfs until it is full, then enlarges it and goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import stoker


def main(source: str, mounted: str, expected: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", mounted], check=True)
    into = Path(mounted, "chunks")
    with pytest.raises(OSError, match="No space left"):
        stoker.split(source, into, count=100)
    done = [path.name for path in into.iterdir() if not path.name.startswith(".")]
    assert 0 < len(done) < len(list(Path(expected).glob("[!.]*")))
    assert not list(into.glob(".*.part"))
    for name in done:
        assert (into / name).read_bytes() == (Path(expected) / name).read_bytes()
    subprocess.run(["mount", "-o", "remount,size=8m", mounted], check=True)
    chunks = stoker.split(source, into, count=100)
    assert [path.read_bytes() for path in chunks] == [(Path(expected) / path.name).read_bytes() for path in chunks]
    print("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
