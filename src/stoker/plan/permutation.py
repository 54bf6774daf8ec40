"""A keyed bijection on [0, n) that can be evaluated anywhere, without a permutation array.

Every number in this file is part of the frozen formula: to change one is to raise `PLAN_VERSION`.
The formula and its measured statistics are in `docs/design/shuffle.md`.
"""

from math import isqrt
from operator import index
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Positions: TypeAlias = npt.NDArray[np.int64]
_Words: TypeAlias = npt.NDArray[np.uint64]

_MASK = 2**64 - 1
_GAMMA = 0x9E3779B97F4A7C15  # splitmix64's constants, here and in the next line
_MIX_1, _MIX_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

_TABLE_LIMIT = 4096  # positions; up to here a sorted table (32 KiB, 0.14 ms) is cheaper and exactly uniform
_LENGTH_LIMIT = 2**62  # so that both halves stay within 2**31 and no product overflows 64 bits
_ROUNDS = 6  # three for each half; five show plainly in a chi-square test at n = 4097, six do not


def _word(value: int) -> _Words:
    # A 0-d array costs a ufunc half of what a NumPy scalar does (0.3 against 0.55 µs a call).
    return np.array(value, dtype=np.uint64)


_W27, _W29, _W30, _W31, _W32 = (_word(bits) for bits in (27, 29, 30, 31, 32))
_W_GAMMA, _W_MIX_1, _W_MIX_2 = (_word(constant) for constant in (_GAMMA, _MIX_1, _MIX_2))


def derive(*parts: int) -> int:
    """A 64-bit key from integers of any size and sign, in which their order counts.

    >>> derive(0, 1) == derive(1, 0)
    False
    """
    state = _GAMMA
    for part in parts:
        state = extend(state, part)
    return state


def extend(key: int, part: int) -> int:
    """`derive(*parts, part)`, where `key` is `derive(*parts)`."""
    number = index(part)  # a NumPy integer would overflow below
    for limb in (number,) if 0 <= number < 2**63 else _limbs(number):
        key = _mix((key + _GAMMA) & _MASK ^ limb)
    return key


def _limbs(part: int) -> list[int]:
    # The head has its top bit set, as no plain part has, and tells sign and count: so no two lists of parts
    # give the same limbs.
    magnitude = abs(part)
    count = magnitude.bit_length() // 64 + 1
    limbs = [magnitude >> 64 * i & _MASK for i in range(count)]
    return [2**63 | count << 1 | (part < 0), *limbs]


def _mix(x: int) -> int:
    x = (x ^ x >> 30) * _MIX_1 & _MASK
    x = (x ^ x >> 27) * _MIX_2 & _MASK
    return x ^ x >> 31


def _stream(key: int, count: int) -> _Words:
    """The first `count` words of splitmix64 from `key`: all different, as the mixing is a bijection."""
    return _words(key, np.arange(1, count + 1, dtype=np.uint64))


def fractions(key: int, positions: Positions) -> npt.NDArray[np.float64]:
    """A random number in (0, 1) for each position, 53 bits of it, in which neither 0 nor 1 occurs."""
    words = _words(key, positions.astype(np.uint64) + _word(1))
    return ((words >> _word(11)).astype(np.float64) + 0.5) * 2.0**-53


def _words(key: int, x: _Words) -> _Words:
    """The words of splitmix64 from `key` at these places, which count from 1. `x` is overwritten."""
    x *= _W_GAMMA
    x += _word(key)
    x ^= x >> _W30
    x *= _W_MIX_1
    x ^= x >> _W27
    x *= _W_MIX_2
    x ^= x >> _W31
    return x


class Permutation:
    """A keyed permutation of [0, n): call it with an array of positions to get the indices there.

    Calls are independent of each other, so it may be shared between threads.

    Example:
        >>> Permutation(10**9, key=7)(np.arange(3)).shape
        (3,)
    """

    __slots__ = ("_a", "_b", "_n", "_rounds", "_table")

    def __init__(self, n: int, key: int) -> None:
        if not 0 <= n <= _LENGTH_LIMIT:
            raise ValueError(f"cannot permute {n} positions: pass a length from 0 to 2**62")
        self._table: Positions | None = None
        key = derive(key, n)
        if n <= _TABLE_LIMIT:
            self._table = np.argsort(_stream(key, n)).astype(np.int64, copy=False)
            return
        # a * b exceeds n by less than a, so about one position in sqrt(n) has to walk on.
        a = isqrt(n - 1) + 1
        self._n, self._a, self._b = _word(n), _word(a), _word(-(-n // a))
        keys = _stream(key, 2 * _ROUNDS)
        keys[0::2] |= _word(1)  # the multipliers are odd
        self._rounds = tuple((keys[i, ...], keys[i + 1, ...]) for i in range(0, 2 * _ROUNDS, 2))

    def __call__(self, positions: Positions) -> Positions:
        if self._table is not None:
            return self._table[positions]
        found = self._encipher(positions.view(np.uint64))
        outside = (found >= self._n).nonzero()[0]
        while outside.size:  # cycle walking: what left [0, n) goes round again until it is back
            found[outside] = self._encipher(found[outside])
            outside = outside[found[outside] >= self._n]
        return found.view(np.int64)

    def _encipher(self, x: _Words) -> _Words:
        """A bijection on [0, a * b): a Feistel network over the pair (x // b, x % b)."""
        if x.size == 1:  # two are quicker than one: NumPy's fast path is not for one element and a 0-d array
            return self._encipher(x.repeat(2))[:1]
        left = x // self._b
        right = left * self._b
        np.subtract(x, right, right)
        h, scratch = np.empty_like(x), np.empty_like(x)
        for i, (multiplier, addend) in enumerate(self._rounds):
            if i % 2 == 0:
                _stir(left, right, self._a, multiplier, addend, h, scratch)
            else:
                _stir(right, left, self._b, multiplier, addend, h, scratch)
        left *= self._b
        left += right
        return left


def _stir(
    target: _Words,
    source: _Words,
    modulus: _Words,
    multiplier: _Words,
    addend: _Words,
    h: _Words,
    scratch: _Words,
) -> None:
    """target = (target + hash(source)) mod modulus, in place.

    Eleven calls of 0.3 µs: for a batch's worth of positions the calls are the cost, so none allocates and
    none divides.
    """
    np.multiply(source, multiplier, h)
    np.add(h, addend, h)
    np.right_shift(h, _W29, scratch)
    np.bitwise_xor(h, scratch, h)
    np.multiply(h, _W_MIX_1, h)
    # The top 32 bits, scaled down to [0, modulus) by a product instead of a remainder.
    np.right_shift(h, _W32, h)
    np.multiply(h, modulus, h)
    np.right_shift(h, _W32, h)
    np.add(target, h, target)
    # Below the modulus the difference wraps to a huge number, so the minimum is the remainder.
    np.subtract(target, modulus, h)
    np.minimum(target, h, out=target)
