"""The reference interpreter of the loop IR: whole arrays through NumPy, one operation at a time.

It defines the meaning of a kernel and is the oracle of the back ends' tests.  Every index is
checked and every scalar op is NumPy's own function in the exact dtype.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.errors import InternalError
from fusec.ops import all_ops
from fusec.ops.calls.scalar_calls import CALLS, FUNCTIONS
from fusec.ops.exact_fma import exact_fma
from fusec.ops.regions.index_maps import AxisIndex
from fusec.ops.rows.scans import scan_reference

from .loop_ir import Access, Expr, Kernel, Nest, Reduction, Stage, Store, walk


class FailedCheckError(Exception):
    """A check of a kernel failed: NumPy, asked again, raises the error."""


def run_kernel(kernel: Kernel, buffers: Sequence[np.ndarray]) -> None:
    """Run every nest; ``buffers`` are arrays of ``kernel.buffers``' dtypes and shapes.

    Any strides will do; buffers with role ``out`` are written in place.  Raises `InternalError` for
    arrays that do not fit and for accesses outside a buffer, ``IndexError`` or `FailedCheckError`
    where a check fails.
    """
    _check_buffers(kernel, buffers)
    with np.errstate(all="ignore"):
        for nest in kernel.nests:
            _NestRun(kernel, nest, buffers).run()


def _check_buffers(kernel: Kernel, buffers: Sequence[np.ndarray]) -> None:
    if len(buffers) != len(kernel.buffers):
        raise InternalError(
            f"{kernel.name} has {len(kernel.buffers)} buffers, got {len(buffers)} arrays"
        )
    for info, array in zip(kernel.buffers, buffers, strict=True):
        if (array.dtype, array.shape) != (info.dtype, info.shape):
            raise InternalError(
                f"{kernel.name}: buffer {info.value} is {info.dtype}{list(info.shape)}, got "
                f"{array.dtype}{list(array.shape)}"
            )


class _NestRun:
    """One nest: values are arrays with one axis per loop, of length 1 where nothing varies."""

    def __init__(self, kernel: Kernel, nest: Nest, buffers: Sequence[np.ndarray]) -> None:
        self.kernel, self.nest, self.buffers = kernel, nest, buffers
        self.inner = tuple(range(nest.outer, len(nest.extents)))
        self.reduced: dict[int, np.ndarray] = {}
        self.scratch: dict[int, np.ndarray] = {}

    def run(self) -> None:
        for stage in self.nest.stages:
            self._run_stage(stage)

    def _run_stage(self, stage: Stage) -> None:
        """Everything is evaluated before anything is stored."""
        extents = self.nest.extents
        if not stage.inner:
            extents = extents[: self.nest.outer] + (1,) * len(self.inner)
        values = self._evaluate(stage.roots, extents)
        for store in stage.stores:
            if store.index:
                index = [values[id(i)] for i in store.index]
                self._scatter(store, index, values[id(store.value)], extents)
                continue
            target = self._view(self.nest.accesses[store.access], extents)
            value = values[id(store.value)]
            target[...] = (scalar_functions()[store.combine](target, value) if store.combine
                           else value)
        for number, e in stage.scratch:
            self.scratch[number] = np.broadcast_to(values[id(e)], extents)
        for r in stage.reductions:
            whole = np.broadcast_to(values[id(r.value)], extents)
            self.reduced[r.number] = self._reduce(r, whole)

    # -- expressions

    def _evaluate(self, roots: Sequence[Expr], extents: tuple[int, ...]) -> dict[int, np.ndarray]:
        values: dict[int, np.ndarray] = {}
        for e in walk(roots):
            if e.op == "load" and e.args:
                values[id(e)] = self._gathered(e, [values[id(a)] for a in e.args], extents)
            elif e.op == "scan":
                whole = np.broadcast_to(values[id(e.args[0])], extents)
                values[id(e)] = scan_reference(whole, e.attr, (self.nest.outer,))
            elif e.op in CALLS:
                values[id(e)] = _called(e, [values[id(a)] for a in e.args])
            elif e.op == "verify":
                values[id(e)] = _verified(values[id(e.args[0])])
            elif e.args:
                args = [values[id(a)] for a in e.args]
                if e.op == "check_index" and 0 in extents:  # an empty loop checks nothing
                    args = [np.broadcast_to(a, extents) for a in args]
                values[id(e)] = apply(e.op, e.dtype, args)
            else:
                values[id(e)] = self._leaf(e, extents)
        return values

    def _leaf(self, e: Expr, extents: tuple[int, ...]) -> np.ndarray:
        if e.op == "load":
            return self._view(self.nest.accesses[e.attr], extents, copy=True)
        if e.op == "scratch":
            return self.scratch[e.attr]
        if e.op == "reduced":
            return self.reduced[e.attr]
        if e.op == "index":
            shape = [extents[e.attr] if d == e.attr else 1 for d in range(len(extents))]
            return np.arange(extents[e.attr], dtype=e.dtype).reshape(shape)
        value = self.kernel.params[e.attr].value if e.op == "param" else e.attr
        return np.asarray(value, e.dtype)

    def _view(self, access: Access, extents: tuple[int, ...], copy: bool = False) -> np.ndarray:
        """The elements an access touches; loops it does not depend on have length 1."""
        buffer = self.buffers[access.buffer]
        name = self.kernel.buffers[access.buffer].value
        used = {i.loop for i in access.index if i.loop >= 0}
        shape = tuple(n if d in used else 1 for d, n in enumerate(extents))
        if 0 in shape or (copy and 0 in extents):  # an empty loop reads nothing
            return np.empty(shape, buffer.dtype)
        strides = [0] * len(extents)
        start = []
        for axis, i in enumerate(access.index):
            last = i.start + (i.step * (extents[i.loop] - 1) if i.loop >= 0 else 0)
            if not (0 <= i.start < buffer.shape[axis] and 0 <= last < buffer.shape[axis]):
                raise InternalError(
                    f"{self.kernel.name} reads or writes {name} at {i.start} to {last} on axis "
                    f"{axis}, which has length {buffer.shape[axis]}"
                )
            start.append(slice(i.start, i.start + 1))
            if i.loop >= 0:
                strides[i.loop] += i.step * buffer.strides[axis]
        corner: Any = (*start, ...)
        view = np.lib.stride_tricks.as_strided(buffer[corner], shape, strides)
        return view.copy() if copy else view

    def _gathered(
        self, e: Expr, args: Sequence[np.ndarray], extents: tuple[int, ...]
    ) -> np.ndarray:
        """The elements at computed indices."""
        access = self.nest.accesses[e.attr]
        buffer = self.buffers[access.buffer]
        index = [self._counters(i, args, extents) for i in access.index]
        if 0 in extents:
            return np.empty(extents, buffer.dtype)
        for axis, places in enumerate(index):
            if places.min() < 0 or places.max() >= buffer.shape[axis]:
                raise InternalError(
                    f"{self.kernel.name} reads {self.kernel.buffers[access.buffer].value} out of "
                    f"range on axis {axis}, which has length {buffer.shape[axis]}"
                )
        return buffer[tuple(index)]

    def _scatter(
        self, store: Store, args: Sequence[np.ndarray], value: np.ndarray, extents: tuple[int, ...]
    ) -> None:
        """Store at computed indices, point after point."""
        access = self.nest.accesses[store.access]
        places = [self._counters(i, args, extents) for i in access.index]
        flat = tuple(np.broadcast_to(p, extents).ravel() for p in places)
        values = np.broadcast_to(value, extents).ravel()
        if store.combine:
            scalar_functions()[store.combine].at(self.buffers[access.buffer], flat, values)
        else:
            self.buffers[access.buffer][flat] = values

    def _counters(
        self, i: AxisIndex, args: Sequence[np.ndarray], extents: tuple[int, ...]
    ) -> np.ndarray:
        """The indices along one axis, an axis per loop."""
        shape = [1] * len(extents)
        if i.computed is not None:
            return i.start + i.step * args[i.computed].reshape(
                shape if not args[i.computed].ndim else args[i.computed].shape)
        if i.loop < 0:
            return np.full(shape, i.start)
        shape[i.loop] = extents[i.loop]
        return (i.start + i.step * np.arange(extents[i.loop])).reshape(shape)

    # -- reductions

    def _reduce(self, r: Reduction, whole: np.ndarray) -> np.ndarray:
        """Over the inner axes, which stay with length 1; sums are pairwise over whole rows."""
        outer = whole.shape[: self.nest.outer]
        count = int(np.prod(whole.shape[self.nest.outer:], dtype=np.int64))
        rows = np.ascontiguousarray(whole).reshape(*outer, count)
        return _reduce_rows(r, rows).reshape(outer + (1,) * len(self.inner))


def _reduce_rows(r: Reduction, rows: np.ndarray) -> np.ndarray:
    if r.kind in ("argmin", "argmax"):
        if 0 in rows.shape:
            return np.zeros(rows.shape[:-1], np.int64)
        return np.asarray(np.argmax(rows, -1) if r.kind == "argmax" else np.argmin(rows, -1))
    ufunc = scalar_functions()[r.kind]
    start = _start(r.kind, r.dtype)
    return np.asarray(ufunc.reduce(rows, axis=-1, dtype=r.dtype, initial=start))


def _start(kind: str, dtype: np.dtype) -> Any:
    """The result of a reduction over nothing; it changes no other result."""
    if kind not in ("maximum", "minimum"):
        return {"add": dtype.type(0), "mul": dtype.type(1), "or": dtype.type(0)}.get(
            kind, ~np.zeros((), dtype) if dtype.kind != "f" else None
        )
    if dtype.kind == "b":
        return kind == "minimum"
    if dtype.kind == "f":
        return dtype.type(-np.inf if kind == "maximum" else np.inf)
    return np.iinfo(dtype).min if kind == "maximum" else np.iinfo(dtype).max


# -------------------------------------------------------------------------------------- scalar ops


def _called(e: Expr, args: Sequence[np.ndarray]) -> np.ndarray:
    """A function of the user's on every element; an exception of its own is a failed check."""
    try:
        return np.asarray(FUNCTIONS[e.attr](*args))
    except Exception as error:
        raise FailedCheckError(f"{e.attr} raised") from error


def _verified(holds: np.ndarray) -> np.ndarray:
    if not holds.all():
        raise FailedCheckError("a condition does not hold")
    return holds


def apply(op: str, dtype: np.dtype, args: Sequence[np.ndarray]) -> np.ndarray:
    """One scalar op on arrays; the result has exactly ``dtype``.  Raises for unknown ops."""
    if op == "cast":
        return cast(args[0], dtype)
    if op == "bitcast":
        return np.array(args[0]).view(dtype)
    try:
        result = np.asarray(scalar_functions()[op](*args))
    except KeyError:
        raise InternalError(f"the reference has no scalar op {op!r}") from None
    if result.dtype != dtype:
        raise InternalError(f"scalar op {op!r} gave {result.dtype} where its type is {dtype}")
    return result


@functools.cache
def scalar_functions() -> dict[str, Any]:
    """Scalar op → NumPy function: the registry's references, bit logic, and our own."""
    table: dict[str, Callable[..., Any]] = {}
    for row in all_ops():
        if row.kind == "elementwise" and row.scalar:
            table.setdefault(row.scalar, row.reference)
    return table | {
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert,
        "select": np.where, "fma": exact_fma, "int_reciprocal": _int_reciprocal,
        "signbit": _signbit,
    }


def _signbit(x: np.ndarray) -> np.ndarray:
    return np.signbit(x) if x.dtype.kind == "f" else x < 0


def _int_reciprocal(x: np.ndarray) -> np.ndarray:
    """1/x truncated; 1/0 is infinity converted to an integer."""
    one = np.sign(x) * (np.abs(x) == 1).astype(x.dtype)
    return np.where(x == 0, cast(np.asarray(np.inf), x.dtype), one)


def cast(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Conversion as NumPy's; floats out of range become the lowest value of the width converted to.

    That width is 64 bits for 64-bit integers and uint32, else 32 bits, and then cut: the results of
    x86-64's instructions, spelled out so that they hold everywhere.
    """
    if x.dtype.kind != "f" or dtype.kind not in "iu":
        return x.astype(dtype)
    if dtype == np.uint64:
        return _float_to_uint64(x)
    return _to_signed(x, 64 if dtype.itemsize == 8 or dtype == np.uint32 else 32).astype(dtype)


def _to_signed(x: np.ndarray, bits: int) -> np.ndarray:
    whole, limit = np.trunc(x.astype(np.float64)), 2.0 ** (bits - 1)
    inside = (whole >= -limit) & (whole < limit)
    return np.where(inside, np.where(inside, whole, 0).astype(np.int64), -(2 ** (bits - 1)))


def _float_to_uint64(x: np.ndarray) -> np.ndarray:
    large = x >= 2.0**63
    rest = _to_signed(np.where(large, x.astype(np.float64) - 2.0**63, 0), 64).astype(np.uint64)
    return np.where(large, rest ^ np.uint64(2**63), _to_signed(x, 64).astype(np.uint64))
