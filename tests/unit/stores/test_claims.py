"""Claims in a shared table, against a naive model of it: what is claimed, by whom, and what becomes of it."""

from __future__ import annotations

import os

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from stoker.memory import anonymous_file, reopened
from stoker.stores.claims import CLAIMED, EMPTY, READY, Abandoned, Claims
from stoker.stores.membership import Membership

ENTRIES, WORKERS = 5, 3
COLUMNS = [("state", "<u4"), ("owner", "<u4")]


class Worker:
    """One that shares the table, with a file description of its own, as each worker has."""

    def __init__(self, file: int, entries: np.ndarray, number: int) -> None:
        self.fd, self.number = reopened(file, os.O_RDWR), number
        self.member = Membership(self.fd)
        self.member.number = number
        self.claims = Claims(self.member, entries)
        self.works = self.is_abandoned = False


class Table(RuleBasedStateMachine):
    """Several workers, one table. ``model`` has state, owner and key of each entry, and is changed one by one."""

    has_keys = False

    def __init__(self) -> None:
        super().__init__()
        self.file = anonymous_file()
        self.entries = np.zeros(ENTRIES, COLUMNS + [("key", "<i8")] * self.has_keys)
        self.model = [(EMPTY, 0, -1)] * ENTRIES
        self.count = 0
        self.workers = [self.new_worker() for _ in range(WORKERS)]

    def new_worker(self) -> Worker:
        self.count += 1
        return Worker(self.file, self.entries, self.count)

    def teardown(self) -> None:
        for worker in self.workers:
            os.close(worker.fd)
        os.close(self.file)

    def is_at_work(self, number: int) -> bool:
        return any(worker.number == number and worker.works for worker in self.workers)

    def serves(self, entry: int, key: int) -> bool:
        return not self.has_keys or self.model[entry][2] == key

    @rule(which=st.integers(0, WORKERS - 1), data=st.data())
    def claim(self, which: int, data: st.DataObject) -> None:
        worker = self.workers[which]
        keys = data.draw(
            st.lists(st.integers(0, ENTRIES * (1 + 2 * self.has_keys) - 1), min_size=1, max_size=6, unique=True)
        )
        if worker.is_abandoned:
            try:
                worker.claims.claim(keys)
            except Abandoned:
                return
            raise AssertionError("one that is given up has claimed something")
        if not worker.works:
            worker.member.begin()
            worker.works = True
        mine, evicted, makers, after = [], [], set(), list(self.model)
        for key in keys:
            state, owner, _ = self.model[key % ENTRIES]
            if state == CLAIMED and owner != worker.number and self.is_at_work(owner):
                if self.serves(key % ENTRIES, key):
                    makers.add(owner)
                else:
                    mine.append(key)  # made, and claimed by nobody
            elif state != READY or not self.serves(key % ENTRIES, key):
                mine.append(key)
                evicted += [key % ENTRIES] * (state == READY)
                after[key % ENTRIES] = CLAIMED, worker.number, key
        self.model = after
        gone: list[int] = []
        claimed = worker.claims.claim(keys, evict=gone.append)
        assert list(claimed.mine) == mine
        assert gone == evicted
        assert (claimed.other in makers) if makers else claimed.other is None
        self.compare()

    @rule(which=st.integers(0, WORKERS - 1), keys=st.lists(st.integers(0, 3 * ENTRIES - 1), min_size=1, unique=True))
    def publish(self, which: int, keys: list[int]) -> None:
        worker = self.workers[which]
        keys = [key for key in keys if key in worker.claims]
        if not keys:
            return
        rows = np.zeros(len(keys), self.entries.dtype)
        rows["state"], rows["owner"] = CLAIMED, worker.number
        if self.has_keys:
            rows["key"] = keys
        held = worker.claims.held(np.array(keys))
        for key, is_held in zip(keys, held.tolist(), strict=True):
            state, owner, _ = self.model[key % ENTRIES]
            assert is_held == ((state, owner) == (CLAIMED, worker.number) and self.serves(key % ENTRIES, key))
            if is_held:
                self.model[key % ENTRIES] = READY, worker.number, key
        worker.claims.publish(np.array(keys), rows, held)
        assert not any(key in worker.claims for key in keys)
        self.compare()

    @precondition(lambda self: any(worker.works for worker in self.workers))
    @rule(which=st.integers(0, WORKERS - 1), given_up=st.booleans())
    def release(self, which: int, given_up: bool) -> None:
        """It has done its work, or is given up in the middle of it."""
        worker = self.workers[which]
        if not worker.works:
            return
        had_any = len(worker.claims) > 0
        assert (worker.claims.abandon() if given_up else worker.claims.release()) == had_any
        worker.is_abandoned |= given_up
        worker.member.end()
        worker.works = False
        self.model = [
            (EMPTY, owner, key) if (state, owner) == (CLAIMED, worker.number) else (state, owner, key)
            for state, owner, key in self.model
        ]
        assert len(worker.claims) == 0
        self.compare()

    @rule(which=st.integers(0, WORKERS - 1))
    def die(self, which: int) -> None:
        """Without a word; another comes instead."""
        os.close(self.workers[which].fd)
        self.workers[which] = self.new_worker()

    def compare(self) -> None:
        assert self.entries["state"].tolist() == [state for state, _, _ in self.model]
        for entry, (state, owner, key) in zip(self.entries, self.model, strict=True):
            if state != EMPTY:
                assert entry["owner"] == owner
                assert not self.has_keys or entry["key"] == key


class TableWithKeys(Table):
    has_keys = True


TestTable = Table.TestCase
TestTableWithKeys = TableWithKeys.TestCase
TestTable.settings = TestTableWithKeys.settings = settings(deadline=None, max_examples=60, stateful_step_count=30)
