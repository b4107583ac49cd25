"""How much library functions compute, roughly: in additions of a loop, for placement to compare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from fusec.ir import Node
from fusec.ir.sizes.bindings import resolve
from fusec.ir.sizes.dims import Size, symbols_of

GUESSED_SIZE = 1000  # of what only the run knows


def points_of(shape: tuple[Size, ...], guess: int = GUESSED_SIZE) -> float:
    """The elements of an array, with a guess for sizes that only the run knows."""
    symbols = symbols_of(shape)
    if symbols:
        shape = resolve(shape, dict.fromkeys(symbols, guess))
    return float(math.prod(int(n) for n in shape))


def _product(node: Node, largest: float) -> float:
    """Two operations for each element of the result and each of the axis that is summed.

    BLAS has no routines for integers; NumPy's loops are ten times slower.
    """
    first = node.inputs[0]
    inner = first.shape[-1] if first.shape else 1
    operations = 2.0 * points_of(node.out().shape) * points_of((inner,))
    if first.dtype.kind in "iub":
        return 2.5 * operations
    return operations / _BLAS * (0.5 if first.dtype.itemsize == 4 else 1.0)


def _contraction(node: Node, largest: float) -> float:
    """The same where the order of axes is any: in NumPy's own loops."""
    return 5.0 * _product(node, largest)


def _cubic(factor: float) -> Callable[[Node, float], float]:
    """``factor`` times n^3 for each of the matrices (Golub and Van Loan, Matrix Computations)."""
    def operations(node: Node, largest: float) -> float:
        shape = node.inputs[0].shape if node.inputs else ()
        if len(shape) < 2:
            return factor * largest
        rows, columns = points_of(shape[-2:-1]), points_of(shape[-1:])
        return factor * points_of(shape) * min(rows, columns) / _BLAS
    return operations


def _log(factor: float, at_least: float = 0.0) -> Callable[[Node, float], float]:
    """``factor`` times n log n of the largest array, and the overhead of functions in Python."""
    return lambda node, largest: at_least + factor * largest * max(
        math.log2(max(largest, 2.0)), 1.0)


def _search(node: Node, largest: float) -> float:
    """A search for each element of the result, whose branches are not foreseen: 6 ns a halving."""
    sorted_ = max((points_of(v.shape) for v in node.inputs), default=2.0)
    return 70.0 * points_of(node.out().shape) * max(math.log2(max(sorted_, 2.0)), 1.0)


def _sliding(node: Node, largest: float) -> float:
    """Each element of one array with each of another."""
    return 1.2 * math.prod(points_of(v.shape) for v in node.inputs[:2])


def keeps_interpreter(node: Node) -> bool:
    """Whether nothing else of Python runs meanwhile: a library that keeps the interpreter's lock.

    NumPy releases it in loops over more than 500 elements, of which it takes these functions of
    smaller matrices for one (seen in NumPy 2.4 on `eigvalsh` and `solve` of one right-hand side).
    """
    if node.op not in _KEPT_WHERE_SMALL:
        return False
    shape = node.inputs[0].shape
    is_one_vector = all(len(v.shape) == 1 for v in node.inputs[1:])
    return is_one_vector and points_of(shape[:-1]) <= 500


_KEPT_WHERE_SMALL = frozenset(("LinalgEigvalsh", "LinalgSolve"))
_BLAS = 4.0  # a library's inner loops, against additions of a loop's
_IN_PYTHON = 400_000.0  # what np.percentile does before it begins, about 30 us
# Factors were measured: on one core of an EPYC, against additions of vector code at 12 per ns.
WORK: Mapping[str, Callable[[Node, float], float]] = {
    "MatMul": _product, "Dot": _product, "Einsum": _contraction,
    "LinalgSolve": _cubic(1), "LinalgInv": _cubic(3.4), "LinalgDet": _cubic(1),
    "LinalgSlogdet": _cubic(1), "LinalgCholesky": _cubic(0.5), "LinalgQr": _cubic(4),
    "LinalgSvd": _cubic(22), "LinalgSvdvals": _cubic(10), "LinalgEigh": _cubic(10),
    "LinalgEigvalsh": _cubic(4.2), "LinalgLstsq": _cubic(18), "LinalgPinv": _cubic(26),
    "LinalgMatrixRank": _cubic(10), "LinalgCond": _cubic(10),
    **dict.fromkeys(("Sort", "SortInPlace", "Unique", "Partition", "PartitionInPlace"), _log(3.0)),
    **dict.fromkeys(("Argsort", "Argpartition", "Lexsort"), _log(9.0)),
    **dict.fromkeys(("Median", "Percentile", "Quantile", "Nanmedian", "Nanpercentile",
                     "Nanquantile"), _log(6.0, _IN_PYTHON)),
    **dict.fromkeys(("Searchsorted", "Digitize", "Interp"), _search),
    **dict.fromkeys(("Convolve", "Correlate"), _sliding),
    "Polyfit": _log(10.0, 2 * _IN_PYTHON),
    **dict.fromkeys(("FftFft", "FftIfft"), _log(14.0)),
    **dict.fromkeys(("FftFft2", "FftIfft2", "FftFftn", "FftIfftn"), _log(7.0)),
    **dict.fromkeys(("FftRfft", "FftIrfft", "FftRfft2", "FftIrfft2", "FftRfftn", "FftIrfftn"),
                    _log(4.0)),
    "Extent": lambda node, largest: 0.5 * _IN_PYTHON,
    "Scipy": _log(20.0), "Numpy": _log(4.0), "HostCall": lambda node, largest: 4.0 * largest,
}
