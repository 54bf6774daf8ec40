"""The page as one document: nothing in it is loaded from elsewhere, and nothing that it shows can become part of it.

What is shown is data in a block of its own, in which no ``<`` stands; the scripts put it on the page as text. Only
these scripts run, by their digests, whatever else may have got in.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

_STYLES = ("uPlot.min.css", "page.css")
_SCRIPTS = ("uPlot.iife.min.js", "format.js", "flow.js", "timeline.js", "charts.js", "tables.js", "page.js")


@cache
def _asset(name: str) -> str:
    return files("stoker.observe.page").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    return "\n".join(_asset(name) for name in _SCRIPTS)


@cache
def policy() -> str:
    """The content security policy: what the page may do."""
    digest = base64.b64encode(hashlib.sha256(_script().encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; connect-src 'self'; "
        f"img-src data:; base-uri 'none'; form-action 'none'"
    )


def document(snapshots: Sequence[dict[str, Any]], *, live: bool) -> str:
    """The page. ``live``: it asks where it came from for newer ones."""
    about = {"live": live, "loaders": list(snapshots)}
    # ASCII only: a name with a lone surrogate, or a line separator, is escaped as well.
    data = json.dumps(about, allow_nan=False).replace("<", "\\u003c")
    parts = {
        "policy": policy(),
        "style": "\n".join(_asset(name) for name in _STYLES),
        "data": data,
        "script": _script(),
    }
    page = _asset("page.html")
    for name, text in parts.items():  # the data hold none of these, as they have no "<"
        page = page.replace(f"<!--{name}-->", text)
    return page
