"""The cases of the suite for GPUs: small functions here, and the benchmark programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from fusec.core.code_roles import AS_USERS
from fusec.core.records import dataclass

from ..measuring.program import Program

FUSEC_ROLE = AS_USERS
SIZES = (1_000, 100_000, 10_000_000, 100_000_000)
QUICK_SIZES = (1_000, 20_000)


@dataclass(frozen=True)
class GpuCase:
    """One function on arguments of one size."""

    name: str
    size: int
    dtype: str
    function: Callable[..., Any]
    make_args: Callable[[], tuple[Any, ...]]
    elementwise: bool = False


def chain_of_2(x: np.ndarray, y: np.ndarray) -> Any:
    return x * y + 1


def chain_of_10(x: np.ndarray, y: np.ndarray) -> Any:
    z = x * 2 - y
    return np.abs(z) * x + np.maximum(z, y) * 0.5 - z / (y + 3)


def transcendental(x: np.ndarray, y: np.ndarray) -> Any:
    return np.exp(-x * x) * np.sin(y) + np.log(x + 1)


def total(x: np.ndarray, y: np.ndarray) -> Any:
    return (x * y).sum()


def sums_of_rows(x: np.ndarray, y: np.ndarray) -> Any:
    return (x * y).reshape(-1, 1000).sum(axis=1)


def sums_of_columns(x: np.ndarray, y: np.ndarray) -> Any:
    return (x * y).reshape(-1, 1000).sum(axis=0)


def stencil(x: np.ndarray, y: np.ndarray) -> Any:
    a = x.reshape(-1, 1000)
    return a[1:-1, 1:-1] + 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


ELEMENTWISE = (chain_of_2, chain_of_10, transcendental)
OTHERS = (total, sums_of_rows, sums_of_columns, stencil)


def pair(size: int, dtype: str) -> tuple[Any, ...]:
    """Two vectors of numbers between 0 and 1."""
    rng = np.random.default_rng(0)
    return tuple(rng.random(size, np.dtype(dtype).type) for _ in range(2))


def cases(programs: Sequence[Program], dtypes: Sequence[str], quick: bool) -> Iterator[GpuCase]:
    """The functions at every size, the programs at their largest."""
    sizes = QUICK_SIZES if quick else SIZES
    for dtype in dtypes:
        for size in sizes:
            for function in ELEMENTWISE:
                yield GpuCase(function.__name__, size, dtype, function, partial(pair, size, dtype),
                              elementwise=True)
        for function in OTHERS:
            size = sizes[-1]
            yield GpuCase(function.__name__, size, dtype, function, partial(pair, size, dtype))
        for program in programs:
            size = program.quick_sizes[0] if quick else program.sizes[-1]
            yield GpuCase(program.name, size, dtype, program.function,
                          partial(program.make_args, size, dtype, 0), program.elementwise)
