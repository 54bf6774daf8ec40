"""A rank that lags, in real DistributedDataParallel: all ranks have its pace, and yet it shows which of them it is."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

ROOT = Path(__file__).parents[2]
RANKS = 2
SECONDS = 100  # on a busy machine; alone, ten
RANK_1_LAGS = """() => {
    const lagging = [...document.querySelectorAll(".consumer[data-lags]")].map((one) => one.innerText);
    return lagging.length === 1 && lagging[0].includes("rank 1 of 2") && lagging[0].includes("lags: waits");
}"""


@pytest.fixture
def ranks():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    where = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port), "WORLD_SIZE": str(RANKS), "OMP_NUM_THREADS": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with contextlib.ExitStack() as started:
        yield [
            started.enter_context(
                running([sys.executable, "-m", "tests.page.lagging_rank"], where | {"RANK": str(rank)}, pipes)
            )
            for rank in range(RANKS)
        ]


@contextlib.contextmanager
def running(command, environment, pipes):
    with subprocess.Popen(command, env=os.environ | environment, cwd=ROOT, start_new_session=True, **pipes) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def url_of(process) -> str:
    said = []
    for line in process.stderr:
        said.append(line)
        if found := re.search(r"http://\S+", line):
            return found[0]
    raise AssertionError("".join(said))


def test_the_page_and_compare_ranks_name_the_rank_that_lags(tab, ranks):
    tab.open(url_of(ranks[0]))
    tab.page.wait_for_function(RANK_1_LAGS, timeout=1000 * SECONDS)
    for process in ranks:
        process.stdin.close()
        process.stdin = None
    for process in ranks:
        output, errors = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, errors
        rank, culprit, sentence = json.loads(output.splitlines()[-1])
        assert (rank, culprit) == (1, "SLOW_RANK")
        assert sentence.startswith("Rank 1 of 2 lags: it waited for data")
        assert "dataset[i]" in sentence
