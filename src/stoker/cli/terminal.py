"""What several commands show in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn


def progress_of_bytes(console: Console) -> Progress:
    """A bar that is gone at the end, and not there at all where there is no terminal."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def printable(text: str) -> str:
    """What a file is called, or tells, may be anything; a terminal is not to obey it."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
