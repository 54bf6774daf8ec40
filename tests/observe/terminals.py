"""A terminal to run programs in: what is on its screen in the end, as somebody would see it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import textwrap
from dataclasses import dataclass, field

ROWS, COLUMNS = 24, 100
TOKEN = re.compile(r"\x1b\[\??([0-9;]*)([A-Za-z])|\x1b([D78])|([\r\n\b])|([^\x1b\r\n\b])")

QUICK = """
import stoker.observe.bar as bar
bar._FIRST_S = bar._AGAIN_S = 0.0  # each batch draws
"""


@dataclass
class Terminal:
    """As much of a VT100 as the bars of Stoker, tqdm and rich ask for."""

    lines: list[list[str]] = field(default_factory=lambda: [[" "] * COLUMNS for _ in range(ROWS)])
    row: int = 0
    column: int = 0
    saved: tuple[int, int] = (0, 0)
    seen: list[str] = field(default_factory=list)  # the screen after each piece of output that ends a drawing

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            found = TOKEN.match(text, at)
            assert found is not None, f"unknown: {text[at : at + 10]!r}"
            at = found.end()
            number, command, escape, control, letter = found.groups()
            if command:
                self._command(command, number)
            elif escape or control:
                self._control(escape or control)
            else:
                self._put(letter)

    @property
    def text(self) -> list[str]:
        rows = ["".join(line).rstrip() for line in self.lines]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def _put(self, letter: str) -> None:
        if self.column >= COLUMNS:
            self._control("\r")
            self._control("\n")
        self.lines[self.row][self.column] = letter
        self.column += 1

    def _control(self, letter: str) -> None:
        if letter in "\nD":
            if self.row == ROWS - 1:
                self.lines = [*self.lines[1:], [" "] * COLUMNS]
            self.row = min(self.row + 1, ROWS - 1)
        elif letter == "\r":
            self.column = 0
        elif letter == "7":
            self.saved = self.row, self.column
        elif letter == "8":
            self.row, self.column = self.saved
            self.seen.append("\n".join(self.text))

    def _command(self, command: str, number: str) -> None:
        count = int(number or 0) if number.isdigit() or not number else 0
        if command == "A":
            self.row = max(self.row - max(count, 1), 0)
        elif command == "K":
            start = 0 if count == 2 else self.column
            self.lines[self.row][start:] = [" "] * (COLUMNS - start)
        elif command == "J":
            self.lines[self.row][self.column :] = [" "] * (COLUMNS - self.column)
            self.lines[self.row + 1 :] = [[" "] * COLUMNS for _ in range(ROWS - self.row - 1)]
        else:
            assert command in "mlh", f"unknown: {command}"


def shown(script: str, *, code: int = 0) -> Terminal:
    """The terminal after that script has run in it."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
    program = [sys.executable, "-c", QUICK + textwrap.dedent(script)]
    with subprocess.Popen(program, stdin=slave, stdout=slave, stderr=slave, env=environment) as process:
        os.close(slave)
        output = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # on Linux, when the last one has closed it
                break
            if not piece:
                break
            output += piece
        os.close(master)
    terminal = Terminal()
    terminal.feed(output.decode())
    assert process.returncode == code, "\n".join(terminal.text)
    return terminal
