"""The log of a SwiftLoader: a logger of its own, in no registry, that ends with its loader."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

_FORMAT = "%(asctime)s %(levelname)s %(message)s"


@dataclass(frozen=True)
class LogOptions:
    """What ``logger=`` may hold: the prefix of the files, whether to write to stdout too, and from which level on."""

    path: str | os.PathLike[str] | None = None
    stdout: bool = False
    level: str = "INFO"

    @classmethod
    def of(cls, logger: Any) -> LogOptions:
        if logger is None:
            return cls()
        if isinstance(logger, str | os.PathLike):
            return cls(logger)
        if not isinstance(logger, Mapping):
            raise TypeError(f"logger={logger!r}: pass a prefix for the files, or a dict of {cls._keys()}")
        if unknown := set(logger) - {field.name for field in fields(cls)}:
            raise ValueError(
                f"logger={logger!r} has the unknown key {min(unknown, key=str)!r}: it may have {cls._keys()}"
            )
        return cls(**logger)

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike | None):
            raise TypeError(f"logger: path={self.path!r}: pass a prefix for the files")
        if not isinstance(self.stdout, bool):
            raise TypeError(f"logger: stdout={self.stdout!r}: pass True or False")
        known = logging.getLevelNamesMapping()
        if not isinstance(self.level, str) or self.level.upper() not in known:
            raise ValueError(f"logger: level={self.level!r}: pass one of {', '.join(known)}")

    @classmethod
    def _keys(cls) -> str:
        return ", ".join(repr(field.name) for field in fields(cls))


class Log:
    """One consumer's log: ``{path}_consumer_{n}.log``, stdout, both or nothing. Owns the file."""

    def __init__(self, options: LogOptions, consumer: int) -> None:
        self._logger = logging.Logger("stoker.compat.swift_loader", options.level.upper())
        if options.path is not None:
            file = Path(f"{os.fspath(options.path)}_consumer_{consumer}.log")
            file.parent.mkdir(parents=True, exist_ok=True)
            self._add(logging.FileHandler(file, encoding="utf-8"))
        if options.stdout:
            self._add(logging.StreamHandler(sys.stdout))

    def write(self, line: str) -> None:
        self._logger.info(line)

    def close(self) -> None:
        """May be called twice."""
        for handler in list(self._logger.handlers):
            self._logger.removeHandler(handler)
            handler.close()

    def _add(self, handler: logging.Handler) -> None:
        handler.setFormatter(logging.Formatter(_FORMAT))
        self._logger.addHandler(handler)
