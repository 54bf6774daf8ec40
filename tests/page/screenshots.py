"""Makes the pictures of docs/watch.md: ``python -m tests.page.screenshots``. Needs chromium and playwright."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import stoker
from tests.page.conftest import CHROMIUM, QUIETLY

IMAGES = Path(__file__).parents[2] / "docs" / "images"
RANKS = 4
SLOW_RANK = 2
_COLOURS = 256  # of a picture: half of the size, and nobody sees it
LIVE_S = 45.0  # that the ranks run


class Pictures:
    """Takes as long as decoding a small picture would, one in fifty much longer."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __len__(self) -> int:
        return 200_000

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(index)
        time.sleep(self.seconds * (0.7 + 0.6 * rng.random()) * (6 if index % 50 == 0 else 1))
        return {"image": np.zeros((3, 64, 64), np.float32), "label": np.asarray(index % 10)}


def normalised(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    time.sleep(0.0015)
    return batch


def train(rank: int) -> None:
    """One of several consumers, until its time is up."""
    pictures = Pictures(0.0016 if rank == SLOW_RANK else 0.0005)
    ends = time.monotonic() + LIVE_S
    with stoker.Loader(pictures, 32, shuffle=True, workers=2, shard=(rank, RANKS), watch=True) as loader:
        for number, _ in enumerate(loader):
            if number == 30:
                print(loader.watch_url, flush=True)
            time.sleep(0.02)
            if time.monotonic() > ends:
                break


def shoot(
    browser: Browser, url: str, name: str, *, width: int, scheme: str, wait_s: float = 0.5, tall: int = 0
) -> None:
    """``tall``: only so many pixels of it, from the top."""
    page = browser.new_page(viewport={"width": width, "height": tall or 900}, color_scheme=scheme)
    page.goto(url)
    time.sleep(wait_s)
    picture = Image.open(io.BytesIO(page.screenshot(full_page=not tall)))
    picture.convert("RGB").quantize(_COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE).save(
        IMAGES / f"{name}.png", optimize=True
    )
    page.close()


def report(browser: Browser) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        with stoker.Loader(Pictures(0.0012), 32, shuffle=True, workers=3, to=normalised) as loader:
            loader.warm_up()
            for number, _ in enumerate(loader):
                time.sleep(0.004)
                if number == 200:
                    os.kill(loader.worker_pids[1], signal.SIGKILL)
                if number == 400:
                    break
            loader.report(path)
        shoot(browser, path.as_uri(), "report", width=1180, scheme="light")
        shoot(browser, path.as_uri(), "report-dark", width=1180, scheme="dark", tall=1250)
        shoot(browser, path.as_uri(), "report-phone", width=360, scheme="light", tall=1500)


def live(browser: Browser) -> None:
    command = [sys.executable, "-m", "tests.page.screenshots"]
    ranks = [subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True) for rank in range(RANKS)]
    url, *_ = [rank.stdout.readline().strip() for rank in ranks]
    shoot(browser, url, "watch", width=1180, scheme="light", wait_s=10, tall=1180)
    shoot(browser, url, "watch-dark", width=1180, scheme="dark", wait_s=5, tall=1180)
    shoot(browser, url, "watch-phone", width=360, scheme="dark", wait_s=5, tall=1500)
    for rank in ranks:
        rank.communicate()


def main() -> None:
    if len(sys.argv) > 1:
        train(int(sys.argv[1]))
        return
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=QUIETLY)
        report(browser)
        live(browser)
        browser.close()


if __name__ == "__main__":
    main()
