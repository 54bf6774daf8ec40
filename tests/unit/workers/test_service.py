"""What a worker process does in the odd moments of its life."""

from __future__ import annotations

import subprocess
import sys

CONSUMER_IS_GONE = """
import os
from stoker.memory import Slots
from stoker.plan import Run
from stoker.workers.backend import Request
from stoker.workers.processes.board import Board
from stoker.workers.processes.records import Ask, pack_request
from stoker.workers.processes.service import Ends, serve

requests, asking = os.pipe()
listening, answers = os.pipe()
slots, board = Slots.create(), Board()
board.prepare(0)
os.write(asking, pack_request(Request(0, Run(0, 0, 1, 1), 4, 0), Ask.LENGTH))
os.close(listening)
serve(0, Ends(requests, answers, slots.fd, board.fd, slots.fd), lambda: None)
print("left")
"""


def test_a_worker_whose_consumer_is_gone_leaves_without_a_word():
    ran = subprocess.run([sys.executable, "-c", CONSUMER_IS_GONE], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("left\n", "")
