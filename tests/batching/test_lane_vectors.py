"""Lanes that run in vectors with masks: the bits and exceptions of lanes that run one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from lane_programs import PROGRAMS, LaneProgram

import fusec
from fusec.codegen.cpu.lanes import choice, vector_size
from fusec.codegen.cpu.loops import program
from fusec.codegen.machine_code.llvm import compile_ir

LOOPS = [p for p in PROGRAMS if "<lambda>" not in p.f.__qualname__ and p.name != "recurrence"]
ROOT = np.random.default_rng(41)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    fusec.clear_caches()


def in_both_ways(
    monkeypatch: pytest.MonkeyPatch, f: Callable[..., Any], args: list[Any]
) -> tuple[Any, Any, str]:
    """Results of lanes one by one, in vectors, and how `fusec.explain` tells the second."""
    found = []
    for forced in (False, True):
        monkeypatch.setattr(choice, "forced", forced)
        fusec.clear_caches()
        given = [x.copy() for x in args]
        lanes = fusec.vmap(f)
        found.append((lanes(*given), given))
    text = str(fusec.explain(lanes, *[x.copy() for x in args]))
    return *found, text


def assert_same_bits(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, tuple | list):
        for x, y in zip(one, other, strict=True):
            assert_same_bits(x, y)
    else:
        assert one.dtype == other.dtype and one.tobytes() == other.tobytes()


@pytest.mark.parametrize("program", LOOPS, ids=lambda p: p.name)
def test_programs_of_the_corpus(monkeypatch: pytest.MonkeyPatch, program: LaneProgram) -> None:
    one, together, _ = in_both_ways(monkeypatch, program.f, program.arguments(37, frozenset()))
    assert_same_bits(one, together)


def branches_in_loops(x: Any, n: Any) -> Any:
    total, k = 0.0, 0
    while k < n:
        if x > 0.5:
            x = x * 0.7 - 0.1
            if x < 0.2:
                total += np.sin(x)
            else:
                total -= 1.0
        else:
            x = x + 0.25
            if k % 7 == 3:
                k += 2
        total += x
        k += 1
        if total > 40.0:
            break
    return total, k


def loop_in_loop(x: Any, n: Any) -> Any:
    found = 0
    for a in range(n):
        y, steps = x + a, 0
        while y > 1.0 and steps < 50:
            y = y / 1.7 - 0.01 * a
            steps += 1
        found += steps
        if found > 200:
            return -found
    return found


def two_loops(x: Any, n: Any) -> Any:
    k = 0
    while x > 0.1:
        x *= 0.8
        k += 1
    y = x + n
    while y > 3.0:
        y = np.sqrt(y)
        k += 10
    return x, y, k


def before_and_after(x: Any, n: Any) -> Any:
    start = np.exp(-x) if n > 4 else np.log1p(x)
    y = start
    while y < 20.0:
        y = y * 1.5 + start
    z = np.cos(y) if y > 25.0 else y * start
    return z + n, start


def integers(x: Any, n: Any) -> Any:
    a, b = n + 1000, n * 7 + 3
    while b:
        a, b = b, a % b
    q = (n * 12345 - 77) // (n + 1)
    return a, q, x > 0.5


def of_floats(x: Any, n: Any) -> Any:
    a = np.float32(x)
    count = np.int32(0)
    while a > np.float32(0.01):
        a = a * np.float32(0.75)
        count += np.int32(1)
    return a, count, x % 0.3


def rows(x: Any, n: Any) -> Any:
    k = 0
    while k < len(x) and x[k] < 0.9:
        k += 1
    return k, x[n]


SHAPED = [branches_in_loops, loop_in_loop, two_loops, before_and_after, integers, of_floats]


@pytest.mark.parametrize("count", [1, 37])
@pytest.mark.parametrize("f", SHAPED)
def test_control_flow_of_all_kinds(
    monkeypatch: pytest.MonkeyPatch, f: Callable[..., Any], count: int
) -> None:
    args = [ROOT.uniform(0, 2, count), ROOT.integers(0, 60, count)]
    (one, _), (together, _), text = in_both_ways(monkeypatch, f, args)
    assert_same_bits(one, together)
    assert "16 lanes at a time in vectors with masks" in text
    np.testing.assert_allclose(one[0] if isinstance(one, tuple) else one, [
        y[0] if isinstance(y := f(x, n), tuple) else y for x, n in zip(*args, strict=True)])


@pytest.mark.parametrize("f", SHAPED)
def test_wide_vectors_have_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, f: Callable[..., Any]
) -> None:
    monkeypatch.setattr(vector_size, "has_feature", lambda name: True)
    monkeypatch.setattr(vector_size, "FUNCTIONS", ())
    args = [ROOT.uniform(0, 2, vector_size.MANY), ROOT.integers(0, 60, vector_size.MANY)]
    one, together, text = in_both_ways(monkeypatch, f, args)
    assert_same_bits(one, together)
    assert "32 lanes at a time in vectors with masks" in text
    text = in_both_ways(monkeypatch, f, [x[1:] for x in args])[2]
    assert "16 lanes at a time in vectors with masks" in text


def test_the_loop_that_replaces_ended_lanes_keeps_what_others_have(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = ROOT.integers(0, 300, 1000)
    lengths[::50] = 20_000

    def steps(n: Any, x: Any) -> Any:
        y, own = x, np.sin(x)
        k = 0
        while k < n:
            y = 0.5 * y + own
            k += 1
        return y, own, k

    (one, _), (together, _), _ = in_both_ways(monkeypatch, steps, [lengths, ROOT.normal(size=1000)])
    assert_same_bits(one, together)
    np.testing.assert_array_equal(together[2], lengths)


def test_indices_that_lanes_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    (one, _), (together, _), _ = in_both_ways(
        monkeypatch, rows, [ROOT.uniform(0, 1, (90, 12)), ROOT.integers(-12, 12, 90)])
    assert_same_bits(one, together)


@pytest.mark.parametrize("bad", [[77], [30, 31, 77], [0], [99]])
def test_the_first_lane_that_fails_is_named(
    monkeypatch: pytest.MonkeyPatch, bad: list[int]
) -> None:
    monkeypatch.setattr(choice, "forced", True)
    fusec.clear_caches()
    lengths = ROOT.integers(0, 12, 100)
    lengths[bad] = [500 + k for k in range(len(bad))]

    def last(x: Any, n: Any) -> Any:
        k, total = 0, 0.0
        while k < n:
            total += x[k]
            k += 1
        return total

    with pytest.raises(IndexError, match="index 12 is out of bounds") as caught:
        fusec.vmap(last)(ROOT.normal(size=(100, 12)), lengths)
    assert caught.value.__notes__[-1] == f"in lane {bad[0]}"


def test_costs_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    def gcd(a: Any, b: Any) -> Any:
        while b:
            a, b = b, a % b
        return a

    numbers = [ROOT.integers(1, 1000, 50), ROOT.integers(1, 1000, 50)]
    text = str(fusec.explain(fusec.vmap(gcd), *numbers))
    assert "a lane at a time (at " in text and "in vectors of 16 with masks at" in text


def test_many_functions_stay_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all of them inlined LLVM took a second for these."""
    texts = []

    def noted(text: str, *rest: Any) -> Any:
        texts.append(text)
        return compile_ir(text, *rest)

    monkeypatch.setattr(program, "compile_ir", noted)

    def waves(x: Any, n: Any) -> Any:
        k = 0
        while k < n:
            for shift in (*range(20),):
                x = np.sin(x + shift)
            k += 1
        return x

    args = [ROOT.uniform(0, 2, 37), ROOT.integers(0, 9, 37)]
    (one, _), (together, _), _ = in_both_ways(monkeypatch, waves, args)
    assert_same_bits(one, together)
    alone, vectors = (sum(line.endswith("noinline") for line in t.splitlines()) for t in texts[:2])
    assert (alone, vectors) == (0, 60)


def test_a_long_program_runs_a_lane_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM would take longer for its vectors than anybody waits for a first call."""
    def remainders(x: Any, n: Any) -> Any:
        k = 0
        while k < n:
            for m in (*range(130),):
                x = (x + 3.0) % (m + 0.5)
            k += 1
        return x

    monkeypatch.setattr(choice, "forced", None)
    text = str(fusec.explain(fusec.vmap(remainders), ROOT.uniform(0, 2, 7), ROOT.integers(0, 9, 7)))
    assert "for whose vectors LLVM would take over 2 s" in text
