"""The native parts of the runtime, as LLVM IR text compiled in this process when first used.

Three libraries, each with a cached ``code()`` that compiles it: ``pool`` (fork-join over threads),
``allocator`` (recycled array memory; its lists are in ``blocks``) and ``launcher`` (one call of a
plan; its parts are ``guards``, ``stores``, ``outputs``, its tables ``records``).  The texts hold no
addresses, so their object code is position independent.
"""

from __future__ import annotations

import ctypes
import os

from fusec.codegen.machine_code import llvm


class NativeUnavailableError(RuntimeError):
    """This platform or NumPy lacks a feature that a native part needs; the message names it."""


def address_of(function: object) -> int:
    """The address of a ctypes foreign function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def libc_addresses(*names: str) -> dict[str, int]:
    """Addresses of C library functions, found in the symbols this process already has.

    Raises ``NativeUnavailableError`` where the C library has no such function (Windows).
    """
    if os.name != "posix":
        raise NativeUnavailableError(
            f"fusec's native runtime needs a POSIX C library, and this is {os.name!r}: results are "
            "the same, on one thread and without recycled memory")
    process = ctypes.CDLL(None)
    missing = [name for name in names if not hasattr(process, name)]
    if missing:
        raise NativeUnavailableError(f"the C library lacks {', '.join(missing)}")
    return {name: address_of(getattr(process, name)) for name in names}


def python_addresses(*names: str) -> dict[str, int]:
    """Addresses of functions of Python's C API."""
    return {name: address_of(getattr(ctypes.pythonapi, name)) for name in names}


def compile_forever(text: str, symbols: dict[str, int]) -> llvm.NativeCode:
    """Compile ``text`` against ``symbols`` and never unload it.

    Worker threads and dying arrays run this code until the very end of the process, after Python
    has cleared its modules, so the code keeps one reference that nobody gives back.
    """
    llvm.add_symbols(symbols)
    # These functions run for nanoseconds: a better optimiser costs more than it can save.
    code = llvm.compile_ir(text, speed=0)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code._engine))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    return code
