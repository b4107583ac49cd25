"""Functions beyond the core: arranging, diagonals, statistics, composed ufuncs, masks.

One row of `CASES` is a function of traced arrays and its arguments; NumPy is the oracle for values,
dtypes, kinds, strides, shared memory, mutated arguments and the types of errors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import DTYPES, LAYOUTS, ordinary
from harness import check
from tolerance import EXACT, NEAR

import fusec
from fusec.errors import UnsupportedError
from fusec.trace.arrays import arranging
from fusec.trace.numpy import more_functions
from fusec.trace.ufuncs.formulas import FORMULAS
from fusec.trace.values import operations
from fusec.trace.values.handlers import FUNCTIONS

A = np.arange(12.0).reshape(3, 4) - 5
V = np.arange(6.0) - 2
I = np.arange(12).reshape(4, 3) - 3  # noqa: E741
T = np.arange(24.0).reshape(2, 3, 4)
Q = np.arange(9.0).reshape(3, 3) + np.eye(3)
N = A.copy()
N[1, 2] = N[0, 3] = np.nan
N[:, 0] = np.nan
S = np.array([0.0, -0.0, 1, -1.5, np.inf, -np.inf, np.nan, 1e300, 2.5])
M = A > 0
PADDINGS = ("constant", "edge", "wrap", "reflect", "symmetric", "linear_ramp", "mean", "maximum",
            "minimum")
NAN_FUNCTIONS = (np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd, np.nanmin, np.nanmax)

Case = tuple[Callable[..., Any], tuple[Any, ...]]
windows = np.lib.stride_tricks.sliding_window_view


def sees_writes(x: Any) -> Any:
    """A window is a view, which cannot be written to."""
    found = windows(x, 2)
    x[1] = 9
    return found.sum(axis=1), found[::2]


def case(function: Any, *args: Any) -> Case:
    return function, args


CASES: dict[str, list[Case]] = {
    "split": [case(lambda x: np.split(x, 2), V), case(lambda x: np.split(x, [1, 3], axis=1), A),
              case(lambda x: np.split(x, 4), V)],
    "array_split": [case(lambda x: np.array_split(x, 4), V),
                    case(lambda x: np.array_split(x, 3, axis=1), A)],
    "hsplit": [case(lambda x: np.hsplit(x, 2), A)],
    "vsplit": [case(lambda x: np.vsplit(x, 3), A)],
    "dsplit": [case(lambda x: np.dsplit(x, 2), T), case(lambda x: np.dsplit(x, 2), A)],
    "unstack": [case(lambda x: np.unstack(x), A), case(lambda x: np.unstack(x, axis=-1), T)],
    "pad": [
        *[case(lambda x, m=m: np.pad(x, ((1, 2), (3, 1)), mode=m), A) for m in PADDINGS],
        case(lambda x: np.pad(x, 2, constant_values=3), V),
        case(lambda x: np.pad(x, ((9, 7), (8, 9)), mode="wrap"), A),
        case(lambda x: np.pad(x, ((9, 7), (8, 9)), mode="reflect"), A),
        case(lambda x: np.pad(x, 1, mode="edge"), A.T), case(lambda x: np.pad(x, -1), V),
    ],
    "tile": [case(lambda x: np.tile(x, 3), V), case(lambda x: np.tile(x, (2, 1, 3)), A)],
    "repeat": [case(lambda x: np.repeat(x, 2), A), case(lambda x: np.repeat(x, 2, axis=1), A),
               case(lambda x: np.repeat(x, [1, 0, 2], axis=0), A), case(lambda x: x.repeat(3), I.T),
               case(lambda x: np.repeat(x, -1), V), case(lambda x: np.repeat(x, 2, axis=5), V)],
    "rot90": [case(lambda x, k=k: np.rot90(x, k), A) for k in range(4)],
    "fliplr": [case(lambda x: np.fliplr(x), A), case(lambda x: np.fliplr(x), V)],
    "flipud": [case(lambda x: np.flipud(x), A)],
    "column_stack": [case(lambda x, y: np.column_stack([x, y]), V, V),
                     case(lambda x, y: np.column_stack([x, y[:3]]), A, V)],
    **({"row_stack": [case(lambda x: np.row_stack([x, x]), V)]} if hasattr(np, "row_stack")
       else {}),  # gone from NumPy 2.5
    "dstack": [case(lambda x: np.dstack([x, x]), A)],
    "block": [case(lambda x: np.block([[x, x], [x, x]]), A),
              case(lambda x, y: np.block([x, y]), V, V)],
    "append": [case(lambda x: np.append(x, 3), V), case(lambda x: np.append(x, x, axis=0), A),
               case(lambda x: np.append(x, x), A)],
    "insert": [case(lambda x: np.insert(x, 2, 7.0), V),
               case(lambda x: np.insert(x, 1, x[0], axis=0), A),
               case(lambda x: np.insert(x, [1, 3], x[:2]), V),
               case(lambda x: np.insert(x, 99, 1.0), V)],
    "einsum": [case(lambda x: np.einsum("ij->ji", x), A), case(lambda x: np.einsum("ji", x), A),
               case(lambda x: np.einsum("ij->i", x), A)],
    "linalg.tensorinv": [case(lambda x: np.linalg.tensorinv(x), np.array([2.0])),
                         case(lambda x: np.linalg.tensorinv(x, np.array(0)), np.array([2.0]))],
    "delete": [case(lambda x: np.delete(x, 2), V), case(lambda x: np.delete(x, 1, axis=1), A),
               case(lambda x: np.delete(x, slice(0, 4, 2)), V),
               case(lambda x: np.delete(x, [0, 3]), V), case(lambda x: np.delete(x, 9), V)],
    "atleast_2d": [case(lambda x: np.atleast_2d(x), V)],
    "atleast_3d": [case(lambda x: np.atleast_3d(x), V), case(lambda x: np.atleast_3d(x), A)],
    "diag": [case(lambda x: np.diag(x), A), case(lambda x: np.diag(x, 1), A),
             case(lambda x: np.diag(x, -2), V), case(lambda x: np.diag(x), T)],
    "diagonal": [
        case(lambda x: np.diagonal(x), A), case(lambda x: np.diagonal(x, 1, 0, 2), T),
        case(lambda x: (np.diagonal(x) * 2, np.diagonal(x, -1), x.T.diagonal()[::-1]), A),
        case(lambda x: np.diagonal(x).__setitem__(0, 1), A), case(lambda x: x.diagonal(), V),
        case(lambda x: np.diagonal(x, 0, 1, 1), T), case(lambda x: np.diagonal(x, 9), A),
    ],
    "linalg.diagonal": [case(lambda x: np.linalg.diagonal(x, offset=1), T)],
    "trace": [case(lambda x: np.trace(x), A), case(lambda x: x.trace(), I),
              case(lambda x: np.trace(x, -1, 1, 2), T)],
    "linalg.trace": [case(lambda x: np.linalg.trace(x), T)],
    "diagflat": [case(lambda x: np.diagflat(x), A[:2, :2])],
    "fill_diagonal": [case(lambda x: np.fill_diagonal(x, 7), A),
                      case(lambda x: np.fill_diagonal(x, 7), T[:, :2, :2]),
                      case(lambda x: np.fill_diagonal(x, 7), V)],
    "tril": [case(lambda x: np.tril(x), A), case(lambda x: np.tril(x, -1), T),
             case(lambda x: np.tril(x), V)],
    "triu": [case(lambda x: np.triu(x), I), case(lambda x: np.triu(x, 1), N)],
    "tril_indices_from": [case(lambda x: (np.tril_indices_from(x), x + 1), Q)],
    "triu_indices_from": [case(lambda x: (np.triu_indices_from(x), x + 1), Q)],
    "diag_indices_from": [case(lambda x: x[0] + np.diag_indices_from(x)[1], Q)],
    "meshgrid": [case(lambda x, y: np.meshgrid(x, y), V, V),
                 case(lambda x, y: np.meshgrid(x, y, indexing="ij", sparse=True, copy=False), V,
                      V)],
    "ix_": [case(lambda x: np.ix_(x, x), np.arange(3))],
    "resize": [case(lambda x: np.resize(x, (3, 5)), V)],
    "rollaxis": [case(lambda x: np.rollaxis(x, 2), T)],
    "matrix_transpose": [case(lambda x: np.matrix_transpose(x), T)],
    "linalg.matrix_transpose": [case(lambda x: np.linalg.matrix_transpose(x), T)],
    "isclose": [case(lambda x: np.isclose(x, x + 1e-9), A), case(lambda x: np.isclose(x, 1), I),
                case(lambda x: np.isclose(x, x, equal_nan=True), N)],
    "allclose": [case(lambda x: np.allclose(x, x + 1e-9), A)],
    "array_equal": [case(lambda x: np.array_equal(x, x + 0), A),
                    case(lambda x: np.array_equal(x, x[:1]), A)],
    "array_equiv": [case(lambda x: np.array_equiv(x, x[:1]), A)],
    **{f.__name__: [case(lambda x, f=f: f(x), N), case(lambda x, f=f: f(x, axis=0), N),
                    case(lambda x, f=f: f(x, axis=1, keepdims=True), N),
                    case(lambda x, f=f: f(x, 0), I)] for f in NAN_FUNCTIONS},
    "sinc": [case(lambda x: np.sinc(x), A)],
    "i0": [case(lambda x: np.i0(x), np.linspace(-20, 20, 41))],
    "angle": [case(lambda x: np.angle(x), A)],
    "unwrap": [case(lambda x: np.unwrap(x), V * 2), case(lambda x: np.unwrap(x, axis=0), A)],
    "fix": [case(lambda x: np.fix(x), A / 3)],
    "real": [case(lambda x: np.real(x), A)],
    "isreal": [case(lambda x: np.isreal(x), A)],
    "iscomplex": [case(lambda x: np.iscomplex(x), A)],
    "iscomplexobj": [case(lambda x: np.iscomplexobj(x), A)],
    "isrealobj": [case(lambda x: np.isrealobj(x), A)],
    "real_if_close": [case(lambda x: np.real_if_close(x), A)],
    "isneginf": [case(lambda x: np.isneginf(x), S)],
    "isposinf": [case(lambda x: np.isposinf(x), S)],
    "select": [case(lambda x: np.select([x < 0, x > 2], [x, x * 2], -1), A)],
    "piecewise": [
        case(lambda x: np.piecewise(x, [x < 0, x >= 0], [-1, 1]), A),
        case(lambda x: np.piecewise(x, [x < 0, x >= 1], [lambda v: -v, np.sqrt, 5.0]), A),
        case(lambda x: np.piecewise(x, x < 0, [lambda v, k, m=0: v * k + m, 2], 3.0, m=1), V),
        case(lambda x: np.piecewise(x[1], [x[1] < 0], [lambda v: v * 2, 7]), V),
        case(lambda x: np.piecewise(x, [x < 0], [np.abs, 1, 2]), V),
    ],
    "sliding_window_view": [
        case(lambda x: windows(x, 3).mean(axis=-1), V), case(lambda x: windows(x, 3), V),
        case(lambda x: windows(x, (2, 2)).max(axis=(2, 3)), A),
        case(lambda x: windows(x, 2, axis=1) * 2, A.T), case(lambda x: windows(x, 2, axis=-1), T),
        case(lambda x: windows(x, (2, 2), axis=(0, 0)), A), case(lambda x: windows(x, 9), V),
        case(lambda x: windows(x, 2), A), case(sees_writes, V.copy()),
    ],
    "trapezoid": [case(lambda x: np.trapezoid(x), V), case(lambda x, y: np.trapezoid(x, y), V, V),
                  case(lambda x: np.trapezoid(x, dx=0.5, axis=0), A)],
    "gradient": [case(lambda x: np.gradient(x), V), case(lambda x: np.gradient(x), A),
                 case(lambda x: np.gradient(x, 0.5, axis=0, edge_order=2), A),
                 case(lambda x, y: np.gradient(x, y), V, V**3)],
    "ediff1d": [case(lambda x: np.ediff1d(x), V),
                case(lambda x: np.ediff1d(x, to_begin=1, to_end=x[:2]), V)],
    "cov": [case(lambda x: np.cov(x), A), case(lambda x, y: np.cov(x, y), V, V**2)],
    "corrcoef": [case(lambda x: np.corrcoef(x), A * A + Q[:, :1])],
    "average": [case(lambda x, w: np.average(x, 0, w), A, A[:, 0] + 9),
                case(lambda x, w: np.average(x, weights=w, axis=1, returned=True), A, V[:4] + 9)],
    "polyval": [case(lambda p, x: np.polyval(p, x), V, A),
                case(lambda x: np.polyval([1, 2, 3], x), A)],
    "polyadd": [case(lambda x, y: np.polyadd(x, y), V, V[:3])],
    "polysub": [case(lambda x, y: np.polysub(x, y), V, V[:3])],
    "polyder": [case(lambda x: np.polyder(x), V)],
    "polyint": [case(lambda x: np.polyint(x), V)],
    "cross": [case(lambda x, y: np.cross(x, y), I * 1.0, I + 2.0)],
    "linalg.cross": [case(lambda x, y: np.linalg.cross(x, y), I * 1.0, I + 2.0)],
    "kron": [case(lambda x, y: np.kron(x, y), A, Q)],
    "inner": [case(lambda x: np.inner(x, x), V), case(lambda x: np.inner(x, x), A),
              case(lambda x, y: np.inner(x, y), T, A), case(lambda x, y: np.inner(x, y), V, A)],
    "vdot": [case(lambda x: np.vdot(x, x), V), case(lambda x, y: np.vdot(x, y), V, A)],
    "tensordot": [case(lambda x, y: np.tensordot(x, y, 1), A.T.copy(), A)],
    "linalg.tensordot": [case(lambda x: np.linalg.tensordot(x, x), Q)],
    "linalg.outer": [case(lambda x: np.linalg.outer(x, x), V)],
    "linalg.vecdot": [case(lambda x: np.linalg.vecdot(x, x), A)],
    "linalg.matmul": [case(lambda x: np.linalg.matmul(x, x), Q)],
    "linalg.matrix_power": [case(lambda x: np.linalg.matrix_power(x, 5), Q)],
    "linalg.multi_dot": [case(lambda x: np.linalg.multi_dot([x, x, x]), Q)],
    "linalg.matrix_norm": [case(lambda x: np.linalg.matrix_norm(x), A)],
    "linalg.vector_norm": [case(lambda x: np.linalg.vector_norm(x), A),
                           case(lambda x: np.linalg.vector_norm(x, axis=0, ord=1), A)],
    "apply_along_axis": [case(lambda x: np.apply_along_axis(np.sum, 0, x), A)],
    "apply_over_axes": [case(lambda x: np.apply_over_axes(np.sum, x, [0, 1]), A)],
    "fft.fftshift": [case(lambda x: np.fft.fftshift(x), A)],
    "fft.ifftshift": [case(lambda x: np.fft.ifftshift(x), V)],
    "place": [case(lambda x: np.place(x, x > 0, [1]), V),
              case(lambda x: np.place(x, x > 0, [1, 2]), V)],
    "putmask": [case(lambda x: np.putmask(x, x > 0, x * 2), V),
                case(lambda x: np.putmask(x, x > 0, [1.0, 2.0]), V),
                case(lambda x, m: np.putmask(x, m, 1.0), V, V[:3] > 0)],
    "common_type": [case(lambda x, y: np.zeros(3, np.common_type(x, y)), I, A)],
    "result_type": [case(lambda x, y: np.zeros(3, np.result_type(x, y)), I, A)],
    "can_cast": [case(lambda x: np.can_cast(x, np.float32), A)],
    "min_scalar_type": [case(lambda x: np.zeros(2, np.min_scalar_type(x)), A)],
    "shares_memory": [case(lambda x: (np.shares_memory(x, x.T), np.shares_memory(x, x + 1)), A)],
    "may_share_memory": [case(lambda x: np.may_share_memory(x, x.T), A)],
    "logspace": [case(lambda x: np.logspace(x, 2, 4), 0.5)],
    "linspace": [case(lambda x, y: np.linspace(x, y, 5), 1.5, 2.5),
                 case(lambda x, y: np.linspace(x, y, 5, axis=1, endpoint=False), V, V * 2)],
    "asfortranarray": [case(lambda x: np.asfortranarray(x), A),
                       case(lambda x: np.asfortranarray(x), A.T)],
    "orders": [case(lambda x: np.ravel(x, order="F"), A), case(lambda x: x.ravel("K"), A.T),
               case(lambda x: x.ravel("A"), A.T), case(lambda x: x.flatten("F"), A),
               case(lambda x: x.reshape(4, 3, order="F"), A),
               case(lambda x: x.reshape((2, 6), order="F"), A.T),
               case(lambda x: np.reshape(x, (2, 6), "A"), A.T),
               case(lambda x: x.reshape((2, 6), order="K"), A)],
}
LIBRARY_CALLS: dict[str, Case] = {
    "isin": case(lambda x: np.isin(x, [1.0, 2.0]) * x, V),
    "isin of arrays": case(lambda x, y: np.isin(x, y, invert=True), I, I[:2]),
    "vander": case(lambda x: np.vander(x, 3) + 1, V),
    "geomspace": case(lambda x: np.geomspace(1.0, x, 5), V + 9),
    "histogramdd": case(lambda x: np.histogramdd(x, 4)[0] + 1, I * 1.0),
    "packbits": case(lambda m: np.packbits(m), M),
    "unpackbits": case(lambda x: np.unpackbits(x), np.arange(5, dtype=np.uint8)),
    "unravel_index": case(lambda i: [k + 0 for k in np.unravel_index(i, (3, 4))], np.arange(6)),
    "unravel_index outside": case(lambda i: np.unravel_index(i, (3, 4)), np.arange(13)),
    "ravel_multi_index": case(lambda i: np.ravel_multi_index((i, i), (6, 6)), np.arange(6)),
    "nanargmin": case(lambda x: np.nanargmin(x, axis=1), N),
    "nanargmax": case(lambda x: np.nanargmax(x) + 1, N),
    "nanargmin of NaN": case(lambda x: np.nanargmin(x, axis=0), N),
    "gcd": case(lambda x, y: np.gcd(x, y) + np.lcm(x, y), I, I + 4),
    "nextafter": case(lambda x: (np.nextafter(x, 0.0), np.spacing(x)), A),
    "frexp": case(lambda x: np.ldexp(*np.frexp(x)), A),
}
UFUNCS: dict[str, Case] = {
    "logaddexp": case(lambda x, y: np.logaddexp(x[:, None], y), S, S),
    "logaddexp2": case(lambda x, y: np.logaddexp2(x[:, None], y), S, S),
    "modf": case(lambda x: np.modf(x), S),
    "modf out": case(lambda x, p, q: np.modf(x, out=(p, q)), V, V * 0, V * 0),
    "divmod": case(lambda x, y: np.divmod(x[:, None], y), S, S),
    "divmod of ints": case(lambda x, y: (np.divmod(x, y), divmod(x, y)), I, I + 4),
    "float_power": case(lambda x: np.float_power(x, x), I),
    "bitwise_count": case(lambda x: np.bitwise_count(x), np.arange(-128, 128).astype("i1")),
    "bitwise_count u8": case(lambda x: np.bitwise_count(x), np.array([2**64 - 1, 5], "u8")),
    "bitwise_count where": case(lambda x, m, out: np.bitwise_count(x, out=out, where=m), I, I > 1,
                                np.full((4, 3), 9, "u1")),
    "degrees": case(lambda x: np.degrees(x), A), "radians": case(lambda x: np.radians(x), I),
    "conjugate": case(lambda x: np.conjugate(x), A),
    "vecdot": case(lambda x: np.vecdot(x, x), A), "matvec": case(np.matvec, A, V[:4]),
    "vecmat": case(np.vecmat, V[:3], A), "matvec rank": case(np.matvec, V, V),
    "outer": case(lambda x, y: np.subtract.outer(x, y), V, A),
    "outer of ints": case(lambda x, y: np.multiply.outer(x, y), A, I),
}
REDUCTIONS: dict[str, Case] = {
    "sum where": case(lambda x, w: np.sum(x, axis=0, where=w), A, M),
    "sum initial": case(lambda x: np.sum(x, initial=5), A),
    "sum both": case(lambda x: x.sum(where=x > 0, initial=2), I),
    "prod where": case(lambda x, w: np.prod(x, 1, where=w[:1]), A, M),
    "max initial": case(lambda x: np.max(x, axis=1, initial=3), A),
    "max both": case(lambda x, w: np.max(x, axis=1, initial=-3, where=w), A, M),
    "min of nothing": case(lambda x: np.min(x[:0], axis=0, initial=3), A),
    "max where": case(lambda x, w: np.max(x, where=w), A, M),
    "any where": case(lambda x, w: np.any(x, axis=0, where=w), A, M),
    "all where": case(lambda x, w: x.all(where=w), A, M),
    "mean where": case(lambda x, w: np.mean(x, axis=0, where=w), A, M),
    "mean where, scalar": case(lambda x, w: x.mean(where=w), A, M),
    "var where": case(lambda x, w: np.var(x, axis=1, where=w), A, M),
    "std where": case(lambda x, w: np.std(x, where=w, ddof=1), A, M),
    "var mean": case(lambda x: np.var(x, axis=0, mean=x.mean(0, keepdims=True)), A),
    "wrong where": case(lambda x, w: np.sum(x, where=w[:, :2]), A, M),
    "fmin": case(lambda x: np.fmin.reduce(x), N),
    "fmax": case(lambda x: np.fmax.reduce(x, axis=None), N),
    "logical_xor": case(lambda x: np.logical_xor.reduce(x), I),
}


def compare(function: Any, args: tuple[Any, ...], **options: Any) -> None:
    """`harness.check` of a case, whatever kind of callable it is."""
    def f(*operands: Any) -> Any:
        return function(*operands)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(function if type(function) is type(f) else f, *args, **options)


@pytest.mark.parametrize("name", CASES)
def test_functions(name: str) -> None:
    for function, args in CASES[name]:
        compare(function, args, tolerance=NEAR, engines=False)


@pytest.mark.parametrize("name", UFUNCS)
def test_composed_ufuncs(name: str) -> None:
    function, args = UFUNCS[name]
    compare(function, args, tolerance=NEAR)


@pytest.mark.parametrize("name", LIBRARY_CALLS)
def test_library_calls(name: str) -> None:
    function, args = LIBRARY_CALLS[name]
    compare(function, args, tolerance=NEAR, engines=False)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_parts(name: str) -> None:
    function, args = REDUCTIONS[name]
    compare(function, args, tolerance=NEAR)


# Functions that only move elements, exact in every dtype and layout.
MOVES: dict[str, Callable[[Any], Any]] = {
    "repeat": lambda x: np.repeat(x, 2, axis=-1), "tile": lambda x: np.tile(x, 2),
    "tril": lambda x: np.tril(x), "triu": lambda x: np.triu(x, 1),
    "diagonal": lambda x: np.diagonal(x), "diag": lambda x: np.diag(x), "rot90": np.rot90,
    "pad": lambda x: np.pad(x, 1, mode="edge"), "ravel": lambda x: x.ravel("F"),
    "append": lambda x: np.append(x, x), "delete": lambda x: np.delete(x, 0, axis=-1),
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(name: str, layout: str) -> None:
    compare(MOVES[name], (LAYOUTS[layout]("f8"),), tolerance=EXACT, engines=False)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str) -> None:
    for function in MOVES.values():
        compare(function, (ordinary(dtype, 4, 5),), tolerance=EXACT, engines=False)


def test_diagonals_in_every_engine() -> None:
    def f(x: Any, y: Any) -> Any:
        return np.diagonal(x, 1) * 2 + np.diagonal(y, -1)[:4].sum(), np.trace(x.T @ x)

    check(f, ordinary("f8", 5, 5), ordinary("f8", 6, 5), tolerance=NEAR, source=True)


def test_broadcast_arrays_are_read_only() -> None:
    """NumPy's own are writeable with a warning; writing to them was never defined."""
    x, y = fusec.jit(lambda x, y: np.broadcast_arrays(x, y))(A, V[:4])
    np.testing.assert_array_equal(y, np.broadcast_to(V[:4], (3, 4)))
    assert np.shares_memory(x, A) and not y.flags.writeable


def test_imaginary_parts_are_zero() -> None:
    np.testing.assert_array_equal(fusec.jit(lambda x: np.imag(x) + 1)(A), np.ones((3, 4)))


@pytest.mark.parametrize("call", [
    lambda x: np.repeat(x, x[0].astype(int)[0]),
    lambda x: np.shares_memory(x[:1], x[1:]),
    lambda x, y=A: np.shares_memory(x, y),
])
def test_refusals(call: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedError):
        fusec.jit(call)(A.copy())


# Functions over existing ops and by NumPy's own source.
HOMES = {m.__name__ for m in (arranging, more_functions, operations)}
MORE = [f for f, row in FUNCTIONS.items() if row.handler.__module__ in HOMES and (
    not row.hooked or f is np.require)]
MORE += [np.imag, np.nanmin, np.nanmax, np.real_if_close,
         np.lib.stride_tricks.sliding_window_view, *filter(None, [getattr(np, "row_stack", None)])]


def test_every_function_has_a_case() -> None:
    def name(f: Any) -> str:
        home = f.__module__.replace("numpy", "").lstrip(".")
        return f"{home}.{f.__name__}" if home in ("linalg", "fft") else f.__name__

    elsewhere = ("broadcast_arrays", "imag", "from_dlpack", "require", "einsum_path")
    assert [name(f) for f in MORE if name(f) not in (*CASES, *elsewhere)] == []
    assert [u.__name__ for u in FORMULAS if u.__name__ not in UFUNCS] == []


def test_whether_nans_are_equal_is_known() -> None:
    """The source of `isclose` tests the flag, as it tests data: it was taken for True."""
    with pytest.raises(fusec.UnsupportedError, match="equal_nan that data decides"):
        fusec.jit(lambda x: np.allclose([np.nan], [np.nan], equal_nan=x > 0))(-1.0)
