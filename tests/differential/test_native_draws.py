"""Draws of native loops, made by NumPy's own C functions: values and states are NumPy's, and no
Python runs."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import is_of_one_device
from test_random_draws import check, same, state

import fusec
from fusec.ops.calls.drawings import GENERATOR, LEGACY, every, find
from fusec.runtime import draws

BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


def is_native(compiled: Any) -> bool:
    """Whether its loops call no Python; other devices run them step by step."""
    concrete = compiled.traces[0]
    return not is_of_one_device(concrete) or all(
        c.is_native and "Python" not in c.reason for c in concrete.control)


def made(bits: str, seed: int = 5) -> np.random.Generator:
    return np.random.Generator(getattr(np.random, bits)(seed))


# --- every row, for every bit generator ---------------------------------------------------------


def places(rng: Any, n: int) -> Any:
    kept = np.zeros((n, 13))
    for i in range(n):
        x = i * 0.25
        kept[i] = [
            rng.random(), rng.standard_normal(), rng.standard_exponential(), rng.standard_cauchy(),
            rng.uniform(-x - 1, 3.0), rng.normal(x, 1 + x), rng.exponential(1 + x),
            rng.laplace(x), rng.gumbel(x, 2.0), rng.logistic(x, scale=1 + x),
            rng.lognormal(sigma=0.5), rng.rayleigh(1 + x), rng.uniform()]
    return kept


def shapes(rng: Any, n: int) -> Any:
    kept = np.zeros((n, 14))
    for i in range(n):
        x = 0.2 + i * 0.25
        kept[i] = [
            rng.standard_gamma(x), rng.gamma(x, 2.0), rng.beta(x, 0.7), rng.chisquare(x),
            rng.f(x, 2.0), rng.standard_t(x), rng.pareto(x), rng.weibull(x), rng.power(x),
            rng.wald(x, 1.0), rng.vonmises(0.0, x), rng.poisson(5 * x),
            rng.geometric(1 / (2 + x)), rng.poisson()]
    return kept


def narrow(rng: Any, n: int) -> Any:
    kept = np.zeros((n, 4), np.float32)
    counts = np.zeros((n, 3), np.int64)
    for i in range(n):
        kept[i, 0] = rng.random(dtype=np.float32)
        kept[i, 1] = rng.standard_normal(dtype="f4")
        kept[i, 2:] = rng.standard_exponential(2, np.float32)
        counts[i, 0] = rng.integers(7)
        counts[i, 1] = rng.integers(-i, i, endpoint=True)
        counts[i, 2] = rng.integers(0, 1 << 40)
    return kept, counts


def many(rng: Any, n: int) -> Any:
    total, counts, bits = np.zeros(5), np.zeros((2, 3), np.int64), np.zeros(7, np.uint8)
    for i in range(n):
        total += rng.normal(i, 2.0, 5) * rng.random(5) + rng.standard_exponential(size=(5,))
        counts += rng.integers(0, 10 + i, (2, 3)) + rng.integers(-3, 2, size=(2, 3), dtype=np.int32)
        bits += rng.integers(0, 2, 7, dtype=np.uint8) + rng.integers(0, 9, 7, np.uint8)
    return total, counts, bits, rng.integers(0, 100, dtype=np.int16)


@pytest.mark.parametrize(("f", "kinds"), [
    (places, BIT_GENERATORS[:1]), (shapes, BIT_GENERATORS[:1]), (narrow, BIT_GENERATORS),
    (many, BIT_GENERATORS)])
def test_every_bit_generator(f: Callable[..., Any], kinds: tuple[str, ...]) -> None:
    for bits in kinds:
        assert is_native(check(f, made(bits), 40, calls=2)), bits


def legacy(rng: Any, n: int) -> Any:
    kept = np.zeros((n, 10))
    counts = np.zeros(4, np.int64)
    for i in range(n):
        kept[i] = [
            rng.random(), rng.random_sample(), rng.rand(), rng.uniform(-i, 4.0), rng.randn(),
            rng.normal(i, 2.0), rng.standard_normal(), rng.exponential(1.0 + i),
            rng.standard_exponential(), rng.normal()]
        if i % 3 == 0:  # the second number of a pair is kept from one call to the next
            kept[i, :3] = rng.randn(3)
        counts += rng.randint(0, 5 + i, 4) + rng.randint(9)
    return kept, counts


def test_the_legacy_generator() -> None:
    assert is_native(check(legacy, np.random.RandomState(3), 40))
    assert is_native(check(legacy, np.random.RandomState(np.random.PCG64(3)), 41))


def test_the_functions_of_the_module() -> None:
    def f(n: int) -> float:
        total = 0.0
        for _ in range(n):
            total += np.random.normal() * np.random.rand() + np.random.randint(3)
        return total

    compiled = fusec.jit(f)
    found = []
    for g in (f, compiled):
        np.random.seed(3)
        found.append([(g(n), state(np.random.mtrand._rand)) for n in (31, 32, 33)])
    assert found[0] == found[1] and is_native(compiled)


def test_many_numbers_of_the_ziggurats() -> None:
    def f(rng: Any, n: int) -> Any:
        kept = np.zeros((n, 2))
        for i in range(n):
            kept[i, 0] = rng.standard_normal()
            kept[i, 1] = rng.standard_exponential()
        return kept

    compiled = fusec.jit(f)
    for bits in BIT_GENERATORS[:3]:
        rng, twin = made(bits), made(bits)
        next_normal, next_exponential = twin.standard_normal, twin.standard_exponential
        n = 20_000
        expected = [x() for _ in range(n) for x in (next_normal, next_exponential)]
        np.testing.assert_array_equal(compiled(rng, n).ravel(), expected)
        assert state(rng) == state(twin)


@pytest.mark.parametrize("kind", [GENERATOR, LEGACY])
def test_every_row_is_checked_against_this_numpy(kind: str) -> None:
    make: Any = np.random.default_rng if kind == GENERATOR else np.random.RandomState
    for drawing in every():
        if kind in drawing.functions:
            assert draws.reason(make(5), drawing) == "", drawing


# --- what the method looks at -------------------------------------------------------------------


def test_arguments_that_the_method_looks_at() -> None:
    def f(rng: Any, scales: Any) -> Any:
        total = 0.0
        for s in scales:
            total += rng.normal(0.0, s) + rng.exponential(s) + rng.random()
        return total

    scales = np.array([1.0, 0.0, 2.0] * 12)
    compiled = check(f, np.random.default_rng(4), scales)
    for bad in (-1.0, -0.0, np.nan):
        one, two = np.random.default_rng(4), np.random.default_rng(4)
        wrong = np.append(scales, bad)
        try:
            expected = f(one, wrong)
        except ValueError as error:
            with pytest.raises(ValueError, match=str(error)):
                compiled(two, wrong)
        else:
            same(expected, compiled(two, wrong))
        assert state(one) == state(two)
    if is_of_one_device(compiled.traces[0]):
        text = compiled.traces[0].control[0].reason
        assert "rng.normal (arguments that only the method looks at)" in text


@pytest.mark.parametrize(("draw", "bad", "error"), [
    (lambda rng, x: rng.uniform(-x, x), 1e308, OverflowError),
    (lambda rng, x: rng.uniform(x, 0.0), 1.0, ValueError),
    (lambda rng, x: rng.integers(0, int(x)), 0, ValueError),
    (lambda rng, x: rng.integers(0, int(x), dtype=np.int8), 200, ValueError),
    (lambda rng, x: rng.integers(-int(x), 3, dtype=np.uint8, endpoint=True) if x > 1 else 0, 5,
     ValueError),
    (lambda rng, x: rng.poisson(x), 1e19, ValueError),
    (lambda rng, x: rng.geometric(x / 9), 10, ValueError),
])
def test_an_error_leaves_numpys_state(draw: Any, bad: float, error: type[Exception]) -> None:
    def f(rng: Any, xs: Any) -> Any:
        total = rng.random()
        for x in xs:
            total += rng.random()
            total += draw(rng, x)
        return total

    one, two = np.random.default_rng(4), np.random.default_rng(4)
    xs = np.array([1.0] * 20 + [bad])
    with pytest.raises(error) as expected:
        f(one, xs)
    with pytest.raises(error) as found:
        fusec.jit(f)(two, xs)
    assert str(found.value).splitlines()[0] == str(expected.value)
    assert state(one) == state(two)


def choices(rng: Any, x: Any, n: int) -> Any:
    total, counts, flags = 0.0, np.zeros(3, np.int64), 0
    for i in range(n):
        total += rng.choice(x) + rng.choice(x[::-2])
        counts += rng.choice(5 + i, 3) + rng.choice(i + 1)
        flags += rng.choice(x > 0.7) + rng.choice(9, replace=True, p=None)
    return total, counts, flags


def weighted(rng: Any, x: Any, n: int) -> Any:
    total = 0.0
    for _ in range(n):
        total += rng.choice(x, p=x / x.sum()) + rng.choice(x, 2).sum() + rng.choice(
            x, replace=False)
    return total


def test_choices() -> None:
    x = np.linspace(0.5, 2.0, 6)
    for bits in BIT_GENERATORS[:2]:
        assert is_native(check(choices, made(bits), x, 40))
    compiled = check(weighted, made("PCG64"), x, 30)
    assert not is_of_one_device(compiled.traces[0]) or not is_native(compiled)


# --- where generators come from -----------------------------------------------------------------


def test_two_generators_and_shared_bits() -> None:
    def f(a: Any, b: Any, n: int) -> Any:
        total = 0.0
        for i in range(n):
            total += a.normal() if i % 3 else b.random() * a.integers(3, 9)
        return total

    compiled = fusec.jit(f)
    for pair in ((made("PCG64"), made("SFC64")), (made("PCG64"), None)):
        a, b = pair
        b = np.random.Generator(a.bit_generator) if b is None else b
        x, y = copy.deepcopy((a, b))
        for n in (30, 31):
            assert f(a, b, n) == compiled(x, y, n)
        assert (state(a), state(b)) == (state(x), state(y))
    assert is_native(compiled)


def made_before(seed: int, n: int) -> float:
    rng, total = np.random.default_rng(seed), 0.0
    for _ in range(n):
        total += rng.normal()
    return total


def made_in_the_loop(seed: int, n: int) -> float:
    total = 0.0
    for i in range(n):
        rng = np.random.default_rng(seed + i)
        total += rng.normal() + rng.random()
    return total


def test_generators_that_the_function_makes() -> None:
    for f in (made_before, made_in_the_loop):
        compiled = fusec.jit(f)
        for seed in (2, 3, 3):
            assert compiled(seed, 40) == f(seed, 40)
        assert is_native(compiled) == (f is made_before or not is_of_one_device(compiled.traces[0]))


class Walker:
    def __init__(self, seed: int) -> None:
        self.rng, self.x = np.random.default_rng(seed), 0.0

    def step(self, n: int) -> float:
        for _ in range(n):
            self.x += self.rng.normal(scale=0.5)
            if self.x * self.x > 9:
                break
        return self.x


def test_a_generator_of_an_attribute() -> None:
    ours, theirs, step = Walker(3), Walker(3), fusec.jit(Walker.step)
    for n in (40, 40, 41):
        assert step(ours, n) == theirs.step(n)
        assert state(ours.rng) == state(theirs.rng)


# --- threads, and a NumPy that draws in another way ---------------------------------------------


def total_of(rng: Any, n: int) -> float:
    total = 0.0
    for _ in range(n):
        total += rng.random()
    return total


def test_threads_take_turns_at_one_generator() -> None:
    rng, twin, n = np.random.default_rng(3), np.random.default_rng(3), 200_000
    compiled = fusec.jit(total_of)
    compiled(rng, n)
    workers = [threading.Thread(target=compiled, args=(rng, n)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for _ in range(500):
        rng.random()
    for worker in workers:
        worker.join()
    twin.bit_generator.advance(4 * n + 500)
    assert state(rng) == state(twin)


def test_a_function_that_is_missing_or_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    monkeypatch.setattr(draws, "_reasons", {})
    monkeypatch.setitem(draws._addresses, "random_standard_normal",
                        draws._found("random_standard_exponential"))
    monkeypatch.delitem(draws._addresses, "random_standard_cauchy", raising=False)
    monkeypatch.setitem(find("standard_cauchy", np.dtype(float)).functions, GENERATOR, "nothing")

    def f(rng: Any, n: int) -> float:
        total = 0.0
        for _ in range(n):
            total += rng.standard_normal() + rng.standard_cauchy() + rng.random()
        return total

    compiled = fusec.jit(f)
    assert compiled(rng, 50) == f(twin, 50) and state(rng) == state(twin)
    if is_of_one_device(compiled.traces[0]):
        reason = compiled.traces[0].control[0].reason
        assert "rng.standard_normal (this NumPy's standard_normal draws in another way)" in reason
        assert "rng.standard_cauchy (this NumPy does not export nothing)" in reason
        assert "rng.random" not in reason
