"""A map in workers, for what must be known before an epoch."""

from __future__ import annotations

import pytest

from stoker.surveys.worker_map import _Some


@pytest.mark.parametrize("interrupted", range(5))
def test_whoever_is_interrupted_while_items_are_taken_begins_with_the_same_ones_again(interrupted):
    left = [interrupted]

    def item(number):
        left[0] -= 1
        if left[0] == -1:
            raise KeyboardInterrupt
        return number

    some, got = _Some(item, 5, together=2), []
    while True:
        try:
            got.append(next(some))
        except KeyboardInterrupt:
            continue
        except StopIteration:
            break
    assert got == [[0, 1], [2, 3], [4]]
