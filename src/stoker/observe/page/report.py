"""The report: the page as a file to keep."""

from __future__ import annotations

import os
from collections.abc import Sequence

from stoker.observe.page.snapshot import Snapshot


def write_report(path: str | os.PathLike[str], snapshots: Sequence[Snapshot]) -> None:
    """Writes one HTML file that needs no network. A file that is there is replaced, but never with half of a page.

    Raises:
        OSError: It cannot be written.
    """
    from stoker.observe.page.document import document  # late: what reads its files takes long to import

    path = os.fspath(path)
    text = document([snapshot.to_dict() for snapshot in snapshots], live=False)
    new = f"{path}.{os.getpid()}.new"
    try:
        with open(new, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(new, path)
    except BaseException:
        if os.path.exists(new):
            os.unlink(new)
        raise
