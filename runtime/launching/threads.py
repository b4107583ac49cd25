"""Worker threads for kernels: how many, started when first needed, safe under fork and at exit.

The workers are daemon threads of Python's own, each inside one native call that never takes the
GIL (see ``fusec.runtime.native.pool``).  ``parallel_for`` splits a range of tasks over them; where
there is one thread, little work, a nested or a concurrent call, the caller does all the work.

The process has a pool of workers.  A device that keeps to some of the cores has one of its own:
kernels that run on the device's thread use its workers (`enter`), all others the process's.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import weakref
from collections.abc import Callable

from fusec import config
from fusec.codegen.machine_code import llvm
from fusec.core import locks, log
from fusec.runtime.native import pool, pool_words

_JOIN_SECONDS = 1.0


# ---- the native half -------------------------------------------------------------------------

class _Native:
    """The compiled pool's entry points, all resolved at once: a forked child must not ask LLVM,
    whose lock another thread may have held at the fork.
    """

    def __init__(self) -> None:
        code = pool.code()
        pointer, integer = ctypes.c_void_p, ctypes.c_int64

        def function(name: str, *argtypes: type) -> Callable[..., None]:
            return ctypes.CFUNCTYPE(None, *argtypes)(code.address(name))

        self.worker_main = function("fusec_worker_main", pointer)
        self.parallel_for = function("fusec_parallel_for", pointer, pointer, integer, integer)
        self.configure = function("fusec_pool_configure", pointer, integer, integer)
        self.invalidate = function("fusec_pool_invalidate", pointer)
        self.stop = function("fusec_pool_stop", pointer)
        self.reset = function("fusec_pool_reset", pointer)
        self.enter = function("fusec_pool_enter", pointer)
        self.has_key = False
        self.make_key: Callable[[], int] = ctypes.CFUNCTYPE(ctypes.c_int)(
            code.address("fusec_pool_make_key"))
        self.addresses = {name: code.address(name) for name in _EXPORTS}
        llvm.add_symbols(self.addresses)
        _workers.address = ctypes.CFUNCTYPE(pointer)(code.address("fusec_process_pool"))()
        self.reset(_workers.address)


_EXPORTS = ("fusec_parallel_for", "fusec_pool_workers", "fusec_pool_ready")
_making = locks.Lock()
_made: list[_Native] = []


def _native() -> _Native:
    """The native pool, compiled at first use by one thread."""
    if not _made:
        with _making:
            if not _made:
                _made.append(_Native())
    return _made[0]


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


# ---- pools -----------------------------------------------------------------------------------

class Pool:
    """Workers that share tasks with the thread that calls: the process's, or one device's.

    ``wanted`` counts that thread, too; where it is None, it is ``config.num_threads``.  The workers
    keep to the CPUs ``cores``; where that is empty, to those that the process may use.
    """

    def __init__(self, name: str, wanted: int | None = None, cores: tuple[int, ...] = ()) -> None:
        self.guard = locks.Lock()
        self.name, self.cores, self._wanted = name, cores, wanted
        self.threads: list[threading.Thread] = []
        self.ready = False
        self.address = 0  # of its words, once there is native code
        _pools.add(self)

    @property
    def wanted(self) -> int:
        """Threads that a kernel may use, the calling thread included."""
        if self._wanted is None:
            self._wanted = config.num_threads
        return self._wanted

    def resize(self, n: int) -> None:
        """Let kernels use ``n`` threads.

        Fewer than before leaves the spare workers asleep; more are started by the next parallel
        call.
        """
        with self.guard:
            self._wanted = n
            self.ready = False
            if self.address:
                self._admit()
                _native().invalidate(self.address)

    def start(self) -> int:
        """Start the missing workers (none after interpreter exit began); how many exist then."""
        if self.ready or _ending:
            return len(self.threads)
        with self.guard:
            self.make_words()
            try:
                self._start_workers(_native().worker_main)
            finally:  # those that there are work, and calls do not try again
                self._admit()
                self.ready = True
            return len(self.threads)

    def make_words(self) -> None:
        """Take a block for its words, unless that is done."""
        native = _native()
        if not self.address:
            self.address = _free.pop() if _free else _new_block()
            native.reset(self.address)

    def _start_workers(self, main: Callable[[int], None]) -> None:
        while len(self.threads) < self.wanted - 1:
            name = f"fusec-{self.name}-{len(self.threads)}"
            thread = threading.Thread(target=self._work, args=(main,), name=name, daemon=True)
            try:
                thread.start()
            except (RuntimeError, MemoryError) as error:  # a limit of the system or of a container
                self._warn_of_threads(error)
                return
            self.threads.append(thread)

    def _work(self, main: Callable[[int], None]) -> None:
        keep_to(self.cores)
        main(self.address)

    def _warn_of_threads(self, error: Exception) -> None:
        log.write(log.WARN, f"only {1 + len(self.threads)} of {self.wanted} threads could be "
                            f"started ({error}): kernels run on those; set "
                            f"fusec.config.num_threads to fewer, or raise the limit (ulimit -u)")

    def _admit(self) -> None:
        """Tell the native side how many workers exist and how many a job may use."""
        started = len(self.threads)
        _native().configure(self.address, started, min(started, self.wanted - 1))

    def stop(self) -> bool:
        """Send the workers home; whether all have gone."""
        with self.guard:
            if self.address:
                _native().stop(self.address)
            for thread in self.threads:
                thread.join(_JOIN_SECONDS)
            return not any(thread.is_alive() for thread in self.threads)

    def close(self) -> None:
        """Stop, and give the words' block to the next pool.  No thread uses its kernels by then."""
        if self.stop() and self.address:
            _free.append(self.address)
            self.address = 0
            self.ready = False
            self.threads = []

    def forget_threads(self) -> None:
        """In a forked child no worker exists: begin anew."""
        self.threads = []
        self.ready = False
        if self.address:
            _native().reset(self.address)


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()
_workers = Pool("worker")
_free: list[int] = []  # blocks of pools that are closed
_ending = False


def _new_block() -> int:
    """Memory for a pool's words, which is never given back: threads may look at it to the end."""
    buffer = ctypes.create_string_buffer(pool_words.POOL_BYTES + pool_words.POOL_ALIGN)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(buffer))
    return -(-ctypes.addressof(buffer) // pool_words.POOL_ALIGN) * pool_words.POOL_ALIGN


class _Here(threading.local):
    """The pool that this thread's kernels use."""

    pool = _workers


_here = _Here()


def get_num_threads() -> int:
    """Threads a parallel kernel may use, the calling thread included."""
    return _workers.wanted


def set_num_threads(n: int) -> None:
    """Let parallel kernels use ``n`` threads; ``ValueError`` unless 1 <= n <= 1024.

    Fewer than before leaves the spare workers asleep; more are started by the next parallel call.
    """
    if not isinstance(n, int) or not 1 <= n <= pool.MAX_WORKERS + 1:
        raise ValueError(
            f"set_num_threads({n!r}): give an integer from 1 to {pool.MAX_WORKERS + 1}")
    _workers.resize(n)


def ensure_workers() -> int:
    """Start the missing workers of this thread's pool (none after interpreter exit began); returns
    how many exist.
    """
    return _here.pool.start()


def enter(own: Pool) -> None:
    """Let kernels that this thread runs use a pool of its own.

    Raises ``NativeUnavailableError`` where there are no native pools (off POSIX), and ``OSError``
    where the C library cannot tell threads apart any more.
    """
    native = _native()
    with _making:
        if not native.has_key:
            if native.make_key():
                raise OSError("the C library has no key left for data of threads")
            native.has_key = True
    own.make_words()
    native.enter(own.address)
    _here.pool = own


def keep_to(cores: tuple[int, ...]) -> None:
    """Let this thread run on these CPUs alone, where there are any and the system is Linux."""
    if not cores or not hasattr(os, "sched_setaffinity"):
        return
    try:
        os.sched_setaffinity(0, cores)
    except OSError as error:  # the process may not use them any more
        names = ", ".join(map(str, cores))
        log.write(log.WARN, f"{threading.current_thread().name} cannot keep to the CPUs {names} "
                            f"({error}): it runs on any")


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
    for each in list(_pools):
        each.forget_threads()


def _at_exit() -> None:
    """Send the workers home before Python tears its modules down."""
    global _ending
    _ending = True
    for each in list(_pools):
        if each.threads:
            each.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)

config.on_change("num_threads", set_num_threads, call_now=True)
