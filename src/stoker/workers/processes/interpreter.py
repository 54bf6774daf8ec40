"""Fresh interpreters, like this one: the same flags, the same path, and nothing between them and the standard library.

What they shall do goes through a file in memory: a command line has room for 128 KiB, and everybody can read it.
"""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from stoker.errors import StartError
from stoker.memory import anonymous_file, is_open
from stoker.shadows import is_standard_path, shadowed

_LETTERS = {
    "debug": "d",
    "dont_write_bytecode": "B",
    "optimize": "O",
    "no_site": "S",
    "verbose": "v",
    "bytes_warning": "b",
}
_VARIABLE_BYTES = 2**16  # longer ones go through the file, too: the system takes no more than 128 KiB each
_COMPLAINT_BYTES = 2**13  # of a traceback, its end

# It needs modules that are part of the interpreter only, so that no file of the user's can be in their place. Then
# the standard library comes first, for what Stoker itself and NumPy need, and then the user's own files.
_CODE = """\
import marshal, posix, sys
path, first, shadowed, variables, complaint, offset, arguments = marshal.loads(posix.pread({order}, {size}, 0))
posix.close({order})
sys.path[:] = first + path
try:
    import os, numpy.random
    from {module} import {function}
except BaseException:
    import traceback
    posix.pwrite(complaint, traceback.format_exc().encode(errors="replace")[-{most}:], offset)
    raise
os.environ.update(variables)
sys.path[:] = path
for name in list(sys.modules):
    if name.partition(".")[0] in shadowed:
        del sys.modules[name]
{function}(*arguments)
"""


class Complaints:
    """Where an interpreter that cannot even begin writes why: so far into that file."""

    def __init__(self, fd: int, offset: int) -> None:
        self.fd, self.offset = fd, offset

    def read(self) -> str:
        """What was written; nothing if it has begun."""
        return os.pread(self.fd, _COMPLAINT_BYTES, self.offset).rstrip(b"\0").decode(errors="replace")


def start_interpreter(
    main: tuple[str, str],
    arguments: Sequence[Any],
    *,
    descriptors: Sequence[int],
    complaints: Complaints,
    variables: Mapping[str, str],
) -> subprocess.Popen[bytes]:
    """Calls a function in a fresh interpreter.

    Args:
        main: The module, and the function in it.
        arguments: What ``marshal`` can write: numbers, strings, tuples.
        descriptors: To be passed on, under the same numbers.
        complaints: Where it writes why it could not call the function.
        variables: Its environment.
    """
    if not sys.executable:
        raise StartError(
            "sys.executable is empty, so no Python can be started for workers: set it to the path of a Python "
            'interpreter, or pass workers=stoker.Processes(n, start="fork") or stoker.Threads(n)'
        )
    long = {name: value for name, value in variables.items() if len(os.fsencode(value)) > _VARIABLE_BYTES}
    path = [os.fspath(entry) for entry in sys.path if isinstance(entry, str | os.PathLike)]
    first = [entry for entry in path if is_standard_path(entry)]
    order = marshal.dumps((path, first, shadowed(), long, complaints.fd, complaints.offset, tuple(arguments)))
    module, function = main
    fd = anonymous_file()
    try:
        os.pwrite(fd, order, 0)
        code = _CODE.format(order=fd, size=len(order), module=module, function=function, most=_COMPLAINT_BYTES)
        return subprocess.Popen(
            [sys.executable, *_flags(), "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=None if is_open(1) else subprocess.DEVNULL,
            stderr=None if is_open(2) else subprocess.DEVNULL,
            pass_fds=[fd, complaints.fd, *descriptors],
            env={name: value for name, value in variables.items() if name not in long},
            cwd=None if _is_somewhere() else os.sep,  # Python 3.13 can't import NumPy in a deleted folder
        )
    finally:
        os.close(fd)


def _is_somewhere() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _flags() -> list[str]:
    """Those that this interpreter was started with, or has from its environment."""
    given = [
        f"-{letter * int(times)}" for name, letter in _LETTERS.items() if (times := getattr(sys.flags, name, 0)) > 0
    ]
    if sys.flags.isolated:
        given.append("-I")
    else:
        apart = {"ignore_environment": "-E", "no_user_site": "-s", "safe_path": "-P"}
        given += [flag for name, flag in apart.items() if getattr(sys.flags, name, False)]
    if getattr(sys.__stdout__, "write_through", False):
        given.append("-u")
    given += [f"-W{option}" for option in sys.warnoptions]
    options: Mapping[str, str | bool] = getattr(sys, "_xoptions", {})
    return given + [f"-X{name}" if value is True else f"-X{name}={value}" for name, value in options.items()]
