"""SwiftLoader's signature and stream, on ``stoker.Loader``. See docs/migrate/swift_loader.md."""

from stoker.compat.swift_loader.loader import SwiftLoader

__all__ = ["SwiftLoader"]
