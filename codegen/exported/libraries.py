"""Functions of other libraries that exported code may call, and which has each."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

_OF_MEMORY = ("memcpy", "memmove", "memset", "malloc", "free")
_OF_THE_POOL = ("pthread_create", "pthread_detach", "syscall", "getpid", "getenv", "sched_yield")
_OF_NUMBERS = ("fmod", "fmodf", "fma", "fmaf", "pow")
LIBRARIES = {**dict.fromkeys((*_OF_MEMORY, *_OF_THE_POOL), "libc.so.6"),
             **dict.fromkeys(_OF_NUMBERS, "libm.so.6")}
_MACRO_NAMES = (  # that take arguments; the C library has many more as functions, too
    "assert alloca fpclassify isfinite isgreater isgreaterequal isless islessequal islessgreater "
    "isnormal issignaling issubnormal isunordered iszero iseqsig main offsetof setjmp signbit "
    "sigmask sigsetjmp strdupa strndupa timeradd timerclear timercmp timerisset timersub va_arg "
    "va_copy va_end va_start")
_MACROS = frozenset(_MACRO_NAMES.split())
# Names N of libraries that programs link as -lN, and such that <unistd.h> has the macro N_OK.
_LIBRARY_NAMES = "anl c crypt dl gcc gcc_s m mvec nsl pthread resolv rt util f r w x F R W X"
TAKEN_LIBRARIES = frozenset(_LIBRARY_NAMES.split())


@cache
def _c_library() -> tuple[Any, ...]:
    try:
        return ctypes.CDLL("libc.so.6"), ctypes.CDLL("libm.so.6")
    except OSError:  # another C library than glibc
        return (ctypes.CDLL(None),)


def is_of_c(name: str) -> bool:
    """Whether the C library has the name: a function of a library would take its place in all of
    the process."""
    return name in _MACROS or any(hasattr(library, name) for library in _c_library())
