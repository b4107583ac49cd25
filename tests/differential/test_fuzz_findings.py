"""Programs that the fuzzer (``make fuzz``) found to differ from NumPy, shrunk; a line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import check

import fusec

F = np.ones((3, 2)).T
U1, U8 = np.array([3], "u1"), np.array([1, 2], "u8")
B = np.array([True, False])
ROW = np.broadcast_to(np.array([[1.0, 2.0, 3.0]]), (4, 3))
ZERO_D = np.array(2.5)


def into_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """The call with ``out=`` the second argument."""
    return lambda x, y: (function(x, out=y), y)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    # Python numbers are NumPy's to functions that are no ufuncs
    "reduction of a Python number": (lambda a, b: np.amin(a) / b, (-2.5, np.float32(2))),
    "outer with a Python number": (lambda x: np.add.outer(x, 300), (np.ones(1, "f4"),)),
    "dot with a Python number": (lambda x: (x.dot(1), np.inner(x, 2), np.kron(x, 2)), (U1,)),
    "flip of a Python number": (lambda a: np.flip(a), (2.0,)),
    "an index of a Python number": (lambda a: a[...], (2.0,)),
    "isreal of a Python number": (lambda a: np.isreal(a), (1.25,)),
    "fmax of a Python number": (lambda a: np.fmax.reduce(a), (-2.5,)),
    # dtypes
    "rounded booleans": (lambda x: (x.round(), np.round(x)), (B,)),
    "square of booleans by the operator": (lambda x: (x**2, x**1, np.power(x, 2)), (B,)),
    "reduction in another dtype": (lambda x: np.maximum.reduce(x, dtype="i1"), (np.ones(2),)),
    "spread in integers": (lambda x: (x.var(dtype="i2"), x.std(dtype="u4"), x.mean(dtype="i8"),
                                      np.nanvar(x, dtype="u1")), (np.array([1.0, 4.0, 8.5]),)),
    "no loop for a dtype": (lambda x: np.arctan(x, dtype="i8"), (np.ones(2),)),
    "filled with a fraction": (lambda x: np.full_like(x, 2.5), (U8,)),
    "sum into a wider array": (into_out(np.add.reduce), (np.full(3, 1e30, "f4"), np.zeros(()))),
    "scan into integers": (into_out(np.multiply.accumulate), (np.array([2.5, 2.5]),
                                                              np.zeros(2, "i8"))),
    "logical scan into floats": (into_out(np.logical_xor.accumulate), (np.ones(3), np.zeros(3))),
    "sums and products of booleans": (lambda x: (x.sum(dtype=bool), x.prod(dtype=bool)), (
        np.array([2, 1, 1]),)),
    "fmax of integers into an array": (lambda x, y: np.fmax.reduce(x, out=y), (
        np.ones((1, 3), int), np.zeros(3))),
    "matmul in another dtype": (lambda x: np.matmul(x, x, dtype="i2"), (U1,)),
    "mean of integers in integers": (lambda x: np.nanmean(x, dtype="i4"), (U1,)),
    "negative powers of nothing": (lambda x: x ** -3, (np.zeros(0, "i2"),)),
    "sign of zero in BLAS": (lambda x: (x.dot(-0.0), np.inner(x, -0.0)), (np.ones(2),)),
    # memory order
    "padding of nothing": (lambda x: np.pad(x, 2), (np.zeros((0, 2)),)),
    "two broadcast operands": (lambda x, y: x * y, (np.ones((3, 1, 2), "i2").T,
                                                    np.ones((2, 1), "f4"))),
    "like in Fortran's order": (lambda x: (np.ones_like(x, order="F"), np.full((2, 3), x[0, 0],
                                                                               order="F"),
                                           x.astype("f4", order="A"), x.copy("A")), (F,)),
    "float_power of another order": (lambda x: np.float_power(x, x), (F.astype("f4"),)),
    "product with a number": (lambda x: (np.inner(x, 2.0), np.dot(x, np.float64(2))), (F,)),
    "scan of broadcast rows": (lambda x: np.add.accumulate(x), (ROW,)),
    "frexp of broadcast rows": (lambda x: np.frexp(x), (ROW,)),
    "i0 of broadcast rows": (lambda x: np.i0(x), (ROW > 1,)),
    "i0 of the lowest integer": (lambda x: np.i0(x) > 1e50, (np.array([-128], "i1"),)),
    "isreal of another order": (lambda x: np.isreal(x), (F,)),
    "vecdot of transposed stacks": (lambda x: (np.vecdot(x, x), np.vecdot(x[0, 0], x[0, 0])),
                                    (np.arange(24.0).reshape(3, 4, 2).T,)),
    # kinds
    "comparison of rank 0": (lambda x: (x >= -129, x.round()), (np.array(5, "u4"),)),
    "scalar type of rank 0": (lambda x: (np.uint8(x), np.float64(x)), (ZERO_D,)),
    "out=... gives arrays": (lambda x: np.multiply(x, 2.0, out=...), (np.float64(3),)),
    "cross of vectors": (lambda x: np.cross(x, x[::-1]), (np.arange(3.0),)),
    "masked spread of rank 0": (lambda x: x.var(where=x > 0), (ZERO_D,)),
    "nested results": (lambda x: np.histogramdd(x), (np.arange(4.0),)),
    "a number in Fortran's order": (lambda a: np.asfortranarray(a), (np.uint32(3),)),
    # memory
    "scalar type of an array": (lambda x: np.float64(x), (F,)),
    "writing through a scalar type": (lambda x: np.float64(x).fill(7), (F.copy(),)),
    "reshape with a copy": (lambda x: x.reshape(2, 3, copy=True), (F,)),
    "nan_to_num in place": (lambda x: np.nan_to_num(x, copy=False), (np.array([np.nan, 1]),)),
    "Python number as an array": (lambda a: (np.squeeze(a), np.transpose(a)), (2.5,)),
    "read-only constant": (lambda x: np.broadcast_to(1.5, (2,)), (F,)),
    "pieces of a constant": (lambda x: np.unstack(np.identity(2)), (F,)),
    "taken into another dtype": (lambda x, y: x.take([0], mode="clip", out=y), (
        np.array([2.5]), np.zeros(1, "u4"))),
    "asarray in Fortran's order": (lambda x: np.asarray(x, order="F"), (np.ones((2, 2)),)),
    "argsort takes no out": (lambda x, y: x.argsort(out=y), (np.ones(2), np.zeros(2, int))),
    "difference of order 0": (lambda x: np.diff(x, 0, axis=None), (ZERO_D,)),
    "read-only imaginary part": (lambda x: np.imag(x), (F,)),
    "parts of constants": (lambda x: (np.eye(4)[::2], x), (F,)),
    "constants that share memory": (lambda x: [(t, t[::2]) for t in [np.linspace(0, 1, 6)]], (F,)),
    "methods of scalars that write": (lambda a: np.int64(a).put(np.array([0]), 3), (7,)),
    "inserted at several places": (lambda x: np.insert(x, np.array([-1, 0]), x), (
        np.array([[2]]),)),
    "nancumprod into booleans": (lambda x: np.nancumprod(x, dtype="i8", out=x), (B,)),
    "rows at run-time places": (lambda x, i: (x[i], x[:, i], x[i][::-1]), (
        np.arange(6.0).reshape(2, 3), np.int64(-1))),
    "clip into a part": (lambda x, y: np.clip(x, 0, 1, out=y, where=x < 2), (
        np.array([-1, 5]), np.zeros(2, int))),
    "written to a copy of a constant": (lambda x: np.trim_zeros(np.zeros(0)), (F,)),
    # axes
    "take of rank 0": (lambda x: x.take(np.array([-1]), 0), (ZERO_D,)),
    "shifts along one axis": (lambda x: (np.roll(x, (1, 2)), np.roll(x, (1, 2), (0, 0))), (F,)),
    "size along no axes": (lambda x: (np.size(x, axis=()), np.size(x, axis=(0, 1))), (F,)),
    "squeeze of rank 0": (lambda x: x.squeeze(axis=0), (ZERO_D,)),
    "tile of a number": (lambda a: np.tile(a, (1, 2, 1)), (3.0,)),
    # errors
    "cast before broadcast": (lambda x, y: np.bitwise_xor(x, y, out=x), (B, np.ones(3, "u4"))),
    "read-only before all": (lambda x: np.bitwise_and(x, x, out=x), (np.broadcast_to(
        np.array([2.0]), (1,)),)),
    "read-only before cast": (lambda x, y: np.multiply(y, x, out=y), (
        np.ones(1), np.broadcast_to(np.array([2]), (1,)))),
    "place converts numbers": (lambda x: np.place(x, x > 1, 7.0), (np.array([1, 5]),)),
    "read-only before overflow": (lambda x: x.__setitem__(..., np.inf), (
        np.broadcast_to(U8, (2, 2)),)),
    "copy onto itself": (lambda x: np.copyto(x, x), (np.broadcast_to(U8, (2, 2)),)),
    "clip has no a_min as a method": (lambda x: x.clip(a_min=1), (F,)),
    "fit through integers": (lambda x: np.polyfit(x, x, 1), (np.array([1, 2, 3]),)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_findings(name: str) -> None:
    function, args = CASES[name]
    check(function, *args, fp="strict")


@pytest.mark.parametrize("f", [lambda x: x[x > 0], lambda x: x[True]])
def test_masks_of_scalars_are_refused(f: Callable[..., Any]) -> None:
    with pytest.raises(fusec.errors.UnsupportedError, match="mask"):
        fusec.jit(f)(np.float64(3.0))
