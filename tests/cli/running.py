"""Commands of the terminal, run in this very process: that is quicker, and would not survive a crash."""

from __future__ import annotations

import contextlib
import io
from typing import NamedTuple

from stoker.cli import main


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: object) -> Done:
    """``stoker`` with these arguments."""
    told, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(errors):
        try:
            code = main(list(map(str, arguments)))
        except SystemExit as ended:
            code = ended.code
    assert "\x1b" not in told.getvalue() + errors.getvalue(), "no terminal, no colours"
    return Done(code, told.getvalue(), errors.getvalue())
