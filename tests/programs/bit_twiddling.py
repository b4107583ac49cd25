"""Integers as bits: generators, codes, checks, sieves."""

from __future__ import annotations

import numpy as np


def xorshift_stream(seed, n):
    """Marsaglia's xorshift64* generator, n doubles in [0, 1).

    Source: S. Vigna, ACM Trans. Math. Softw. 42 (2016) 30.
    """
    x = np.uint64(seed)
    out = np.empty(n)
    with np.errstate(over="ignore"):
        for i in range(n):
            x ^= x >> np.uint64(12)
            x ^= x << np.uint64(25)
            x ^= x >> np.uint64(27)
            out[i] = ((x * np.uint64(2685821657736338717)) >> np.uint64(11)) * 2.0**-53
    return out


def crc32(data):
    """CRC-32 with the table built first (W. W. Peterson, D. T. Brown, Proc. IRE 49 (1961) 228)."""
    table = np.zeros(256, dtype=np.uint32)
    for n in range(256):
        c = n
        for _ in range(8):
            if c & 1:
                c = 0xEDB88320 ^ (c >> 1)
            else:
                c = c >> 1
        table[n] = c
    crc = np.uint32(0xFFFFFFFF)
    for byte in data:
        crc = table[(crc ^ byte) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
    return crc ^ np.uint32(0xFFFFFFFF)


def popcount(x):
    """Bits set in each 32-bit word by masks and shifts (H. S. Warren, Hacker's Delight, 5-1)."""
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    x += x >> 8
    x += x >> 16
    return x & 0x3F


def sieve(n):
    """Primes below n (Eratosthenes)."""
    prime = np.ones(n, dtype=bool)
    prime[:2] = False
    i = 2
    while i * i < n:
        if prime[i]:
            prime[i * i :: i] = False
        i += 1
    return np.nonzero(prime)[0]


def collatz(start):
    """Steps of the 3n + 1 iteration until 1, and the highest number met, for each start."""
    steps = np.zeros(start.shape, dtype=np.int32)
    highest = start.copy()
    for k, n in enumerate(start):
        while n != 1:
            if n % 2 == 0:
                n //= 2
            else:
                n = 3 * n + 1
            highest[k] = max(highest[k], n)
            steps[k] += 1
    return steps, highest


def morton(x, y):
    """Interleaved bits of two 16-bit coordinates, and back (G. M. Morton, IBM, 1966)."""

    def spread(v):
        v = v.astype(np.uint32)
        for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
            v = (v | (v << shift)) & mask
        return v

    def gather(v):
        v = v & 0x55555555
        for shift, mask in ((1, 0x33333333), (2, 0x0F0F0F0F), (4, 0x00FF00FF), (8, 0x0000FFFF)):
            v = (v | (v >> shift)) & mask
        return v.astype(np.uint16)

    code = spread(x) | (spread(y) << 1)
    return code, gather(code), gather(code >> 1)


def berlekamp_massey(s):
    """Shortest linear feedback shift register that makes the bits s.

    Source: J. L. Massey, Shift-register synthesis and BCH decoding, IEEE Trans. Inf. Theory 15
    (1969) 122.
    """
    n = len(s)
    c = np.zeros(n, dtype=np.uint8)
    b = np.zeros(n, dtype=np.uint8)
    c[0] = b[0] = 1
    length, m = 0, -1
    for i in range(n):
        d = s[i]
        for j in range(1, length + 1):
            d ^= c[j] & s[i - j]
        if d == 1:
            t = c.copy()
            shift = i - m
            for j in range(n - shift):
                c[shift + j] ^= b[j]
            if 2 * length <= i:
                length = i + 1 - length
                m = i
                b = t
    taps = c[: length + 1]
    check = np.zeros(n, dtype=np.uint8)
    for i in range(length, n):
        for j in range(1, length + 1):
            check[i] ^= taps[j] & s[i - j]
    return length, taps, check


def nqueens(n):
    """Solutions of the n queens problem by bit masks and an explicit stack.

    Source: M. Richards, Backtracking algorithms in MCPL using bit patterns and recursion,
    Cambridge Computer Laboratory TR 433 (1997).
    """
    full = (1 << n) - 1
    columns = np.zeros(n + 1, dtype=np.int64)
    left = np.zeros(n + 1, dtype=np.int64)
    right = np.zeros(n + 1, dtype=np.int64)
    free = np.zeros(n + 1, dtype=np.int64)
    row = 0
    free[0] = full
    solutions = 0
    nodes = 0
    while row >= 0:
        if free[row] == 0:
            row -= 1
            continue
        bit = free[row] & -free[row]
        free[row] ^= bit
        nodes += 1
        if row == n - 1:
            solutions += 1
            continue
        columns[row + 1] = columns[row] | bit
        left[row + 1] = (left[row] | bit) << 1
        right[row + 1] = (right[row] | bit) >> 1
        row += 1
        free[row] = full & ~(columns[row] | left[row] | right[row])
    return solutions, nodes


def bits(n):
    return np.random.default_rng(5).integers(0, 2, n, dtype=np.uint8)


def words(n, seed=1):
    return np.random.default_rng(seed).integers(0, 2**32, n, dtype=np.uint32)


PROGRAMS = (
    (xorshift_stream, lambda n: (88172645463325252, n), 30, 100000, ""),
    (crc32, lambda n: (words(n).astype(np.uint8),), 40, 20000, ""),
    (popcount, lambda n: (words(n),), 100, 1000000, ""),
    (sieve, lambda n: (n,), 200, 1000000, "views data-loop"),
    (collatz, lambda n: (np.arange(1, n),), 20, 3000, "data-loop"),
    (morton, lambda n: ((words(n) & 0xFFFF).astype(np.uint16),
                        (words(n, 2) & 0xFFFF).astype(np.uint16)), 50, 500000, ""),
    (berlekamp_massey, lambda n: (bits(n),), 24, 300, "published"),
    (nqueens, lambda n: (n,), 6, 8, "published data-loop"),
)
