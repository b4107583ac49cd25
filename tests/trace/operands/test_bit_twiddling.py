"""Loops over the bits of Python ints: checksums, hashes, generators and counts are Python's own,
or say at run time that 64 bits do not hold them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec


def crc8(data: Any, poly: Any = 0x07) -> Any:
    crc = 0
    for b in data:
        crc ^= int(b)
        for _ in range(8):
            crc = ((crc << 1) ^ poly) & 0xFF if crc & 0x80 else (crc << 1) & 0xFF
    return crc


def crc16(data: Any) -> Any:
    crc = 0xFFFF
    for b in data:
        crc ^= int(b) << 8
        for _ in range(8):
            crc = (crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1
            crc &= 0xFFFF
    return ~crc & 0xFFFF


def crc32(data: Any) -> Any:
    crc = 0xFFFFFFFF
    for b in data:
        crc = crc ^ int(b)
        for _ in range(8):
            crc = (crc >> 1) ^ (0xEDB88320 & -(crc & 1))
    return crc ^ 0xFFFFFFFF


def fnv(data: Any) -> Any:
    h = 0x811C9DC5
    for b in data:
        h = ((h ^ int(b)) * 0x01000193) & 0xFFFFFFFF
    return h


def djb2(data: Any) -> Any:
    h = 5381
    for b in data:
        h = ((h << 5) + h + int(b)) & 0xFFFFFFFF
    return h


def sdbm(data: Any) -> Any:
    h = 0
    for b in data:
        h = (int(b) + (h << 6) + (h << 16) - h) & 0xFFFFFFFF
    return h


def xorshift32(seed: Any, n: Any) -> Any:
    x = seed
    for _ in range(n):
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
    return x


def xorshift32d(data: Any) -> Any:
    x = 1
    for b in data:
        x ^= int(b)
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
    return x


def popcount(data: Any) -> Any:
    t = 0
    for v in data:
        v = int(v)
        while v:
            v &= v - 1
            t += 1
    return t


def gray(n: Any) -> Any:
    out = np.zeros(n, np.int64)
    for i in range(n):
        out[i] = i ^ (i >> 1)
    return out


def ungray(data: Any) -> Any:
    out = np.zeros(len(data), np.int64)
    for i in range(len(data)):
        g = int(data[i])
        s = g >> 1
        while s:
            g ^= s
            s >>= 1
        out[i] = g
    return out


def reverse(data: Any) -> Any:
    out = np.zeros(len(data), np.int64)
    for i in range(len(data)):
        v = int(data[i])
        r = 0
        for _ in range(16):
            r = ((r << 1) | (v & 1)) & 0xFFFF
            v >>= 1
        out[i] = r
    return out


def reverse2(v: Any) -> Any:
    r = 0
    for _ in range(16):
        r = (r << 1) | (v & 1)
        v >>= 1
    return r


def lfsr(seed: Any, n: Any) -> Any:
    s = seed & 0xFFFF
    for _ in range(n):
        bit = (s ^ (s >> 2) ^ (s >> 3) ^ (s >> 5)) & 1
        s = (s >> 1) | (bit << 15)
    return s


def galois(n: Any) -> Any:
    s = 0xACE1
    period = 0
    for _ in range(n):
        lsb = s & 1
        s >>= 1
        if lsb:
            s ^= 0xB400
        period += 1
    return s, period


def adler32(data: Any) -> Any:
    a, b = 1, 0
    for v in data:
        a = (a + int(v)) % 65521
        b = (b + a) % 65521
    return (b << 16) | a


def fletcher16(data: Any) -> Any:
    a = b = 0
    for v in data:
        a = (a + int(v)) % 255
        b = (b + a) % 255
    return (b << 8) | a


def murmur(data: Any) -> Any:
    out = np.zeros(len(data), np.int64)
    for i in range(len(data)):
        h = int(data[i]) & 0xFFFFFFFF
        h ^= h >> 16
        h = (h * 0x85EBCA6B) & 0xFFFFFFFF
        h ^= h >> 13
        h = (h * 0xC2B2AE35) & 0xFFFFFFFF
        h ^= h >> 16
        out[i] = h
    return out


def lcg(seed: Any, n: Any) -> Any:
    for _ in range(n):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
    return seed


def rotl(data: Any) -> Any:
    h = 0
    for v in data:
        h = ((h << 7) | (h >> 25)) & 0xFFFFFFFF
        h ^= int(v)
    return h


def jenkins(data: Any) -> Any:
    h = 0
    for v in data:
        h = (h + int(v)) & 0xFFFFFFFF
        h = (h + (h << 10)) & 0xFFFFFFFF
        h ^= h >> 6
    h = (h + (h << 3)) & 0xFFFFFFFF
    h ^= h >> 11
    return (h + (h << 15)) & 0xFFFFFFFF


def parity(data: Any) -> Any:
    p = 0
    for v in data:
        v = int(v)
        v ^= v >> 4
        v ^= v >> 2
        v ^= v >> 1
        p = (p << 1 | (v & 1)) & 0xFFFFFFFF
    return p


def inverted_over(n: Any) -> Any:
    crc = 0x1234
    for _ in range(n):
        crc = ~crc & 0xFFFF
    return crc


def inverted_where(x: Any, crc: Any) -> Any:
    for v in x:
        crc = ~crc & 0xFFFF if v > 3 else crc ^ 0x55
    return crc


def pearson(data: Any) -> Any:
    t = [(i * 167 + 13) & 0xFF for i in range(256)]
    h = 0
    for v in data:
        h = t[(h ^ int(v)) & 0xFF]
    return h


def signs(data: Any) -> Any:
    h = 0
    for v in data:
        h = (~h ^ -int(v)) >> 1
    return h


def xs63(data: Any) -> Any:
    x = 88172645463325
    M = (1 << 63) - 1
    for _ in data:
        x ^= (x << 13) & M
        x ^= x >> 7
        x ^= (x << 17) & M
    return x


def isqrt(n: Any) -> Any:
    r = 0
    bit = 1 << 30
    while bit > n:
        bit >>= 2
    while bit:
        if n >= r + bit:
            n -= r + bit
            r = (r >> 1) + bit
        else:
            r >>= 1
        bit >>= 2
    return r


def morton(data: Any) -> Any:
    out = np.zeros(len(data), np.int64)
    for i, v in enumerate(data):
        x = int(v) & 0xFFFF
        x = (x | (x << 8)) & 0x00FF00FF
        x = (x | (x << 4)) & 0x0F0F0F0F
        x = (x | (x << 2)) & 0x33333333
        x = (x | (x << 1)) & 0x55555555
        out[i] = x
    return out


def luhn(n: Any) -> Any:
    total, k = 0, 0
    while n:
        d = n % 10
        n //= 10
        if k & 1:
            d <<= 1
            if d > 9:
                d -= 9
        total += d
        k ^= 1
    return total % 10


def ctz(n: Any) -> Any:
    c = 0
    while n and not n & 1:
        n >>= 1
        c += 1
    return c


def subsets(mask: Any) -> Any:
    s, c = mask, 0
    while s:
        c += 1
        s = (s - 1) & mask
    return c


def elf(data: Any) -> Any:
    h = 0
    for v in data:
        h = (h << 4) + int(v)
        g = h & 0xF0000000
        if g:
            h ^= g >> 24
        h &= ~g
    return h


def inverted_while(x: Any) -> Any:
    crc = 0x1234
    k = 0
    while k < len(x):
        crc = ~crc & 0xFFFF
        crc = crc << 8 | crc >> 8
        crc &= 0xFFFF
        k += 1
    return crc


def murmur_of_numpy(data: Any) -> Any:
    out = np.zeros(len(data), np.uint32)
    for i in range(len(data)):
        h = np.uint64(data[i])
        h = h * np.uint64(0x85EBCA6B) & np.uint64(0xFFFFFFFF)
        out[i] = h ^ h >> np.uint64(16)
    return out


SHORT = np.arange(1, 8, dtype=np.uint8)
LONG = np.frombuffer(b"The quick brown fox jumps over 13 lazy dogs.", np.uint8).copy()
WIDE = np.array([3, 255, 65535, 123456, 7, 0, 99], np.int64)
DATA: list[tuple[Any, ...]] = [(SHORT,), (LONG,), (WIDE,)]
OF_DATA: list[Callable[..., Any]] = [
    crc8, crc16, crc32, fnv, djb2, sdbm, xorshift32d, popcount, ungray, reverse, adler32,
    fletcher16, rotl, jenkins, parity, pearson, signs, morton, elf, inverted_while,
    murmur_of_numpy, xs63,
]
OF_INTS: list[Callable[..., Any]] = [
    gray, reverse2, galois, inverted_over, isqrt, luhn, ctz, subsets,
]
OF_BOTH: list[Callable[..., Any]] = [xorshift32, lfsr, lcg]


def check(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> None:
    compiled = fusec.jit(function)
    for args in calls:
        got, want = compiled(*args), function(*args)
        assert type(got) is type(want)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("function", OF_DATA)
def test_of_data(function: Callable[..., Any]) -> None:
    check(function, DATA)


@pytest.mark.parametrize("function", OF_INTS)
def test_of_ints(function: Callable[..., Any]) -> None:
    check(function, [(5,), (12,), (1000,)])


@pytest.mark.parametrize("function", OF_BOTH)
def test_of_a_seed_and_a_length(function: Callable[..., Any]) -> None:
    check(function, [(7, 5), (99, 12), (12345, 300)])


def test_where_data_decides() -> None:
    check(inverted_where, [(SHORT, 9), (LONG, 12), (WIDE, 77)])


@pytest.mark.parametrize("data", [WIDE, LONG])
def test_what_needs_more_than_64_bits_says_so(data: np.ndarray) -> None:
    """Short loops, which are written out, as long ones."""
    with pytest.raises(OverflowError, match="does not fit into 64 bits"):
        fusec.jit(murmur)(data)


def inverted(n: int, x: Any) -> Any:
    masked = ~int(x[0]) & 0xFFFF
    return (masked << 40) + n, (masked | 1) * 0x7FFF_FFFF, (masked >> n) << 45


def test_masks_bound_what_follows() -> None:
    """No check at run time is left of numbers that the mask proves to fit."""
    args = 3, np.array([12345, 6])
    check(inverted, [args, (5, np.array([0, 1]))])
    checks = [n for n in fusec.jit(inverted).concrete(*args).graph.nodes if n.op == "Check"]
    assert not any("64 bits" in str(n.attrs["error"]) for n in checks)
