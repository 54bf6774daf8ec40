"""Files of the user's that have the name of a module of the standard library, and so come in its place.

Imports only what Python itself has loaded before any file of the user's could be found.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LIBRARY = os.path.dirname(os.__file__)
_EXTENSIONS = "lib-dynload"
_ARCHIVE = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
_INSTALLED = ("site-packages", "dist-packages")


def is_standard_path(entry: str) -> bool:
    """Whether an entry of ``sys.path`` holds the standard library, and no packages beside it."""
    return entry == _LIBRARY or os.path.basename(entry) in (_EXTENSIONS, _ARCHIVE)


def is_standard_file(file: str) -> bool:
    """Whether a module's file is part of the standard library."""
    parts = file.split(os.sep)
    if _EXTENSIONS in parts or _ARCHIVE in parts:
        return True
    return file.startswith(_LIBRARY + os.sep) and not any(part in _INSTALLED for part in parts)


def shadowed() -> tuple[str, ...]:
    """Names of the standard library under which this process has loaded something else."""
    return tuple(
        name
        for name in sys.stdlib_module_names & sys.modules.keys()
        if (file := getattr(sys.modules[name], "__file__", None)) and not is_standard_file(file)
    )


class shadows_explained:  # a context manager without contextlib
    """Adds to an error what is probably behind it, if the user has such files."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, ImportError | AttributeError | TypeError | RecursionError):
            files = {*_shadows(), *_scripts_imported(error)}
            if files and not any(note.startswith("stoker: /") for note in getattr(error, "__notes__", ())):
                error.add_note(
                    f"stoker: {' and '.join(sorted(files))} was imported in the place of the module of that name of "
                    f"Python's standard library. Rename the file"
                )


def _shadows() -> Iterator[str]:
    return (str(sys.modules[name].__file__) for name in shadowed() if not _is_installed(sys.modules[name].__file__))


def _scripts_imported(error: BaseException) -> Iterator[str]:
    """The running script itself may be such a file: imported once more, it fails, and is no module afterwards."""
    step = error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        name = os.path.splitext(os.path.basename(file))[0]
        if name in sys.stdlib_module_names and os.path.dirname(file) in sys.path and not is_standard_file(file):
            yield file
        step = step.tb_next


def _is_installed(file: str | None) -> bool:
    return any(part in _INSTALLED for part in (file or "").split(os.sep))
