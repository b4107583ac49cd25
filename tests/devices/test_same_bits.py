"""Programs over several devices give the bits of one; `random_placements` is the whole campaign."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from random_placements import REFUSALS, Case, bits, fuzzed, placements_of, published

import fusec

# Found by the campaign: a reshape that is a result, sizes that another device knows, empty results.
FOUND = ("164", "352", "w158", "w334", "299")
PUBLISHED = {case.name: case for case in published()}


def check(case: Case, each: int) -> None:
    try:
        placements = placements_of(case)
    except REFUSALS:
        pytest.skip("refused on one device, too")
    if isinstance(placements.error, REFUSALS):
        pytest.skip("refused on one device, too")
    random = Random(case.name)
    for devices in (2, 4):
        placements.check(each, devices, random)


@pytest.mark.parametrize("seed", [*FOUND, *map(str, range(20)), *(f"c{n}" for n in range(20)),
                                  *(f"w{n}" for n in range(10)), *(f"s{n}" for n in range(12))])
def test_fuzzed_programs(seed: str) -> None:
    check(fuzzed(seed), 2)


@pytest.mark.parametrize("name", sorted(PUBLISHED)[::6])
def test_published_programs(name: str) -> None:
    check(PUBLISHED[name], 1)


# ------------------------------------------------------------------ scopes, inside of loops as well


def on(number: int) -> Any:
    return fusec.device(f"CPU:{number % fusec.config.logical_cpu_devices}")


def one_product_in_two_sums(x, y):
    with on(0):
        a = x * y + 1.5
    with on(1):
        b = x * y - y
    return a, b


def a_product_that_another_device_sums(x, y):
    with on(0):
        a = x * y + 1.5
    with on(1):
        b = np.sin(y * x)
    return a, b


def the_same_sum_twice(x, y):
    with on(0):
        a = x * y + 1.5
    with on(1):
        b = x * y + 1.5
    return a, b, a - b


def conjugate_gradients(x, y):
    a = np.exp(-np.abs(x[:, None] - y[None]))
    a, solution, r = a @ a.T + len(x) * np.eye(len(x)), np.zeros_like(y), y
    p, rr, k = r, r @ r, 0
    while rr > 1e-20 and k < 50:
        with on(1):
            ap = a @ p
        step = rr / (p @ ap)
        with on(0):
            solution = solution + step * p
        with on(1):
            r = r - step * ap
        rr, last, k = r @ r, rr, k + 1
        p = r + rr / last * p
    return solution, k


def is_divided(trace: Any) -> bool:
    """Whether several devices have a part in it, or in a loop of it."""
    return trace.build.call_plan.is_partitioned or any(
        "several devices" in loop.reason for loop in trace.control)


@pytest.mark.parametrize("program", [
    one_product_in_two_sums, a_product_that_another_device_sums, the_same_sum_twice,
    conjugate_gradients])
def test_scopes_do_not_decide_how_is_rounded(program: Callable[..., Any]) -> None:
    x, y = np.random.default_rng(0).random((2, 40))
    seen = []
    for devices in (1, 2):
        with fusec.config.override(logical_cpu_devices=devices):
            f = fusec.jit(program)
            seen.append(bits(f(x, y)))
            assert is_divided(f.traces[-1]) == (devices > 1)
    assert seen[0] == seen[1]


def scattered(salt: int, devices: int) -> Callable[[Any], str | None]:
    """A device function that puts nodes anywhere, those in branches and loops too."""
    def place(node: Any) -> str | None:
        number = zlib.crc32(f"{salt} {node.name} {node.loc and node.loc.line}".encode())
        return None if number % 4 == 0 else f"CPU:{(number >> 3) % devices}"

    return place


@pytest.mark.parametrize("seed", ["c1000", "c1003", "c1009", "w1002", "1002"])
def test_fuzzed_programs_with_scattered_nodes(seed: str) -> None:
    case = fuzzed(seed)
    try:
        want = placements_of(case)
    except REFUSALS:
        pytest.skip("refused on one device, too")
    with fusec.config.override(logical_cpu_devices=2), fusec.device(scattered(1, 2)):
        got, error = want.run(2, None)
    assert (type(error), str(error)) == (type(want.error), str(want.error))
    assert got == want.want and want.divided
