"""Worker threads for kernels: how many, started when first needed, safe under fork and at exit.

The workers are daemon threads of Python's own, each inside one native call that never takes the
GIL (see ``fusec.runtime.native.pool``).  ``parallel_for`` splits a range of tasks over them; where
there is one thread, little work, a nested or a concurrent call, the caller does all the work.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Callable

from fusec import config, locks
from fusec.codegen import llvm
from fusec.inspect import log
from fusec.runtime.native import pool

_JOIN_SECONDS = 1.0


# ---- the pool --------------------------------------------------------------------------------

class _Workers:
    """The pool's Python half: the wanted number of threads, and the threads started so far."""

    def __init__(self) -> None:
        self.guard = locks.Lock()
        self.wanted: int | None = None
        self.threads: list[threading.Thread] = []
        self.ready = False
        self.stopped = False
        self.native: _Native | None = None


_workers = _Workers()


def get_num_threads() -> int:
    """Threads a parallel kernel may use, the calling thread included."""
    if _workers.wanted is None:
        _workers.wanted = config.num_threads
    return _workers.wanted


def set_num_threads(n: int) -> None:
    """Let parallel kernels use ``n`` threads; ``ValueError`` unless 1 <= n <= 1024.

    Fewer than before leaves the spare workers asleep; more are started by the next parallel call.
    """
    if not isinstance(n, int) or not 1 <= n <= pool.MAX_WORKERS + 1:
        raise ValueError(
            f"set_num_threads({n!r}): give an integer from 1 to {pool.MAX_WORKERS + 1}")
    with _workers.guard:
        _workers.wanted = n
        _workers.ready = False
        if _workers.native is not None:
            _admit()
            _workers.native.invalidate()


class _Native:
    """The compiled pool's entry points, all resolved at once: a forked child must not ask LLVM,
    whose lock another thread may have held at the fork.
    """

    def __init__(self) -> None:
        code = pool.code()
        pointer, integer = ctypes.c_void_p, ctypes.c_int64

        def function(name: str, *argtypes: type) -> Callable[..., None]:
            return ctypes.CFUNCTYPE(None, *argtypes)(code.address(name))

        self.worker_main = function("fusec_worker_main")
        self.parallel_for = function("fusec_parallel_for", pointer, pointer, integer, integer)
        self.configure = function("fusec_pool_configure", integer, integer)
        self.invalidate = function("fusec_pool_invalidate")
        self.stop = function("fusec_pool_stop")
        self.reset = function("fusec_pool_reset")
        self.addresses = {name: code.address(name) for name in _EXPORTS}
        llvm.add_symbols(self.addresses)
        self.reset()


_EXPORTS = ("fusec_parallel_for", "fusec_pool_workers", "fusec_pool_ready")
_making = locks.Lock()


def _native() -> _Native:
    """The native pool, compiled at first use by one thread."""
    if _workers.native is None:
        with _making:
            _workers.native = _workers.native or _Native()
    return _workers.native


def symbol_addresses() -> dict[str, int]:
    """Addresses for native callers: ``fusec_parallel_for`` is
    ``void (ptr fn, ptr args, i64 ntasks, i64 grain)`` with ``fn`` = ``void (ptr, i64, i64)``;
    ``fusec_pool_workers`` is ``i64 ()``, the workers that exist now; ``fusec_pool_ready`` is
    ``i64 ()``, zero when ``ensure_workers`` would do something.

    Modules compiled afterwards may also just ``declare`` them.  A native caller runs serially
    until ``ensure_workers`` has been called in this process.
    """
    return dict(_native().addresses)


def pool_address() -> int:
    """The address of ``fusec_parallel_for``."""
    return _native().addresses["fusec_parallel_for"]


def ensure_workers() -> int:
    """Start the missing workers (none after interpreter exit began); returns how many exist."""
    if _workers.ready or _workers.stopped:
        return len(_workers.threads)
    with _workers.guard:
        try:
            _start_workers(_native().worker_main)
        finally:  # those that there are work, and calls do not try again
            _admit()
            _workers.ready = True
        return len(_workers.threads)


def _start_workers(main: Callable[[], None]) -> None:
    while len(_workers.threads) < get_num_threads() - 1:
        name = f"fusec-worker-{len(_workers.threads)}"
        thread = threading.Thread(target=main, name=name, daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:  # a limit of the system or of a container
            _warn_of_threads(error)
            return
        _workers.threads.append(thread)


def _warn_of_threads(error: Exception) -> None:
    log.write(log.WARN, f"only {1 + len(_workers.threads)} of {get_num_threads()} threads could be "
                        f"started ({error}): kernels run on those; set fusec.config.num_threads to "
                        f"fewer, or raise the limit (ulimit -u)")


def _admit() -> None:
    """Tell the native side how many workers exist and how many a job may use."""
    started = len(_workers.threads)
    _native().configure(started, min(started, get_num_threads() - 1))


def parallel_for(fn_address: int, args_address: int, ntasks: int, grain: int) -> None:
    """Run ``fn(args, begin, end)`` over tasks 0..ntasks in blocks of ``grain``, on all threads.

    ``fn_address`` is a native ``void (ptr args, i64 begin, i64 end)``.  Returns when all tasks are
    done; the GIL is released meanwhile.
    """
    if ntasks > grain:
        ensure_workers()
    _native().parallel_for(fn_address, args_address, ntasks, grain)


# ---- fork and exit ---------------------------------------------------------------------------

def _after_fork() -> None:
    """In a forked child no worker exists: begin anew."""
    _workers.threads = []
    _workers.ready = False
    if _workers.native is not None:
        _workers.native.reset()


def _at_exit() -> None:
    """Send the workers home before Python tears its modules down."""
    _workers.stopped = True
    if _workers.threads:
        _native().stop()
        for thread in _workers.threads:
            thread.join(_JOIN_SECONDS)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)

config.on_change("num_threads", set_num_threads, call_now=True)
