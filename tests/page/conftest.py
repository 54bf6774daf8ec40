"""One browser for all tests of the page, a tab for each; and a registry of their own."""

from __future__ import annotations

import shutil

import pytest

from tests import children
from tests.page.tabs import Tab

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIETLY = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-proxy-server",
]


@pytest.fixture(autouse=True)
def registry(tmp_path, monkeypatch):
    """No test sees what others serve."""
    folder = tmp_path / "runtime"
    folder.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder / "stoker"


@pytest.fixture(scope="package")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test installs it")
    if CHROMIUM is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    before = children.child_pids()
    driver = playwright.sync_playwright().start()
    started = children.child_pids() - before
    children.left_alone |= started
    try:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=QUIETLY)
        yield running.new_context()
        running.close()
    finally:
        driver.stop()
        children.left_alone -= started


@pytest.fixture
def tab(browser):
    """A tab that remembers what it loads and complains of. At the end of a test it must not have complained."""
    page = browser.new_page()
    page.set_viewport_size({"width": 1280, "height": 900})
    opened = Tab(page)
    yield opened
    page.close()
    assert opened.complaints == []
