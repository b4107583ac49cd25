"""``fusec.clear_caches``: drop this process's traces, plans and code."""

from __future__ import annotations

import ctypes
import gc
import os
import sys

from fusec.dispatch.function import every_function


def clear_caches() -> None:
    """Forget every trace of every jitted function, and give their memory back.

    That is machine code, which is freed with the last trace that uses it, constants that traces
    hold, and memory of results that is kept for the next ones (`memory_cap_bytes`).  Functions
    work on and are traced again at their next call.  A call that another thread is in ends as it
    began.  Machine code on disk stays (``python -m fusec cache --clear``), and so does
    `fusec.history()`.
    """
    for function in every_function():
        function.clear()
    if "fusec.codegen.backends" in sys.modules:  # else nothing was compiled
        sys.modules["fusec.codegen.backends"].clear_caches()
    gc.collect()  # traces refer to themselves, and their constants come from the memory kept
    if "fusec.runtime.memory" in sys.modules:
        sys.modules["fusec.runtime.memory"].release_memory()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:  # glibc keeps what was freed
        trim(ctypes.c_size_t(0))
