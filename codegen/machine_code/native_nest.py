"""A compiled nest as the runtime gets it: machine code, and the argument block to call it with."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from fusec.core.records import dataclass, field
from fusec.ir.sizes.dims import Size

if TYPE_CHECKING:
    from .llvm import NativeCode

NEST_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
# The words in which a nest records its first failed check.  Several threads may fail at once: the
# failure with the smallest (check, begin) wins, so the record does not depend on timing.  Checks
# are numbered in program order; begin is the first task of the range in which the check failed.
RECORD = ("lock", "check", "begin", "index", "size")
NONE = -1  # the number of a word that an argument block does not have


@dataclass
class CompileStats:
    """The cost of one compile request: new and reused nests, ms in codegen, LLVM, and other
    compilers by name."""

    compiled: int = 0
    reused: int = 0
    codegen_ms: float = 0.0
    llvm_ms: float = 0.0
    others_ms: dict[str, float] = field(default_factory=dict)

    def add(self, compiler: str, ms: float) -> None:
        """Time in a compiler other than LLVM."""
        self.others_ms[compiler] = self.others_ms.get(compiler, 0.0) + ms


@dataclass(frozen=True)
class NativeNest:
    """The addresses of a form's functions, both of type `NEST_SIGNATURE`.

    ``entry`` takes the address of an argument block and a range of tasks, and runs these tasks.
    ``finish``, unless 0, is called once after all tasks are done.
    """

    symbol: str
    entry: int
    finish: int
    code: NativeCode


@dataclass(eq=False)
class NestBlock:
    """A nest's argument block of 64-bit words, and which of them the caller has to fill in.

    ``words``: the block, with everything that is known at compile time.
    ``pointers``: (word, buffer of the kernel, byte offset) for each word that takes an address.
    ``open``: (word, size) for each word that takes a run-time size; ``task_count`` is the word for
    the number of tasks, where that is a run-time size.
    ``status``: the word for the address of a flag that a failed check sets.
    ``partials``: the word for the address of partial results, ``partial_bytes`` for each task.
    ``ns``: the estimated time of one point on one thread.
    """

    words: np.ndarray
    pointers: tuple[tuple[int, int, Size], ...]
    open: tuple[tuple[int, Size], ...]
    tasks: Size
    points: Size
    ns: float
    sequential: bool  # two tasks may store to the same element
    in_order: bool  # sequential, and no grouping of tasks is known to avoid that
    together: int  # the least number of tasks that one thread takes
    status: int = NONE
    partials: int = NONE
    task_count: int = NONE
    partial_bytes: int = 0  # for each task
