"""Gradients of the programs: saved themselves, and taken of programs that were loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optree
import pytest

import fusec

from .test_saved_programs import CASES, REFUSED, Case, difference, saved

# The list in docs/export.md: of gradients, with words of each error.
NOT_ADMITTED = {
    "lu_solve": "is not proven to be the size", "csr_product": "is not proven to lie in",
    "crr_american_put": "is not proven to lie in", "haar": "is not proven to lie in",
    "longstaff_schwartz": "is not proven to be the size",
    "lomb_scargle": "is not proven to be the size",
}

NO_FLOATS = frozenset((  # results without floats, or that end a derivative: no gradient
    "boids", "convective_adjustment", "cavity_flow", "gray_scott", "ising_single",
    "bench mandelbrot float64"))


def energy(f: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of the squares of all floats and complex numbers among the results."""
    def total(*args: Any) -> Any:
        parts = [np.asarray(x) for x in optree.tree_leaves(f(*args))]
        return sum(np.sum(np.abs(x) ** 2) for x in parts if x.dtype.kind in "fc")

    return total


def is_float(x: Any) -> bool:
    return type(x) is float or getattr(x, "dtype", np.dtype(int)).kind == "f"


def float_argument(case: Case) -> int | None:
    """The first array of floats among the arguments, or else number."""
    arguments = case.inputs()
    numbers = [i for i, x in enumerate(arguments) if is_float(x)]
    return next((i for i in numbers if np.ndim(arguments[i])), numbers[0] if numbers else None)


FLOATS = [c for c in CASES if c.name not in REFUSED and float_argument(c) is not None and not (
    c.name.startswith("bench") and c.name.endswith("32"))]


@pytest.mark.repeats
@pytest.mark.parametrize("case", FLOATS, ids=lambda case: case.name)
def test_gradients(case: Case, tmp_path: Path) -> None:
    number = float_argument(case)
    if case.name in NO_FLOATS:
        with pytest.raises((TypeError, fusec.UnsupportedError)):
            fusec.grad(energy(case.function), number).concrete(*case.inputs())
        return
    concrete = fusec.grad(energy(case.function), number).concrete(*case.inputs())
    with np.errstate(all="ignore"):
        want = concrete(*case.inputs())
        if case.name in NOT_ADMITTED:
            with pytest.raises(ValueError, match=NOT_ADMITTED[case.name]):
                fusec.save(tmp_path / "g", {"g": concrete})
        else:
            fusec.save(tmp_path / "g", {"g": concrete})
            assert difference(fusec.load(tmp_path / "g").g(*case.inputs()), want) == ""
        saved(case, tmp_path / "m")
        f = fusec.load(tmp_path / "m").f
        assert difference(fusec.grad(energy(f), number)(*case.inputs()), want) == ""


def triangle(x: Any) -> Any:
    """A loop in a loop."""
    total = x * 0.0
    for i in range(len(x)):
        for j in range(i + 1):
            total[i] = total[i] * x[j] + np.sin(x[j])
    return total


def test_a_loop_in_a_loop(tmp_path: Path) -> None:
    """Gradients find loops by name, those inside of others too."""
    x = np.linspace(0.1, 0.9, 20)
    fusec.save(tmp_path / "m", {
        "f": fusec.jit(triangle).concrete(x),
        "g": fusec.grad(energy(triangle)).concrete(x)})
    program, want = fusec.load(tmp_path / "m"), fusec.grad(energy(triangle))(x)
    assert difference(program.g(x), want) == ""
    assert difference(fusec.grad(energy(program.f))(x), want) == ""
    graph = program.g.graph
    assert sum(node.op == "Loop" for node in graph.nodes) == 2  # none is run twice


def heads(x: Any, n: Any) -> Any:
    total = 0.0
    for i in range(n):
        total += np.sum(np.cos(x[:i])) * x[i]
    return total


def test_sizes_of_data_in_both_passes(tmp_path: Path) -> None:
    """The backward pass computes them again: each graph has symbols of its own."""
    x, n = np.linspace(0.1, 0.9, 20), np.int64(15)
    gradient = fusec.grad(heads)
    fusec.save(tmp_path / "m", {
        "f": fusec.jit(heads).concrete(x, n), "g": gradient.concrete(x, n)})
    program, want = fusec.load(tmp_path / "m"), gradient(x, n)
    assert difference(program.g(x, n), want) == ""
    assert difference(fusec.grad(program.f)(x, n), want) == ""
