"""Functions to differentiate: the benchmark's programs, programs in an order, and ADBench's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

import fusec
from fusec.core.code_roles import AS_USERS

from ..measuring.program import Program
from ..measuring.stats import count
from ..peers import peer_jax
from ..peers.other_numpy import with_numpy
from ..programs import all_programs
from . import adbench, jax_loops, jax_twins, sweeps

FUSEC_ROLE = AS_USERS
Twin = Callable[..., Any]
PROGRAMS, SEQUENTIAL, ADBENCH = "The benchmark's programs", "In an order, in place", "ADBench"
LOOPS = "In an order, for JAX with the same loops"


@dataclass(frozen=True)
class GradientCase:
    """``f(*args)`` and ``derivative(*args)`` in fusec; ``twins()`` are the same in JAX, not jitted.

    ``static``: the arguments that are numbers of iterations, which JAX compiles in.
    """

    group: str
    name: str
    size: str
    f: Callable[..., Any]
    derivative: Callable[..., Any]
    args: tuple[Any, ...]
    twins: Callable[[], tuple[Twin, Twin]]
    static: tuple[int, ...] = ()


# --- the benchmark's programs -------------------------------------------------------------------


def squares(f: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of squares of all floats that ``f`` returns, for NumPy's arrays and JAX's."""

    def total(*args: Any) -> Any:
        results = f(*args)
        results = results if isinstance(results, tuple) else (results,)
        return sum((y * y).sum() for y in results if y.dtype.kind == "f")

    return total


def of_program(program: Program, size: int) -> GradientCase:
    """By all arrays of floats that the program takes."""
    args = program.make_args(size, "float64", 0)
    numbers = tuple(n for n, x in enumerate(args)
                    if isinstance(x, np.ndarray) and x.dtype.kind == "f")

    def twins() -> tuple[Twin, Twin]:
        import jax
        import jax.numpy as jnp

        own = peer_jax.FUNCTIONS.get(program.name)
        f = squares(own() if own else with_numpy(program.function, jnp))
        return f, jax.grad(f, numbers)

    f = squares(program.function)
    return GradientCase(PROGRAMS, program.name, count(size), f, fusec.grad(f, numbers), args, twins)


# --- the others ---------------------------------------------------------------------------------


def loss(
    group: str, name: str, size: str, f: Callable[..., Any], args: tuple[Any, ...],
    numbers: tuple[int, ...] = (0,), static: tuple[int, ...] = (),
) -> GradientCase:
    made = (jax_loops.LOOPS if group == LOOPS else jax_twins.TWINS)[f.__name__]

    def twins() -> tuple[Twin, Twin]:
        import jax

        twin = made()
        return twin, jax.grad(twin, numbers)

    return GradientCase(group, name, size, f, fusec.grad(f, numbers), args, twins, static)


def positive(rng: np.random.Generator, n: int) -> np.ndarray:
    a = rng.random((n, n))
    return a @ a.T / n + np.eye(n)


def in_an_order(rng: np.random.Generator, n: int) -> list[GradientCase]:
    """At sizes that grow with ``n``."""
    def case(f: Any, size: str, *args: Any, **more: Any) -> GradientCase:
        return loss(SEQUENTIAL, f.__name__, size, f, args, **more)

    return [
        case(sweeps.seidel, f"{n} x {n}, 5 sweeps", rng.random((n, n)), 5, static=(1,)),
        case(sweeps.adi, f"{n} x {n}, 10 steps", rng.random((n, n)), 0.3, 10, static=(2,)),
        case(sweeps.lu, f"{n}", positive(rng, n)),
        case(sweeps.cholesky, f"{n}", positive(rng, n)),
        case(sweeps.durbin, f"{4 * n}", 0.1 / n * rng.random(4 * n)),
        case(sweeps.soft_dtw, f"{2 * n} x {2 * n}", rng.random(2 * n), rng.random(2 * n),
             numbers=(0, 1)),
    ]


def with_the_same_loops(rng: np.random.Generator, n: int) -> list[GradientCase]:
    """Some of them again, smaller."""
    return [
        loss(LOOPS, "seidel", f"{n} x {n}, 5 sweeps", sweeps.seidel, (rng.random((n, n)), 5),
             static=(1,)),
        loss(LOOPS, "cholesky", f"{n}", sweeps.cholesky, (positive(rng, n),)),
        loss(LOOPS, "soft_dtw", f"{n} x {n}", sweeps.soft_dtw, (rng.random(n), rng.random(n)),
             (0, 1)),
    ]


def of_adbench(rng: np.random.Generator, n: int) -> list[GradientCase]:
    """With data that grow with ``n``."""
    mixture = adbench.mixture_args(rng, 10 * n, 10, 25)
    memory = adbench.memory_args(rng, 10 * n, 2, 14)
    return [
        loss(ADBENCH, "Gaussian mixture", f"{10 * n} points, d 10, k 25", adbench.mixture, mixture,
             (0, 1, 2, 3)),
        _bundle(rng, 300 * n),
        loss(ADBENCH, "LSTM", f"{10 * n} characters, 2 layers", adbench.memory, memory, (0, 1, 2)),
        _hand(rng, 5 * n),
    ]


def _bundle(rng: np.random.Generator, n: int) -> GradientCase:
    def twins() -> tuple[Twin, Twin]:
        import jax.numpy as jnp

        return with_numpy(adbench.reprojection, jnp), jax_twins.TWINS["reprojection_blocks"]()

    return GradientCase(
        ADBENCH, "bundle adjustment (Jacobian)", f"{n} observations", adbench.reprojection,
        fusec.jit(adbench.reprojection_blocks), adbench.reprojection_args(rng, n, 50, n // 4),
        twins)


def _hand(rng: np.random.Generator, n: int) -> GradientCase:
    def twins() -> tuple[Twin, Twin]:
        import jax

        twin = jax_twins.TWINS["skin"]()
        return twin, jax.jacfwd(twin)

    return GradientCase(ADBENCH, "hand tracking (Jacobian)", f"{n} points, 26 angles", adbench.skin,
                        fusec.jacobian(adbench.skin), adbench.skin_args(rng, n), twins)


def all_cases(names: Sequence[str] = (), is_quick: bool = False) -> list[GradientCase]:
    """The cases of these names, or all; small ones where they are only to be looked at quickly."""
    rng = np.random.default_rng(0)
    # Mandelbrot's result is an integer, whose gradient is 0.
    programs = [p for p in all_programs() if p.name != "mandelbrot"]
    found = [of_program(p, size) for p in programs
             for size in (p.quick_sizes[:1] if is_quick else p.quick_sizes)]
    found += in_an_order(rng, 20 if is_quick else 100)
    found += with_the_same_loops(rng, 10 if is_quick else 40)
    found += of_adbench(rng, 10 if is_quick else 100)
    return [case for case in found if not names or case.name in names]


def leaves(tree: Any) -> list[np.ndarray]:
    """Copies, for JAX's arrays are read-only."""
    return [np.array(x) for x in optree.tree_leaves(tree)]
