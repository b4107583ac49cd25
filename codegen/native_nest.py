"""What a back end gives to the runtime of a kernel: machine code, and the words to call it with."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fusec.ir.dims import Size

if TYPE_CHECKING:
    from .llvm import NativeCode

NEST_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
# What a nest with checks notes of the first that fails, as words.  The failure with the smallest
# (check, begin) stays, whichever thread met it: checks are numbered in the program's order, and
# begin is the first task of the call that failed.
RECORD = ("lock", "check", "begin", "index", "size")
NONE = -1  # the number of a word that an argument block does not have


@dataclass
class CompileStats:
    """What one request cost: new nests, milliseconds in code generation and in LLVM."""

    compiled: int = 0
    reused: int = 0
    codegen_ms: float = 0.0
    llvm_ms: float = 0.0


@dataclass(frozen=True)
class NativeNest:
    """Addresses of a form's functions, of `NEST_SIGNATURE`: they take the address of an argument
    block and do a range of the nest's tasks.  ``finish``, if not 0, is called once after all."""

    symbol: str
    entry: int
    finish: int
    code: NativeCode


@dataclass(eq=False)
class NestBlock:
    """A nest's argument block, 64-bit words, and which of them whoever runs it has to fill in.

    ``words`` hold all that is known already.  ``pointers``: (word, buffer of the kernel, byte
    offset) for each address of a buffer's memory; ``open``: words that are sizes of the run, and
    ``task_count``, if there is one, the number of tasks then.  ``status`` gets the address of a
    word that is set where a check fails, ``partials`` that of ``partial_bytes`` of memory for each
    task.  A point of the nest takes about ``ns`` on one thread.
    """

    words: np.ndarray
    pointers: tuple[tuple[int, int, Size], ...]
    open: tuple[tuple[int, Size], ...]
    tasks: Size
    points: Size
    ns: float
    sequential: bool  # tasks may store to one place
    in_order: bool  # and no runs of them are known that do not
    together: int  # tasks that one thread takes at least
    status: int = NONE
    partials: int = NONE
    task_count: int = NONE
    partial_bytes: int = 0  # of each task
