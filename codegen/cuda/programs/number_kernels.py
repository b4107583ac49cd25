"""Kernels of one point: scalar ops on numbers that are on the device, copies of arrays."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from fusec.codegen.structured.memory import Register
from fusec.codegen.structured.statements import CallScalar, Let
from fusec.core.records import dataclass
from fusec.ir import Loc, TensorType
from fusec.ops.calls.scalar_calls import CALLS

from ...kernels.loop_ir import Access, Buffer, Expr, Kernel, Nest, Stage, Store, expr
from ...kernels.lower import lower_copy
from ...kernels.scalar_rules import Constants


@dataclass(frozen=True)
class NumberKernel:
    """A kernel, the registers that it reads and those that it defines, in the buffers' order;
    ``values``: those of the ops, in order."""

    kernel: Kernel
    inputs: tuple[Register, ...]
    results: tuple[Register, ...]
    values: tuple[Expr, ...]


def number_kernel(
    name: str, lets: Sequence[Let], read: Collection[Register], loc: Loc | None
) -> NumberKernel:
    """One kernel of these ops; of their results it stores those that are ``read`` elsewhere."""
    constants = Constants()
    own = {x.result for x in lets}
    inputs = tuple(dict.fromkeys(
        a for x in lets for a in x.args if isinstance(a, Register) and a not in own))
    results = tuple(x.result for x in lets if x.result in read)
    values: dict[Register, Expr] = {
        register: expr("load", register.dtype, attr=n) for n, register in enumerate(inputs)}
    for x in lets:
        values[x.result] = expr(x.op, x.result.dtype, *(
            values[a] if isinstance(a, Register) else constants.of(a.dtype, a.value)
            for a in x.args))
    buffers = (*(_buffer(r, "in") for r in inputs), *(_buffer(r, "out") for r in results))
    accesses = tuple(Access(n, ()) for n in range(len(buffers)))
    stores = tuple(Store(len(inputs) + n, values[r]) for n, r in enumerate(results))
    nest = Nest((), 0, accesses, (Stage(False, stores),))
    kernel = Kernel(name, buffers, tuple(constants.params), (nest,), () if loc is None else (loc,))
    return NumberKernel(kernel, inputs, results, tuple(values[x.result] for x in lets))


def call_kernel(name: str, call: CallScalar, loc: Loc | None) -> Kernel:
    """A kernel of a function of `fusec.vectorize`, which checks where that may raise."""
    args = [expr("load", a.dtype, attr=n) for n, a in enumerate(call.args)]
    value = expr(CALLS[bool(call.words)], call.result.dtype, *args, attr=call.function)
    buffers = (*(Buffer(f"argument_{n}", a.dtype, (), "in") for n, a in enumerate(call.args)),
               _buffer(call.result, "out"))
    accesses = tuple(Access(n, ()) for n in range(len(buffers)))
    stage = Stage(False, (Store(len(args), value),))
    return Kernel(name, buffers, (), (Nest((), 0, accesses, (stage,)),),
                  () if loc is None else (loc,))


def _buffer(register: Register, role: str) -> Buffer:
    return Buffer(repr(register), register.dtype, (), "in" if role == "in" else "out")


def copy_kernel(name: str, shape: tuple[int, ...], dtype: np.dtype, loc: Loc | None) -> Kernel:
    """A kernel that copies an array."""
    return lower_copy(name, TensorType(dtype, shape), loc, "source")
