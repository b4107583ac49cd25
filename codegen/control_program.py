"""A branch or loop as one compiled function: what Python must put into its argument block, and do
when it is called from there or when it leaves early.

A back end that compiles such functions makes a `ControlProgram`; the runtime calls it.  The block
is an array of 64-bit words; the function is ``i64 run(ptr block)`` and gives 0, or 1 plus the
number of the `ErrorExit` that was taken.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fusec.ir import Node, TensorType
from fusec.ir.dims import Size

if TYPE_CHECKING:
    from .llvm import NativeCode
    from .native_nest import NativeNest, NestBlock

RUN = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
CALLS = ("release", "hold", "call_python", "poll")  # of the lock, each told where its state is
OF_NOTHING = -2  # the axis of an error exit for an extremum of nothing


@dataclass(frozen=True)
class Word:
    """One word of the block: ``kind`` says what Python puts there.

    ``number``: a constant; ``operand`` and ``target``: the address of an operand, of a result;
    ``scalar``: the bits of an operand; ``rest``: the second half of the number in the word before;
    ``temp``: the address of fresh memory of ``value`` bytes; ``nest``: the address of a nest's
    block; ``code`` and ``finish``: of its functions; ``pool``: of the function that spreads tasks
    over threads; ``work``: the ns that one of a nest's tasks takes; those of `CALLS`: of
    functions of the interpreter's lock, and ``lock``: their state; ``size``: the value of a symbol
    that was decided before; ``result``: where a scalar result is stored; ``callback``: of Python's
    side of a host call, and ``host``: what is passed to it and back; ``index``: the index that is
    out of range and, where only the run knows it, the size; ``left``: where a result's memory is
    when the function is left early; ``failure``: the status of nests, then their record
    (`RECORD` of `.native_nest`).
    """

    kind: str
    value: int = 0


@dataclass(frozen=True)
class ErrorExit:
    """An index out of range: the node that picks, the axis, its size (None: as the code noted).

    Those of a kernel's own checks are in the ``failure`` words.  ``call``: a scalar function that
    raised, by its symbol, and the ``host`` words of its arguments.
    """

    node: Node
    axis: int = -1
    size: Size | None = 0
    call: tuple[str, tuple[tuple[int, np.dtype], ...]] | None = None


@dataclass(frozen=True)
class HostSize:
    """An axis of an array whose size only the run knows, and the word that holds it: Python writes
    it where the call ``defines`` it, the native function does otherwise."""

    axis: int
    word: int
    defines: bool


@dataclass(frozen=True)
class HostValue:
    """A word: the bits of a number, or with ``strides`` the address of an array."""

    word: int
    type: TensorType
    strides: tuple[int, ...] | None
    sizes: tuple[HostSize, ...] = ()


@dataclass(frozen=True)
class HostSite:
    """A call of Python in a native function; the order is neither operand nor result."""

    node: Node
    name: str
    operands: tuple[HostValue, ...]
    results: tuple[HostValue, ...]


@dataclass(frozen=True)
class LoopNest:
    """A nest of fused loops that the function calls: its block, filled for the largest sizes."""

    block: NestBlock
    code: NativeNest


@dataclass
class ControlProgram:
    """A compiled control node: ``operands`` in the node's order, ``words`` as `Word` says."""

    node: Node
    address: int
    code: NativeCode
    words: list[Word]
    nests: list[LoopNest]
    exits: list[ErrorExit]
    copied: list[int]  # results that start as copies of these operands; -1: made by the function
    sites: list[HostSite]  # where it calls Python
    passed: list[str]  # the symbols of its ``size`` words
