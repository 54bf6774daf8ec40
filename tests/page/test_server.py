"""The server lets in who has the token, and nobody whom a name of the web has led here."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from urllib.parse import urlsplit

import numpy as np
import pytest

import stoker
from stoker import Watch
from stoker.observe.page.gathering import Gathering
from stoker.observe.page.registry import entries
from stoker.observe.page.server import PageServer
from tests.page.requests import answer, get, next_event


@pytest.fixture
def server():
    running = PageServer(Watch(), Gathering(lambda: [{"key": "own"}]))
    yield running
    running.close()


@pytest.mark.parametrize("path", ["/", "/events", "/snapshot", "/elsewhere"])
@pytest.mark.parametrize("token", ["", "wrong", "%ff"])
def test_a_wrong_or_missing_token_is_refused(server, path, token):
    status, body = answer(server.url, path, token=token)
    assert status == 403
    assert b"own" not in body


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 403),
        ("evil.example:80", 403),
        ("127.0.0.1.evil.example", 403),
        ("", 403),
        ("[", 400),
        ("localhost:9", 200),
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
    ],
)
def test_a_request_must_name_this_machine(server, host, status):
    assert answer(server.url, headers={"Host": host})[0] == status


def test_other_pages_may_not_read_it(server):
    connection, response = get(server.url, headers={"Origin": "http://evil.example"})
    response.read()
    connection.close()
    assert not [name for name in response.headers if name.lower().startswith("access-control")]
    assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert response.headers["Cache-Control"] == "no-store"


def test_there_is_one_page_and_it_is_only_read(server):
    assert answer(server.url, "/elsewhere")[0] == 404
    assert answer(server.url, "/../../etc/passwd")[0] == 404
    assert answer(server.url, method="POST")[0] == 501


def test_events_come_until_the_end(server):
    connection, response = get(server.url, "/events")
    assert response.headers["Content-Type"] == "text/event-stream"
    assert [next_event(response) for _ in range(2)] == [[{"key": "own"}]] * 2
    server.close()
    assert response.read().endswith(b"event: end\ndata: {}\n\n")
    connection.close()


def test_nobody_is_asked_while_nobody_looks():
    asked = []
    running = PageServer(Watch(), Gathering(lambda: asked.append(1) or []))
    answer(running.url)
    assert asked == []
    answer(running.url, "/snapshot")
    assert asked == [1]
    running.close()


def test_a_client_that_says_nothing_does_not_hold_up_the_end(server):
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port)) as silent:
        silent.sendall(b"GET / HT")
        assert answer(server.url, "/snapshot")[0] == 200
        server.close()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("stoker")]


def test_more_connections_than_any_user_has_are_turned_away(server):
    address = urlsplit(server.url)
    several = [socket.create_connection((address.hostname, address.port)) for _ in range(40)]
    try:
        several[-1].settimeout(20)
        assert several[-1].recv(1) == b""
    finally:
        for connection in several:
            connection.close()


def test_it_listens_at_this_machine_only_unless_asked(server):
    assert urlsplit(server.url).hostname == "127.0.0.1"
    everywhere = PageServer(Watch(host="0.0.0.0"), Gathering(list))
    assert answer(everywhere.url)[0] == 200
    everywhere.close()


@pytest.mark.parametrize("wrong", [{"host": ""}, {"host": 5}, {"port": -1}, {"port": 70000}, {"port": True}])
def test_wrong_places_are_refused_at_once(wrong):
    with pytest.raises((TypeError, ValueError), match="pass"):
        Watch(**wrong)


@pytest.mark.parametrize("wrong", ["yes", 1, None])
def test_other_values_of_watch_are_refused_in_the_constructor(wrong):
    with pytest.raises(TypeError, match="watch="):
        stoker.Loader(np.arange(4), watch=wrong)


def test_a_port_that_is_taken_is_an_error_and_leaves_nothing():
    with socket.create_server(("127.0.0.1", 0)) as other:
        watch = Watch(port=other.getsockname()[1])
        taken = f"port {watch.port} of 127.0.0.1 is taken by another program"
        with stoker.Loader(np.arange(4), watch=watch) as loader, pytest.raises(OSError, match=taken):
            iter(loader)
    assert entries() == []


def test_ranks_that_are_told_the_same_port_are_all_served(server):
    first = PageServer(Watch(port=0), Gathering(list))
    second = PageServer(Watch(port=urlsplit(first.url).port), Gathering(list))
    assert answer(second.url)[0] == 200
    second.close()
    first.close()


PROGRAM = """
import sys
import numpy as np
import stoker

with stoker.Loader(np.arange(8), 2, shard=(1, 2), watch=True) as loader:
    list(loader)
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other_process():
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout.readline() == b"ready\n"
    with process:
        yield process
        process.stdin.close()


def test_loaders_of_other_processes_are_shown_too_until_they_end(server, other_process, registry):
    connection, response = get(server.url, "/events")
    mine, theirs = next_event(response)
    assert mine == {"key": "own"}
    assert (theirs["process"]["pid"], theirs["shard"]) == (other_process.pid, [1, 2])
    other_process.stdin.close()
    assert other_process.wait() == 0
    while len(next_event(response)) > 1:
        pass
    connection.close()
    assert len(os.listdir(registry)) == 1


def test_a_process_that_does_not_answer_is_shown_as_it_was(server, other_process, monkeypatch):
    monkeypatch.setattr("stoker.observe.page.gathering._LEFT_ALONE_S", 0.1)
    connection, response = get(server.url, "/events")
    assert next_event(response)[1]["phase"] == "running"
    os.kill(other_process.pid, signal.SIGSTOP)
    try:
        while next_event(response)[1]["phase"] != "not answering":
            pass
    finally:
        os.kill(other_process.pid, signal.SIGCONT)
    while next_event(response)[1]["phase"] != "running":
        pass
    connection.close()
