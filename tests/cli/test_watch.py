"""`stoker watch` shows the loaders of this machine, until Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import stoker
from tests.cli.running import run
from tests.page.requests import answer, get, next_event


@pytest.fixture(autouse=True)
def own_registry(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def test_it_serves_the_loaders_of_other_processes_until_ctrl_c():
    command = [sys.executable, "-c", "import sys; from stoker.cli import main; sys.exit(main(['watch']))"]
    with stoker.Loader(np.arange(8), 2, watch=True) as loader:
        list(loader)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
            url = re.search(r"http://\S+", watching.stdout.readline())[0]
            connection, response = get(url, "/events")
            assert [one["stats"]["batches"] for one in next_event(response)] == [4]
            assert answer(url, token="wrong")[0] == 403
            watching.stdout.readline()
            watching.send_signal(signal.SIGINT)
            assert watching.wait(timeout=60) == 0
            connection.close()
            assert watching.stderr.read() == ""


def test_json_is_what_there_is_to_see_once():
    assert json.loads(run("watch", "--json").stdout) == {"loaders": []}
    with stoker.Loader(np.arange(8), 2, watch=True) as loader:
        list(loader)
        (told,) = json.loads(run("watch", "--json").stdout)["loaders"]
    assert told["title"] == "Loader(ndarray, batch_size=2, shuffle=False)"


@pytest.mark.parametrize("wrong", [["--port", "70000"], ["--host", "192.0.2.1"]])
def test_a_place_where_it_cannot_listen_is_an_error_with_an_exit_code(wrong):
    done = run("watch", *wrong)
    assert done.returncode == 2
    assert done.stderr.startswith("stoker watch: error: ")
