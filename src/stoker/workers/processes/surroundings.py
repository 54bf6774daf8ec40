"""What code may expect around it in a worker process: as it is in the consumer's."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from stoker.workers.processes.file_settings import FileSettings
from stoker.workers.processes.log_setup import LogSetup
from stoker.workers.processes.warning_filters import WarningFilters

# Workers are many: a pool of threads in each only gets in the others' way. The user's own setting wins.
SINGLE_THREADED = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


@dataclass(frozen=True)
class Surroundings:
    """What code may expect around it and a fresh process would not have.

    Whoever starts a worker chooses which of it to apply: on another machine, a folder may not be there.
    """

    path: list[str]
    argv: list[str]
    folder: str
    environment: dict[str, str]
    logs: LogSetup
    warnings: WarningFilters
    files: FileSettings

    @classmethod
    def here(cls) -> Surroundings:
        settings = LogSetup.here(), WarningFilters.here(), FileSettings.here()
        return cls(list(sys.path), list(sys.argv), _folder(), dict(os.environ), *settings)

    def apply_path(self) -> None:
        """Where modules are imported from, and the arguments of the program."""
        sys.path[:] = self.path
        sys.argv[:] = self.argv

    def apply_folder(self) -> None:
        if self.folder:
            os.chdir(self.folder)

    def apply_environment(self, own: Mapping[str, str]) -> None:
        """``own``: variables that this process has for itself."""
        environment = self.environment | dict(own)
        os.environ.update(environment)
        for name in os.environ.keys() - environment.keys() - set(SINGLE_THREADED):
            del os.environ[name]

    def apply_logging(self) -> None:
        """Logging and warnings. To be called again when more modules are imported: some set up their own."""
        self.logs.apply()
        self.warnings.apply()


def _folder() -> str:
    """Where this process is; nothing if that folder has been deleted, and workers are where they are."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""
