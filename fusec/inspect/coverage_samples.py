"""Sample calls for the coverage page: arguments that show the code of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Sample = tuple[Callable[..., Any], tuple[Any, ...]]

A = np.arange(12.0).reshape(3, 4) + 1
S = np.arange(9.0).reshape(3, 3) + 4 * np.eye(3)
V = np.arange(6.0) + 1
I = np.arange(6)  # noqa: E741
B = V > 2
T = np.arange(8.0).reshape(2, 2, 2)


def generic_samples(function: Any) -> Iterator[Sample]:
    """Calls that many functions take, the simplest first."""
    def direct(*args: Any) -> Any:
        return function(*args)

    def of_list(*args: Any) -> Any:
        return function(args)

    def with_two(x: Any) -> Any:
        return function(x, 2)

    for args in ((V,), (V, V), (S,), (S, S), (I,), (I, I), (T,), (V, V, V), (S, V)):
        yield direct, args
    for args in ((V, V), (S, S)):
        yield of_list, args
    for x in (V, S, T):
        yield with_two, (x,)


SAMPLES: dict[str, list[Sample]] = {
    "append": [(lambda x: np.append(x, 1.0), (V,))],
    "apply_along_axis": [(lambda x: np.apply_along_axis(np.sum, 0, x), (A,))],
    "apply_over_axes": [(lambda x: np.apply_over_axes(np.sum, x, [0]), (A,))],
    "arange": [(lambda x: np.zeros(3) + np.arange(3) + x, (np.ones(3),))],
    "array_split": [(lambda x: np.array_split(x, 4), (V,))],
    "astype": [(lambda x: np.astype(x, np.float32), (V,))],
    "broadcast_to": [(lambda x: np.broadcast_to(x, (2, 6)), (V,))],
    "can_cast": [(lambda x: np.can_cast(x, np.float32), (V,))],
    "choose": [(lambda x, y: np.choose(x, [y, y]), (I % 2, V))],
    "clip": [(lambda x: np.clip(x, 2.0, 3.0), (V,))],
    "copyto": [(lambda x, y: np.copyto(x, y), (V, V))],
    "cross": [(lambda x, y: np.cross(x, y), (S, S))],
    "linalg.cross": [(lambda x, y: np.linalg.cross(x, y), (S, S))],
    "delete": [(lambda x: np.delete(x, 1), (V,))],
    "digitize": [(lambda x: np.digitize(x, [1, 2]), (V,))],
    "dsplit": [(lambda x: np.dsplit(x, 2), (T,))],
    "einsum": [(lambda x, y: np.einsum("ij,jk->ik", x, y), (S, S))],
    "einsum_path": [
        (lambda x, y: x * len(np.einsum_path("ij,jk->ik", x, y)[0]), (S, S))],
    "from_dlpack": [(lambda x: np.from_dlpack(x) + 1, (V,))],
    "vectorize": [(lambda x: np.vectorize(lambda v: v * 2)(x), (V,))],
    "require": [(lambda x: np.require(x, np.float32, "C") + 1, (V,))],
    "bincount": [(lambda x: np.bincount(x % 4, minlength=4), (I,))],
    "histogram": [(lambda x: np.histogram(x, 5, (0, 9)), (V,))],
    "histogram_bin_edges": [(lambda x: np.histogram_bin_edges(x, 5), (V,))],
    "empty": [(lambda x: np.empty(3) * 0 + x, (np.ones(3),))],
    "expand_dims": [(lambda x: np.expand_dims(x, 0), (V,))],
    "eye": [(lambda x: np.eye(3) + x, (S,))],
    "fill_diagonal": [(lambda x: np.fill_diagonal(x, 1.0), (S,))],
    "full": [(lambda x: np.full(3, x), (2.5,))],
    "full_like": [(lambda x: np.full_like(x, 2.0), (V,))],
    "hsplit": [(lambda x: np.hsplit(x, 2), (A,))],
    "identity": [(lambda x: np.identity(3) + x, (S,))],
    "insert": [(lambda x: np.insert(x, 1, 2.0), (V,))],
    "interp": [(lambda x: np.interp(x, [1, 2], [3, 4]), (V,))],
    "linalg.matrix_power": [(lambda x: np.linalg.matrix_power(x, 3), (S,))],
    "linalg.multi_dot": [(lambda x: np.linalg.multi_dot([x, x, x]), (S,))],
    "linalg.tensorsolve": [(lambda x: np.linalg.tensorsolve(x, x[:, 0]), (S,))],
    "linalg.tensorinv": [(lambda x: np.linalg.tensorinv(x, 1), (S,))],
    "linspace": [(lambda x: np.linspace(0.0, x, 5), (2.5,))],
    "logspace": [(lambda x: np.logspace(0.0, x, 5), (2.5,))],
    "moveaxis": [(lambda x: np.moveaxis(x, 0, 1), (A,))],
    "ones": [(lambda x: np.ones(3) + x, (np.ones(3),))],
    "pad": [(lambda x: np.pad(x, 2, mode="edge"), (V,))],
    "partition": [(lambda x: np.partition(x, 2), (V,))],
    "argpartition": [(lambda x: np.argpartition(x, 2), (V,))],
    "percentile": [(lambda x: np.percentile(x, 30), (V,))],
    "nanpercentile": [(lambda x: np.nanpercentile(x, 30), (V,))],
    "quantile": [(lambda x: np.quantile(x, 0.3), (V,))],
    "nanquantile": [(lambda x: np.nanquantile(x, 0.3), (V,))],
    "piecewise": [(lambda x: np.piecewise(x, [x < 2, x >= 2], [1.0, 2.0]), (V,))],
    "place": [(lambda x, m: np.place(x, m, [1.0]), (V, B))],
    "polyfit": [(lambda x, y: np.polyfit(x, y, 2), (V, V))],
    "put": [(lambda x: np.put(x, [0, 2], 1.0), (V,))],
    "put_along_axis": [(lambda x: np.put_along_axis(x, np.array([0, 2]), 1.0, 0), (V,))],
    "putmask": [(lambda x, m: np.putmask(x, m, 1.0), (V, B))],
    "repeat": [(lambda x: np.repeat(x, 2), (V,))],
    "reshape": [(lambda x: np.reshape(x, (2, 3)), (V,))],
    "resize": [(lambda x: np.resize(x, (2, 5)), (V,))],
    "roll": [(lambda x: np.roll(x, 2), (V,))],
    "rollaxis": [(lambda x: np.rollaxis(x, 1), (A,))],
    "select": [(lambda x: np.select([x < 2, x > 4], [x, -x], 0.0), (V,))],
    "split": [(lambda x: np.split(x, 2), (V,))],
    "swapaxes": [(lambda x: np.swapaxes(x, 0, 1), (A,))],
    "take": [(lambda x, i: np.take(x, i), (V, I)), (lambda x: np.take(x, [0, 2]), (V,))],
    "take_along_axis": [(lambda x, i: np.take_along_axis(x, i, 0), (V, I))],
    "tensordot": [(lambda x, y: np.tensordot(x, y, 1), (S, S))],
    "linalg.tensordot": [(lambda x, y: np.linalg.tensordot(x, y, axes=1), (S, S))],
    "tile": [(lambda x: np.tile(x, 2), (V,))],
    "vsplit": [(lambda x: np.vsplit(x, 3), (A,))],
    "where": [(lambda m, x: np.where(m, x, 0.0), (B, V))],
    "geomspace": [(lambda x: np.geomspace(1.0, x, 5), (V,))],
    "histogramdd": [(lambda x: np.histogramdd(x, 4, [(0, 9), (0, 9), (0, 9)]), (S,))],
    "isin": [(lambda x: np.isin(x, [1.0, 2.0]), (V,))],
    "ix_": [(lambda x: np.ix_(x, x), (I,))],
    "packbits": [(lambda x: np.packbits(x), (B,))],
    "unpackbits": [(lambda x: np.unpackbits(x), (I.astype(np.uint8),))],
    "unravel_index": [(lambda x: np.unravel_index(x, (3, 4)), (I,))],
    "ravel_multi_index": [(lambda x: np.ravel_multi_index((x, x), (6, 6)), (I,))],
    "zeros": [(lambda x: np.zeros(3) + x, (np.ones(3),))],
    "result_type": [(lambda x: x.astype(np.result_type(x, np.float32)), (V,))],
    "extract": [(lambda m, x: np.extract(m, x), (B, V))],
    "compress": [(lambda x: np.compress([True, False], x), (V,))],
}
_row_stack: Any = getattr(np, "row_stack", None)  # gone from NumPy 2.5
if _row_stack is not None:
    SAMPLES["row_stack"] = [(lambda x: _row_stack([x, x]), (V,))]
__all__ = ["SAMPLES", "generic_samples"]
