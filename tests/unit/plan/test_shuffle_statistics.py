"""Chi-square tests with fixed keys: deterministic, each with a threshold of p = 1e-5.

The figures they give are in docs/design/shuffle.md; `pytest -s` prints them.
"""

from collections import Counter
from itertools import pairwise, permutations
from math import exp, factorial, isqrt, sqrt

import numpy as np
import pytest

from stoker.plan import Nearby, Permutation, Shuffled, derive

_Z = 4.26  # standard deviations for p = 1e-5, one-sided


def assert_fits(observed: np.ndarray, expected: np.ndarray | float, dof: int, name: str) -> None:
    """Chi-square, made a standard normal by Wilson and Hilferty's cube root."""
    expected = np.broadcast_to(np.asarray(expected, dtype=float), observed.shape)
    assert expected.min() >= 4.9, "too few trials for the test"
    statistic = float(((observed - expected) ** 2 / expected).sum())
    z = (np.cbrt(statistic / dof) - (1 - 2 / (9 * dof))) / sqrt(2 / (9 * dof))
    print(f"\n{name}: chi2 {statistic:.0f} for {dof} degrees, z {z:+.2f}", end="")
    # Two-sided: a fit too good to be chance would be a fault as well.
    assert abs(z) < _Z


def scan(n: int, key: int) -> np.ndarray:
    return Permutation(n, key)(np.arange(n))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_all_permutations_are_equally_frequent(n: int) -> None:
    trials = 200 * factorial(n)
    count = Counter(tuple(scan(n, key).tolist()) for key in range(trials))
    observed = np.array([count[p] for p in permutations(range(n))])
    assert_fits(observed, 200, len(observed) - 1, f"all {len(observed)} permutations of {n}")


def index_by_position(n: int, trials: int) -> np.ndarray:
    table = np.zeros((n, n), dtype=np.int64)
    for epoch in range(trials):
        table[np.arange(n), Shuffled(n, derive(0, epoch)).indices(0, n)] += 1
    return table


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 8, 9, 10, 64])
def test_every_index_is_as_likely_at_every_position(n: int) -> None:
    trials = 50 * n
    assert_fits(index_by_position(n, trials), 50, (n - 1) ** 2, f"index x position, n={n}")


@pytest.mark.parametrize("n", [4097, 4225, 4900])  # one walk in 65, odd x odd, even x even
def test_every_index_is_as_likely_at_every_position_beyond_the_table(n: int) -> None:
    trials, cells = 2000, 25
    positions = np.arange(n)
    # Two ways to group 17 million cells: by nearness, and by remainder (positions that share a half).
    groupings = {"runs": positions * cells // n, "remainders": positions % cells}
    tables = {name: np.zeros(cells * cells, dtype=np.int64) for name in groupings}
    for epoch in range(trials):
        found = scan(n, derive(1, epoch))
        for name, group in groupings.items():
            tables[name] += np.bincount(group * cells + group[found], minlength=cells * cells)
    for name, group in groupings.items():
        sizes = np.bincount(group)
        expected = trials * np.outer(sizes, sizes).ravel() / n
        assert_fits(tables[name], expected, (cells - 1) ** 2, f"index x position in {name}, n={n}")


@pytest.mark.parametrize("n", [1000, 4096, 4097, 4900])
def test_neighbours_stay_together_as_often_as_by_chance(n: int) -> None:
    trials = 2000
    kept = [int((np.abs(np.diff(scan(n, derive(2, key)))) == 1).sum()) for key in range(trials)]
    observed = np.bincount(np.minimum(kept, 7), minlength=8)
    # Poisson with a mean of 2 (n - 1) / n pairs a permutation.
    mean = 2 * (n - 1) / n
    poisson = [exp(-mean) * mean**k / factorial(k) for k in range(7)]
    expected = trials * np.array([*poisson, 1 - sum(poisson)])
    assert_fits(observed, expected, 7, f"neighbours kept, n={n}")


@pytest.mark.parametrize(("n", "row"), [(4097, 64), (4225, 65), (4900, 70)])
def test_every_step_between_two_positions_is_as_likely(n: int, row: int) -> None:
    """The sharpest of these tests: it refuses a network of five rounds, for positions a row apart."""
    trials = 2000
    for lag in (1, row):
        observed = np.zeros(n, dtype=np.int64)
        for key in range(trials):
            found = scan(n, derive(8, key))
            observed += np.bincount((found - np.roll(found, lag)) % n, minlength=n)
        assert_fits(observed[1:], trials * n / (n - 1), n - 2, f"every step at lag {lag}, n={n}")


@pytest.mark.parametrize("n", [10**4, 10**6, 10**9])
@pytest.mark.parametrize("lag", ["1", "2", "row", "row + 1", "epoch"])
def test_the_step_between_two_positions_is_uniform(n: int, lag: str) -> None:
    a = isqrt(n - 1) + 1
    row = -(-n // a)  # positions a row apart share the right half
    shift = {"1": 1, "2": 2, "row": row, "row + 1": row + 1, "epoch": 0}[lag]
    positions = np.arange(5000)
    steps = []
    for key in range(20):
        here, there = (Permutation(n, derive(3, k)) for k in (key, key + (lag == "epoch")))
        steps.append((there((positions + shift) % n) - here(positions)) % n)
    observed = np.histogram(np.concatenate(steps), bins=100, range=(0, n))[0]
    assert_fits(observed, 20 * len(positions) / 100, 99, f"step at lag {lag}, n={n}")


@pytest.mark.parametrize(("window", "reach"), [(8, 1), (40, 1), (5000, 400)])
def test_nearby_displacements_have_the_triangular_distribution(window: int, reach: int) -> None:
    trials, middle = 10_000, 2 * window
    moved = [
        Nearby(4 * window, window, derive(4, key)).indices(middle, middle + 1)[0] - middle for key in range(trials)
    ]
    # The place in the block and the index are independent and uniform: P(d) = (w - |d|) / w**2.
    displacements = np.arange(-window + 1, window)
    expected = trials * (window - np.abs(displacements)) / window**2
    observed = np.bincount(np.array(moved) + window - 1, minlength=len(displacements))
    first = np.arange(0, len(displacements), reach)
    observed, expected = np.add.reduceat(observed, first), np.add.reduceat(expected, first)
    assert_fits(observed, expected, len(observed) - 1, f"displacement, window {window}")


@pytest.mark.parametrize("window", [2, 10, 32])
def test_every_place_in_a_block_is_as_likely_for_every_index(window: int) -> None:
    # An epoch as long as the window is one block.
    trials = 50 * window
    table = np.zeros((window, window), dtype=np.int64)
    for key in range(trials):
        table[np.arange(window), Nearby(window, window, derive(5, key)).indices(0, window)] += 1
    assert_fits(table, 50, (window - 1) ** 2, f"index x place in a block of {window}")


def borders(indices: list[int]) -> list[int]:
    """Positions before which exactly the first indices stand: every cut is one."""
    highest = np.maximum.accumulate(indices)
    return (np.flatnonzero(highest == np.arange(len(indices))) + 1).tolist()


def test_the_cuts_move_from_epoch_to_epoch() -> None:
    window, n, trials = 20, 400, 2000
    offsets = []
    for epoch in range(trials):
        found = borders(Nearby(n, window, derive(6, epoch)).indices(0, n))
        offsets.append(Counter(border % window for border in found if border < n).most_common(1)[0][0])
    observed = np.bincount(offsets, minlength=window)
    assert_fits(observed, trials / window, window - 1, f"offset of the cuts, window {window}")


def test_epochs_of_a_nearby_shuffle_are_unrelated() -> None:
    n, window = 2000, 10
    orders = [np.array(Nearby(n, window, derive(7, epoch)).indices(0, n)) for epoch in range(200)]
    same = sum(int((one == other).sum()) for one, other in pairwise(orders))
    # P(same index) = sum over d of P(d)**2 for two independent triangular displacements.
    chance = sum(((window - abs(d)) / window**2) ** 2 for d in range(-window + 1, window))
    expected = 199 * n * chance
    print(f"\nsame index in two epochs: {same}, by chance {expected:.0f}", end="")
    # Positions of an epoch share their cuts, so the spread is wider than binomial (1 %).
    assert abs(same - expected) < 0.05 * expected
