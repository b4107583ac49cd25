"""Functions of other libraries that exported code may call, and which has each."""

from __future__ import annotations

_OF_MEMORY = ("memcpy", "memmove", "memset", "malloc", "free")
_OF_THE_POOL = ("pthread_create", "pthread_detach", "syscall", "getpid", "getenv", "sched_yield")
_OF_NUMBERS = ("fmod", "fmodf", "fma", "fmaf")
LIBRARIES = {**dict.fromkeys((*_OF_MEMORY, *_OF_THE_POOL), "libc.so.6"),
             **dict.fromkeys(_OF_NUMBERS, "libm.so.6")}
