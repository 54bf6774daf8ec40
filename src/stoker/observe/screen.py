"""Where a progress bar is drawn: below the cursor of a terminal, in a cell of a notebook, or nowhere.

In a terminal, the bar is on the line below the cursor, which stays where it is. So what the user prints goes above the
bar, and prompts of ``input`` and ``pdb`` work; nothing of ``sys`` is replaced. While a live display of tqdm or rich is
there, which would move the cursor to where the bar is, nothing is drawn.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol

from stoker.observe.pace import Figures

_BAR = 24  # characters
_ERASE_BELOW = "\x1b[J"
_MAKE_ROOM = "\x1bD\x1b[A"  # scrolls if this is the last line; the cursor stays in its column
_SAVE, _RESTORE = "\x1b7", "\x1b8"


class Screen(Protocol):
    """Draws a bar again and again."""

    def draw(self, figures: Figures) -> None:
        """In place of the last one."""

    def end(self, summary: str | None) -> None:
        """Takes the bar away, and leaves that line."""


def found_screen() -> Screen | None:
    """Where a bar can be drawn in this process."""
    from rich.console import Console  # with the first bar that is drawn, and not with ``import stoker``

    if sys.stderr is None:  # as in a program without a console
        return None
    console = Console(file=sys.stderr, highlight=False, markup=False, emoji=False)
    if console.is_jupyter:
        return NotebookScreen()
    return TerminalScreen(console) if console.is_terminal and not console.is_dumb_terminal else None


class TerminalScreen:
    """The line below the cursor."""

    def __init__(self, console: Any) -> None:
        self._console = console
        self._is_drawn = False

    def draw(self, figures: Figures) -> None:
        if other_display() is not None:
            self._erase()
            return
        line = self._line(figures)
        self._write(f"{_ERASE_BELOW}{_MAKE_ROOM}{_SAVE}\r\n{line}{_RESTORE}")
        self._is_drawn = True

    def end(self, summary: str | None) -> None:
        self._erase()
        if summary is None:
            return
        if other_display() == "tqdm":
            sys.modules["tqdm"].tqdm.write(summary, file=sys.stderr)  # above its bars
        else:
            print(summary, file=sys.stderr, flush=True)  # which rich puts above its own

    def _erase(self) -> None:
        if self._is_drawn:
            self._is_drawn = False
            self._write(_ERASE_BELOW)

    def _line(self, figures: Figures) -> str:
        """Less wide than the terminal, so that it is a line indeed."""
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        console = self._console
        bar = ProgressBar(figures.total, figures.done, width=_BAR, pulse=figures.total is None)
        with console.capture() as captured:
            console.print(bar, end="")
        line = Text.assemble(figures.name, " ", Text.from_ansi(captured.get()), " ", "  ".join(figures.texts))
        line.truncate(console.width - 1, overflow="ellipsis")
        with console.capture() as captured:
            console.print(line, end="", soft_wrap=True)
        return str(captured.get())

    def _write(self, text: str) -> None:
        self._console.file.write(text)
        self._console.file.flush()


class NotebookScreen:
    """An output of a cell that changes."""

    def __init__(self) -> None:
        self._handle: Any = None

    def draw(self, figures: Figures) -> None:
        filled = _BAR * figures.done // figures.total if figures.total else 0
        bar = "" if figures.total is None else f"|{'█' * filled:{_BAR}}| "
        self._show(f"{figures.name} {bar}{'  '.join(figures.texts)}")

    def end(self, summary: str | None) -> None:
        if summary is not None:
            self._show(summary)

    def _show(self, line: str) -> None:
        from IPython.display import display  # there is one, since this is a notebook

        content = {"text/plain": line}
        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


def other_display() -> str | None:
    """Which library has a live display of the user's on the screen."""
    tqdm = sys.modules.get("tqdm.std")
    if tqdm is not None and any(not bar.disable for bar in list(getattr(tqdm.tqdm, "_instances", ()))):
        return "tqdm"
    proxies = sys.modules.get("rich.file_proxy")
    if proxies is not None and isinstance(sys.stdout, proxies.FileProxy):
        return "rich"
    rich = sys.modules.get("rich")
    console = getattr(rich, "_console", None)  # the global one, if anybody has asked for it
    return "rich" if getattr(console, "_live_stack", None) or getattr(console, "_live", None) else None
