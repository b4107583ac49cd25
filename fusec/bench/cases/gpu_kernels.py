"""Functions of one kernel each, for which an H200 was profiled: `gpu_figures` counts their
instructions.  Arrays are of the sizes that were measured; nothing reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.core.code_roles import AS_USERS
from fusec.core.records import dataclass

FUSEC_ROLE = AS_USERS


@dataclass(frozen=True)
class KernelCase:
    """A function, and the shapes of its arguments; those of ``indices`` are of integers."""

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    indices: frozenset[int] = frozenset()

    def args(self, dtype: str) -> list[np.ndarray]:
        """Arrays without contents."""
        return [np.empty(shape, np.int64 if number in self.indices else dtype)
                for number, shape in enumerate(self.shapes)]


def double_plus_1(x: np.ndarray) -> Any:
    return x * 2 + 1


def exp_sin_log(x: np.ndarray) -> Any:
    return np.exp(-x) * np.sin(x) + np.log(x)


def softmax_of_rows(x: np.ndarray) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x: np.ndarray) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)


def argmax_of_rows(x: np.ndarray) -> Any:
    return x.argmax(axis=1)


def cumsum_of_rows(x: np.ndarray) -> Any:
    return np.cumsum(x, axis=1)


def transposed_sum(x: np.ndarray, y: np.ndarray) -> Any:
    return x + 2 * y.T


def five_points(a: np.ndarray) -> Any:
    return a[1:-1, 1:-1] + 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


def pairwise_distances(x: np.ndarray, y: np.ndarray) -> Any:
    d = x[:, None, :] - y[None, :, :]
    return np.exp(-(d * d).sum(axis=2))


def nearest_centre(x: np.ndarray, c: np.ndarray) -> Any:
    d = x[:, None, :] - c[None, :, :]
    return (d * d).sum(axis=2).argmin(axis=1)


def sums_of_columns(x: np.ndarray) -> Any:
    return x.sum(axis=0)


def scatter_add(sums: np.ndarray, places: np.ndarray, x: np.ndarray) -> Any:
    np.add.at(sums, places, x)
    return sums


CASES = (
    KernelCase("double_plus_1", double_plus_1, ((200_000_000,),)),
    KernelCase("exp_sin_log", exp_sin_log, ((20_000_000,),)),
    KernelCase("softmax 8192 x 4096", softmax_of_rows, ((8192, 4096),)),
    KernelCase("softmax 131072 x 128", softmax_of_rows, ((131_072, 128),)),
    KernelCase("layer_norm 16384 x 1024", layer_norm, ((16_384, 1024),)),
    KernelCase("argmax 65536 x 512", argmax_of_rows, ((65_536, 512),)),
    KernelCase("cumsum 16384 x 4096", cumsum_of_rows, ((16_384, 4096),)),
    KernelCase("x + 2 y.T 8192 x 8192", transposed_sum, ((8192, 8192), (8192, 8192))),
    KernelCase("five_points 8192 x 8192", five_points, ((8192, 8192),)),
    KernelCase("pairwise 8192 x 8192 x 3", pairwise_distances, ((8192, 3), (8192, 3))),
    KernelCase("nearest of 10 centres", nearest_centre, ((100_000, 2), (10, 2))),
    KernelCase("columns 65536 x 512", sums_of_columns, ((65_536, 512),)),
    KernelCase("columns 1048576 x 32", sums_of_columns, ((1_048_576, 32),)),
    KernelCase("scatter of 10^7 into 10^5", scatter_add,
               ((100_000,), (10_000_000,), (10_000_000,)), frozenset({1})),
)
