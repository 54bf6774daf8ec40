"""A tab of the browser, as a user sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_PATIENCE_MS = 20_000
_MARKED = "all => all.map((one) => [one.dataset.station, one.querySelector('.badge').innerText])"


class Tab:
    """Remembers what it loads and complains of.

    Args:
        page: Playwright's.
    """

    def __init__(self, page: Any) -> None:
        self.page = page
        self.loaded: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.loaded.append(request.url))
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, what: str | Path) -> Tab:
        self.page.goto(what if isinstance(what, str) else what.as_uri())
        return self

    def text(self, selector: str) -> str:
        return self.page.inner_text(selector)

    def figure(self, name: str) -> str:
        return self.text(f'[data-figure="{name}"] dd')

    def wait_for(self, selector: str, text: str) -> None:
        """Until there is that text, whole."""
        from playwright.sync_api import expect

        expect(self.page.locator(selector)).to_have_text(text, timeout=_PATIENCE_MS)

    def wait_for_figure(self, name: str, text: str) -> None:
        self.wait_for(f'[data-figure="{name}"] dd', text)

    def marked(self) -> list[tuple[str, str]]:
        """Stations that are marked, and the word that marks them: at one moment, as a live page draws them anew."""
        found = self.page.eval_on_selector_all("[data-station]:has(> .badge)", _MARKED)
        return [(station, word) for station, word in found]

    def is_too_wide(self) -> bool:
        return bool(self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)
