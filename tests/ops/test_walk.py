"""Every row of the registry executed: in every dtype it claims, and in every layout.

NumPy, the compiled function, its second call and the reference interpreter are compared as in all
differential tests.  Elementwise rows run several to a function.  Other rows run alone, the layouts
of one dtype as the arguments of one function; layouts that have another shape, which some rows do
not take, in one dtype, each by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from harness import check, clone
from row_samples import OPERANDS, SECOND, sample_of
from tolerance import EXACT, Tolerance, Ulp

import fusec
from fusec.ir import Graph
from fusec.ops import Op, all_ops
from fusec.ops.admission.claims import DTYPES, claimed_dtypes

ROWS = [row for row in all_ops() if not row.is_transfer]  # those no program has by itself
# Roundings of our own, within the bounds of docs/accuracy.md.
ROUNDED = {
    "Cbrt", "Exp", "Exp2", "Expm1", "Log", "Log2", "Log10", "Log1p", "Sin", "Cos", "Tan", "Arcsin",
    "Arccos", "Arctan", "Arctan2", "Sinh", "Cosh", "Tanh", "Arcsinh", "Arccosh", "Arctanh",
    "Hypot", "Pow", "Mean", "Var", "Std", "Fma", "Erf", "Erfc", "Gammaln", "Expit", "Logit",
    "Ndtr", "LogNdtr", "Exp10", "ChosenPow", "LogAddExp", "LogAddExp2", "XLogY", "XLog1PY", "Entr",
    "RelEntr", "KlDiv", "PseudoHuber",
}
# Rows that some dtypes do without: copies need no op, powers of integers are NumPy's call.
FOLDED = {"Pos", "Pow", "Conj"}


# ------------------------------------------------------------------------------------- operands


def _inside(a: np.ndarray, slices: tuple[slice, ...], shape: Sequence[int]) -> np.ndarray:
    larger = np.ones(tuple(shape), a.dtype)
    larger[slices] = a
    return larger[slices]


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "C": lambda a: a,
    "Fortran": np.asfortranarray,
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "reversed": lambda a: np.flip(np.flip(a).copy()),
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "broadcast columns": lambda a: np.broadcast_to(a[..., :1], a.shape),
    "offset": lambda a: _inside(a, (slice(1, -1),) * a.ndim, [n + 2 for n in a.shape]),
    "strided": lambda a: _inside(a, (slice(1, None, 2),) * a.ndim, [2 * n + 1 for n in a.shape]),
    "rank 0": lambda a: np.array(a.flat[0]),
    "nothing": lambda a: a[:0],
    "no columns": lambda a: a[..., :0],
    "one row": lambda a: a[:1],
    "one column": lambda a: a[..., :1],
}


def values(operand: str, dtype: np.dtype) -> np.ndarray:
    """The operand's numbers in a dtype; complex ones with an imaginary part."""
    a = OPERANDS[operand].astype(dtype)
    return a + (a[::-1] * 1j).astype(dtype) if dtype.kind == "c" else a


# ----------------------------------------------------------------------------------------- rows


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row_is_complete(row: Op) -> None:
    assert row.doc and row.lowering and claimed_dtypes(row)
    assert sample_of(row) is not None, f"{row.name} has no sample in tests/ops/row_samples.py"


def ops_of(graph: Graph) -> Iterator[str]:
    """The ops of a graph and of the graphs in it."""
    for node in graph.nodes:
        yield node.op
        for value in node.attrs.values():
            if isinstance(value, Graph):
                yield from ops_of(value)


def is_rounded(row: Op, dtype: np.dtype) -> bool:
    """Whether a value may differ from NumPy's in its last places.

    Of complex numbers only the absolute value does; maths on them is NumPy's own.
    """
    return row.name == "Abs" if dtype.kind == "c" else row.name in ROUNDED


def tolerance_of(row: Op, dtype: np.dtype) -> Tolerance:
    return Ulp(4, factor=4) if is_rounded(row, dtype) else EXACT


BATCHED = [row for row in ROWS if row.kind == "elementwise" and row.ufunc is not None]


def batches() -> Iterator[tuple[int, str, np.dtype, list[Op]]]:
    """Rows that run in one function: of one arity and kind of tolerance, up to 12."""
    for dtype, arity, rounded in itertools.product(DTYPES, (1, 2), (False, True)):
        rows = [row for row in BATCHED if row.arity == arity and dtype in claimed_dtypes(row)
                and is_rounded(row, dtype) == rounded]
        for i in range(0, len(rows), 12):
            yield arity, rows[i].name, dtype, rows[i:i + 12]


@pytest.mark.parametrize(("arity", "first", "dtype", "rows"), list(batches()),
                         ids=lambda v: v if isinstance(v, str) else getattr(v, "str", ""))
def test_elementwise_rows(arity: int, first: str, dtype: np.dtype, rows: list[Op]) -> None:
    """All layouts of one dtype; ``strict`` keeps neighbours from being joined."""
    ufuncs = [row.ufunc for row in rows]

    def program(*args: Any) -> Any:
        return [ufunc(*args) for ufunc in ufuncs]

    function = fusec.jit(program, fp="strict")
    a, b = values("grid", dtype), values("grid", dtype)[::-1].copy()
    for name, layout in LAYOUTS.items():
        args = (layout(a), layout(b))[:arity]
        check(program, *args, jitted=function, tolerance=tolerance_of(rows[0], dtype),
              engines=name in ("reversed", "broadcast", "rank 0"))
    found = set(ops_of(function.concrete(*clone((a, b)[:arity])).graph))
    missing = {row.name for row in rows} - found
    assert len(missing) == len(FOLDED & missing), f"{missing} are not in {sorted(found)}"


OTHERS = [row for row in ROWS if row not in BATCHED]


SAME_SHAPE = ("C", "Fortran", "transposed", "reversed", "broadcast", "broadcast columns", "offset",
              "strided")


@pytest.mark.parametrize("row", OTHERS, ids=lambda row: row.name)
def test_row(row: Op) -> None:
    reached = set()
    for program, args, dtype in runs_of(row):
        function = fusec.jit(program)
        check(program, *args, jitted=function, tolerance=tolerance_of(row, dtype),
              engines=row.lowering != "library" and program.__name__ != "every_layout")
        for trace in function.traces:
            reached |= {*ops_of(trace.graph), *ops_of(trace.optimized_graph)}
    assert row.name in reached, f"no program of {row.name} contains it"


def runs_of(row: Op) -> Iterator[tuple[Callable[..., Any], tuple[Any, ...], np.dtype]]:
    """Every layout of the sample's shape in every dtype, then the other layouts in one dtype."""
    program, operand = sample_of(row)
    more = SECOND.get(row.name, ())

    def every_layout(arrays: list[Any]) -> list[Any]:
        return [program(x, *more) for x in arrays]

    dtypes = claimed_dtypes(row)
    for dtype in dtypes:
        arrays = [LAYOUTS[name](values(operand, dtype)) for name in SAME_SHAPE]
        if takes(every_layout, clone(arrays)):
            yield every_layout, (arrays,), dtype
        else:
            yield from ((program, (x, *more), dtype) for x in arrays)
    main = next((d for d in dtypes if d == np.float64), dtypes[-1])
    for name in LAYOUTS:
        yield program, (LAYOUTS[name](values(operand, main)), *more), main


def takes(program: Callable[..., Any], args: Any) -> bool:
    """Whether NumPy does, in each of the layouts."""
    try:
        program(args)
    except Exception:
        return False
    return True
