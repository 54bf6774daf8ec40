"""The page: what loaders do, drawn. As a file to keep (``report.py``), or live (``watching.py``, ``server.py``).

    Observed ── Snapshot ──> document ──> report.html
                   │
                   └──> Gathering (and those of other processes, by the registry) ──> PageServer ──> browser

Imports the rest of ``observe``, ``interrupts`` and ``private_files``. ``assets/`` is what the browser runs.
"""

from stoker.observe.page.observed import Moment, Observed
from stoker.observe.page.report import write_report
from stoker.observe.page.snapshot import Snapshot
from stoker.observe.page.watch import Watch, checked_watch

__all__ = ["Moment", "Observed", "Snapshot", "Watch", "checked_watch", "write_report"]
