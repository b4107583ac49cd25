"""How much library functions compute, roughly: in additions of a loop, for placement to compare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from fusec.ir import Node
from fusec.ir.bindings import resolve
from fusec.ir.dims import Size, symbols_of

GUESSED_SIZE = 1000  # of what only the run knows


def points_of(shape: tuple[Size, ...]) -> float:
    """The elements of an array, with a guess for sizes that only the run knows."""
    symbols = symbols_of(shape)
    if symbols:
        shape = resolve(shape, dict.fromkeys(symbols, GUESSED_SIZE))
    return float(math.prod(int(n) for n in shape))


def _product(node: Node, largest: float) -> float:
    """Two operations for each element of the result and each of the axis that is summed."""
    inner = node.inputs[0].shape[-1] if node.inputs[0].shape else 1
    return 2.0 * points_of(node.out().shape) * points_of((inner,)) / _BLAS


def _cubic(factor: float) -> Callable[[Node, float], float]:
    """``factor`` times n^3 for each of the matrices (Golub and Van Loan, Matrix Computations)."""
    def operations(node: Node, largest: float) -> float:
        shape = node.inputs[0].shape if node.inputs else ()
        if len(shape) < 2:
            return factor * largest
        rows, columns = points_of(shape[-2:-1]), points_of(shape[-1:])
        return factor * points_of(shape) * min(rows, columns) / _BLAS
    return operations


def _log(factor: float) -> Callable[[Node, float], float]:
    return lambda node, largest: factor * largest * max(math.log2(max(largest, 2.0)), 1.0)


_BLAS = 4.0  # a library's inner loops, against additions of a loop's
WORK: Mapping[str, Callable[[Node, float], float]] = {
    "MatMul": _product, "Dot": _product, "Einsum": _product,
    "LinalgSolve": _cubic(1), "LinalgInv": _cubic(2), "LinalgDet": _cubic(1),
    "LinalgSlogdet": _cubic(1), "LinalgCholesky": _cubic(0.5), "LinalgQr": _cubic(4),
    "LinalgSvd": _cubic(40), "LinalgSvdvals": _cubic(16), "LinalgEigh": _cubic(20),
    "LinalgEigvalsh": _cubic(8), "LinalgLstsq": _cubic(16), "LinalgPinv": _cubic(44),
    "LinalgMatrixRank": _cubic(16), "LinalgCond": _cubic(16),
    **dict.fromkeys(("Sort", "Argsort", "Unique", "Lexsort", "Searchsorted", "Median",
                     "Percentile", "Quantile"), _log(3.0)),
    **dict.fromkeys(("FftFft", "FftIfft", "FftFft2", "FftIfft2", "FftFftn", "FftIfftn", "FftRfft",
                     "FftIrfft", "FftRfft2", "FftIrfft2", "FftRfftn", "FftIrfftn"), _log(4.0)),
    "Scipy": _log(20.0), "Numpy": _log(4.0), "HostCall": lambda node, largest: 4.0 * largest,
}
