"""Kills a worker at lines of the rotation, one after the other, and looks at what is left.

``python -m tests.rotation.lines FIRST STEP`` prints the number of lines as JSON, and what was ``wrong``. It is a
process of its own, as a small one forks quickly.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from itertools import count
from typing import Any

import numpy as np

from stoker.memory import anonymous_file
from stoker.stores.record_codec import RecordDecoder, RecordEncoder
from stoker.stores.rotation_file import RotationFile
from stoker.stores.shared_samples import collect
from tests.rotation.stepping import die_at

_PLACES, _USES, _PAGE = 6, 2, 4096


def open_one(file: int) -> RotationFile:
    return RotationFile(file, _PLACES, RecordEncoder("pickle"), RecordDecoder("pickle", copies=True), lambda: None)


def sample_of(key: int) -> Any:
    """Each larger than those before, so that cells are made anew."""
    return {"key": key, "data": np.full(_PAGE * (key + 1) - 1000, key, np.uint8)}


def use(rotation_file: RotationFile, keys: list[int]) -> None:
    """Once; and they are what they should be."""
    rotation_file.begin()
    found = collect(rotation_file, keys, sample_of, lambda: None).samples
    assert rotation_file.count(keys, np.ones(len(keys)), np.full(len(keys), _USES))
    for key in keys:
        assert found[key]["key"] == key
        assert (found[key]["data"] == key).all()


def live_until(file: int, line: int) -> bool:
    """Puts, uses and uses up, in a process of its own. Whether it was killed on the way."""
    pid = os.fork()
    if pid == 0:
        try:
            die_at(line, lambda where: True)
            rotation_file = open_one(file)
            for keys in ([0, 1], [1, 2], [0, 2], [3, 7]):
                use(rotation_file, keys)
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    assert status in (0, 9), "it died of something else"
    return status == 9


def look_at(file: int) -> None:
    """No two samples share a cell, and no more is lost than what the dead one was about to write."""
    one, other = open_one(file), open_one(file)
    for keys in ([3, 4, 5], [6, 7, 8]):  # as many as there are places
        use(one, keys)
    for keys in ([8, 7, 6], [5, 4, 3], [9, 10, 11]):
        use(other, keys)
    use(one, [9, 10, 11])
    for rotation_file in (one, other):
        rotation_file.close()
    assert os.fstat(file).st_blocks * 512 <= (_PLACES + 2) * _PAGE * 13 + 8 * _PAGE


def main(first: int, step: int) -> dict[str, Any]:
    for line in count(first, step):
        file = anonymous_file()
        try:
            was_killed = live_until(file, line)
            look_at(file)
        except BaseException:
            return {"lines": line, "wrong": f"killed at line {line}: {traceback.format_exc()[-1500:]}"}
        finally:
            os.close(file)
        if not was_killed:
            break
    return {"lines": line, "wrong": None}


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:]))))
