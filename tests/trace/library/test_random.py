"""fusec.random: the published vectors, the same bits everywhere, and the distributions."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import fusec
from fusec import config, random
from fusec.api.philox import mul_high, philox
from fusec.ops.graphs.evaluate import evaluate

KEY = random.key(1234)


def word(x: int) -> np.ndarray:
    return np.array([x], np.uint32)


# Known answers of philox4x32-10 from Random123's file kat_vectors: counter, key, result.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_the_published_vectors(counter: Any, key: Any, expected: Any) -> None:
    words = [word(w) for w in (*counter, *key)]
    assert tuple(int(w[0]) for w in philox(tuple(words[:4]), tuple(words[4:]))) == expected
    compiled = fusec.jit(lambda a, b, c, d, k, m: philox((a, b, c, d), (k, m)))
    assert tuple(int(w[0]) for w in compiled(*words)) == expected


EXACT: dict[str, Callable[[Any], Any]] = {
    "bits": lambda k: random.bits(k, (1001,)),
    "bits of bytes": lambda k: random.bits(k, 37, np.uint8),
    "bits of 64": lambda k: random.bits(k, (7, 11, 3), np.uint64),
    "uniform": lambda k: random.uniform(k, (3, 1001)),
    "one uniform": lambda k: random.uniform(k),
    "uniform float32": lambda k: random.uniform(k, (1001,), dtype=np.float32),
    "uniform float16": lambda k: random.uniform(k, 99, dtype=np.float16),
    "uniform with ends": lambda k: random.uniform(k, (1001,), -3.0, 0.1),
    "uniform with array ends": lambda k: random.uniform(k, (2, 3), np.zeros(3), np.arange(3.0)),
    "integers": lambda k: random.integers(k, (1001,), -3, 10),
    "one integer": lambda k: random.integers(k, (), 6),
    "wide integers": lambda k: random.integers(k, (1001,), -(2**62), 2**62 + 5),
    "all integers": lambda k: random.integers(k, (99,), -(2**63), 2**63),
    "integers of a byte": lambda k: random.integers(k, (101,), 0, 256, np.uint8),
    "integers with array ends": lambda k: random.integers(k, (2, 3), 0, np.array([1, 5, 10**12])),
    "booleans": lambda k: random.bernoulli(k, (100,), 0.3),
    "split": lambda k: random.split(k, 3),
    "fold in": lambda k: random.fold_in(k, 17),
    "a chain of keys": lambda k: random.bits(random.fold_in(random.split(k)[1], 2), 5),
    "permutation": lambda k: random.permutation(k, 50),
    "permutation of rows": lambda k: random.permutation(k, np.arange(12.0).reshape(6, 2)),
    "choice": lambda k: random.choice(k, 9, (2, 4)),
    "choice of an array": lambda k: random.choice(k, np.arange(5.0), 7),
    "choice with p": lambda k: random.choice(k, np.arange(3.0), 50, p=[0.5, 0.25, 0.25]),
    "choice without replacement": lambda k: random.choice(k, 20, (2, 5), replace=False),
}


@pytest.mark.parametrize("name", EXACT)
def test_the_same_bits_everywhere(name: str) -> None:
    f = EXACT[name]
    expected, compiled = f(KEY), fusec.jit(f)
    for threads in (1, 2):
        with config.override(num_threads=threads):
            found = compiled(KEY)
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found, expected, strict=True)
    concrete = compiled.traces[0]
    inputs = [KEY, *concrete.build.traced.captured]
    reference = evaluate(concrete.graph, inputs[:len(concrete.graph.inputs)])
    if reference[0].shape == np.shape(expected):  # else the result is a view of it
        np.testing.assert_array_equal(reference[0], expected)


def test_any_number_of_threads_and_any_part() -> None:
    f = fusec.jit(lambda k, n: random.uniform(k, (n,)) * 2, static="n")
    with config.override(num_threads=1):
        one = f(KEY, 300_000)
    many = fusec.jit(lambda k, n: random.uniform(k, (n,)) * 2, static="n")(KEY, 300_000)
    np.testing.assert_array_equal(one, many)
    np.testing.assert_array_equal(f(KEY, 1000), one[:1000])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("draw", [random.normal, random.exponential])
def test_functions_of_uniform_numbers_are_near(draw: Callable[..., Any], dtype: Any) -> None:
    eager = draw(KEY, (5, 999), dtype=dtype)
    found = fusec.jit(lambda k: draw(k, (5, 999), dtype=dtype))(KEY)
    assert eager.dtype == found.dtype == dtype
    eps = 64 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(found, eager, rtol=eps, atol=eps)


def test_numbers_are_computed_in_the_kernel_that_reads_them() -> None:
    def estimate(k: Any, other: Any) -> Any:
        x, y = (random.uniform(u, (100, 1000), -1.0, 1.0) for u in (k, other))
        return 4 * (x * x + y * y < 1).mean()

    compiled, keys = fusec.jit(estimate), random.split(KEY)
    assert compiled(*keys) == estimate(*keys) and abs(estimate(*keys) - math.pi) < 0.02
    kernel, = compiled.traces[0].kernels
    assert not compiled.traces[0].externs
    assert sum(kernel.bytes_loaded.values()) <= 16


def test_a_loop_with_a_key_of_its_own() -> None:
    def walk(k: Any, n: int) -> Any:
        x = 0.0
        for i in range(n):
            x = x + random.uniform(random.fold_in(k, i), (), -1.0, 1.0)
        return x

    compiled = fusec.jit(walk)
    assert compiled(KEY, 200) == walk(KEY, 200)
    assert compiled.traces[0].control[0].is_native


def test_run_time_seeds_and_sizes() -> None:
    def f(seed: int, x: Any) -> Any:
        chosen = x[x > 0.5]
        k = random.fold_in(random.key(seed), 3)
        return chosen + random.uniform(k, (len(chosen),)), random.permutation(k, chosen)

    compiled, x = fusec.jit(f), np.random.default_rng(0).random(100)
    for seed in (3, 4, 5, 2**40):
        for a, b in zip(compiled(seed, x), f(seed, x), strict=True):
            np.testing.assert_array_equal(a, b)


# --- distributions, with fixed seeds ------------------------------------------------------------

N = 200_000


def test_uniform_and_normal_pass_kolmogorov_and_smirnov() -> None:
    for seed in range(3):
        u, z, e = (draw(random.key(seed), N) for draw in (
            random.uniform, random.normal, random.exponential))
        for found, law in ((u, "uniform"), (z, "norm"), (e, "expon")):
            assert scipy.stats.kstest(found, law).pvalue > 0.001
        assert u.min() >= 0 and u.max() < 1 and np.isfinite(z).all()
        assert abs(z.mean()) < 0.01 and abs(z.std() - 1) < 0.01
        assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 0.01


def test_integers_are_even() -> None:
    for width in (6, 1000, 2**33):
        found = random.integers(KEY, N, width)
        counts = np.bincount((found * 6 // width).astype(int), minlength=6)
        if width != 1000:
            assert scipy.stats.chisquare(counts).pvalue > 0.001
        assert found.min() >= 0 and found.max() < width


def test_keys_are_independent() -> None:
    keys = [KEY, *random.split(KEY, 4), *[random.fold_in(KEY, i) for i in range(4)]]
    numbers = [random.uniform(k, 10_000) for k in keys]
    correlations = np.corrcoef(numbers) - np.eye(len(keys))
    assert np.abs(correlations).max() < 0.05
    assert len({tuple(k) for k in random.split(KEY, 10_000)}) == 10_000


def test_a_permutation_holds_everything_once() -> None:
    assert sorted(random.permutation(KEY, 1000)) == list(range(1000))
    assert len(set(random.choice(KEY, 30, 30, replace=False).tolist())) == 30


def test_the_upper_half_of_products() -> None:
    a = np.array([0, 1, 2**31, 2**32 - 1, 12345], np.uint32)
    expected = [int(x) * 0xD2511F53 >> 32 for x in a]
    assert mul_high(a, np.uint32(0xD2511F53)).tolist() == expected


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "kind", "words"), [
    (lambda k: random.uniform(42, 3), TypeError, "make one with fusec.random.key"),
    (lambda k: random.uniform(random.split(k), 3), TypeError, "one at a time"),
    (lambda k: random.uniform(np.random.default_rng(0), 3), TypeError, "this is a Generator"),
    (lambda k: random.integers(k, 3, 5, 5), ValueError, "low >= high: 5 and 5"),
    (lambda k: random.integers(k, 3, 0, 300, np.uint8), ValueError, "out of bounds for uint8"),
    (lambda k: random.bits(k, 3, np.int32), TypeError, "expected uint8"),
    (lambda k: random.uniform(k, 3, dtype=int), TypeError, "expected float64"),
    (lambda k: random.uniform(k, (-1,)), ValueError, "negative dimensions"),
    (lambda k: random.choice(k, 3, 4, replace=False), ValueError, "4 of 3 elements"),
    (lambda k: random.key(-1), ValueError, "is not in 0"),
])
def test_bad_input(call: Callable[[Any], Any], kind: type[Exception], words: str) -> None:
    for f in (call, fusec.jit(call)):
        with pytest.raises(kind, match=words):
            f(KEY)


def test_generators_that_are_arguments() -> None:
    def program(rng: Any, other: Any, x: Any, n: int) -> Any:
        x = x * rng.random() + rng.normal(0.0, x, size=3)
        return x, other.integers(10, size=n), rng.random(size=(2, 2))

    compiled, x = fusec.jit(program), np.arange(3.0)
    for seed in range(4):
        rngs = [np.random.default_rng(seed + k) for k in (0, 1, 0, 1)]
        for _ in range(2):
            got, want = compiled(rngs[0], rngs[1], x, 4), program(rngs[2], rngs[3], x, 4)
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b)
    (trace,) = compiled.traces
    assert trace.hits <= 1  # any of a kind is answered by the recent plan
    same = np.random.default_rng(3)
    compiled(same, same, x, 4)
    alone = weakref_of_bits(compiled, x)
    gc.collect()
    assert alone() is None  # no plan keeps one
    assert compiled.trace_count == 2


def weakref_of_bits(compiled: Any, x: Any) -> Any:
    class Bits(np.random.PCG64):
        pass

    bits = Bits(0)
    compiled(np.random.Generator(bits), np.random.Generator(bits), x, 4)
    return weakref.ref(bits)


def test_generators_of_another_kind() -> None:
    compiled = fusec.jit(lambda rng: rng.normal(size=2))
    for make in (np.random.PCG64, np.random.MT19937, np.random.PCG64, np.random.SFC64):
        mine, numpys = np.random.Generator(make(5)), np.random.Generator(make(5))
        for _ in range(2):
            np.testing.assert_array_equal(compiled(mine), numpys.normal(size=2))
    np.testing.assert_array_equal(
        compiled(np.random.RandomState(1)), np.random.RandomState(1).normal(size=2))
    assert compiled.trace_count == 4
