"""How fast this machine can stream: the yardstick behind *% of limit*.

A kernel that reads R arrays and writes W arrays can be no faster than one that does nothing else.
``streaming_seconds`` measures that one: explicit 64-byte vectors, four a turn, with ordinary and
with non-temporal stores, on one thread or several, and the best of them counts.  Buffers are hot
where they fit in a cache, as they are for the kernel being judged.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import time
from collections.abc import Callable

import numpy as np

from fusec.codegen.machine_code.llvm import compile_ir

LANES = 8
UNROLL = 4
BLOCK = LANES * UNROLL
TARGET_SECONDS = 4e-3
TRIES = 5
# One function with this many pointers is what the hardware's prefetchers still follow.
MAX_STREAMS = 16


def kernel_ir(reads: int, writes: int, nontemporal: bool) -> str:
    """LLVM IR of ``void stream(ptr arrays, i64 blocks, i64 repeats)`` over 64-byte vectors."""
    names = [f"%p{i}" for i in range(reads + writes)]
    pointers = "\n".join(
        f"  %s{i} = getelementptr ptr, ptr %arrays, i64 {i}\n  %p{i} = load ptr, ptr %s{i}"
        for i in range(len(names)))
    body = "\n".join(_vector(reads, writes, u, nontemporal) for u in range(UNROLL))
    metadata = "!0 = !{i32 1}" if nontemporal else ""
    return f"""
define void @stream(ptr %arrays, i64 %blocks, i64 %repeats) {{
entry:
{pointers}
  br label %again
again:
  %turn = phi i64 [0, %entry], [%turn1, %next]
  %number = uitofp i64 %turn to double
  %lane = insertelement <8 x double> poison, double %number, i32 0
  %seed = shufflevector <8 x double> %lane, <8 x double> poison, <8 x i32> zeroinitializer
  br label %loop
loop:
  %i = phi i64 [0, %again], [%i1, %loop]
  %at = mul i64 %i, {BLOCK}
{body}
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %blocks
  br i1 %more, label %loop, label %next
next:
  %turn1 = add i64 %turn, 1
  %repeat = icmp ult i64 %turn1, %repeats
  br i1 %repeat, label %again, label %done
done:
  ret void
}}
{metadata}
"""


def _vector(reads: int, writes: int, u: int, nontemporal: bool) -> str:
    """Load one vector of every input, add them up, store the sum to every output.

    The sum starts from the number of the turn, so that no turn's stores are those of the last.
    """
    lines, total = [f"  %o{u} = add i64 %at, {u * LANES}"], "%seed"
    for r in range(reads):
        lines += [f"  %a{u}.{r} = getelementptr double, ptr %p{r}, i64 %o{u}",
                  f"  %v{u}.{r} = load <8 x double>, ptr %a{u}.{r}, align 64",
                  f"  %t{u}.{r} = fadd <8 x double> {total}, %v{u}.{r}"]
        total = f"%t{u}.{r}"
    hint = ", !nontemporal !0" if nontemporal else ""
    for w in range(writes):
        lines += [f"  %b{u}.{w} = getelementptr double, ptr %p{reads + w}, i64 %o{u}",
                  f"  store <8 x double> {total}, ptr %b{u}.{w}, align 64{hint}"]
    if not writes:
        # The sum must be wanted by something, or the loads would be dropped as dead.
        lines += [f"  %e{u} = extractelement <8 x double> {total}, i32 0",
                  f'  call void asm sideeffect "", "x"(double %e{u})']
    return "\n".join(lines)


@functools.cache
def _kernel(reads: int, writes: int, nontemporal: bool) -> tuple[object, Callable[..., None]]:
    """The compiled kernel; the code object is kept alive beside the function."""
    code = compile_ir(kernel_ir(reads, writes, nontemporal))
    signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    return code, signature(code.address("stream"))


def aligned(count: int) -> np.ndarray:
    """``count`` float64 zeros starting at a multiple of 64 bytes."""
    raw = np.zeros(count + LANES)
    skip = (-raw.ctypes.data // 8) % LANES
    return raw[skip:skip + count]


def _run(kernel: Callable[..., None], tables: list[np.ndarray], blocks: int, turns: int) -> float:
    """Seconds of ``turns`` passes, one thread per table; ctypes releases the interpreter lock."""
    jobs = [threading.Thread(target=kernel, args=(table.ctypes.data, blocks, turns))
            for table in tables[1:]]
    start = time.perf_counter()
    for job in jobs:
        job.start()
    kernel(tables[0].ctypes.data, blocks, turns)
    for job in jobs:
        job.join()
    return time.perf_counter() - start


def _best(reads: int, writes: int, nbytes: int, threads: int, nontemporal: bool) -> float:
    """Best seconds of one pass over arrays of ``nbytes`` split among ``threads``."""
    _, kernel = _kernel(reads, writes, nontemporal)
    blocks = max(1, nbytes // (8 * BLOCK * threads))
    share = blocks * BLOCK
    arrays = [aligned(share * threads) for _ in range(reads + writes)]
    tables = [np.array([a.ctypes.data + 8 * share * t for a in arrays], dtype=np.uintp)
              for t in range(threads)]
    once = min(_run(kernel, tables, blocks, 1) for _ in range(2))
    turns = max(1, int(TARGET_SECONDS / max(once, 1e-7)))
    seconds = min(_run(kernel, tables, blocks, turns) for _ in range(TRIES)) / turns
    return seconds * nbytes / (8.0 * share * threads)


@functools.cache
def _measured(reads: int, writes: int, nbytes: int, threads: int) -> float:
    counts = sorted({1, threads})
    kinds = (False, True) if writes else (False,)
    return min(_best(reads, writes, nbytes, n, kind) for n in counts for kind in kinds)


def streaming_seconds(reads: int, writes: int, nbytes: int, threads: int = 1) -> float:
    """Best seconds to read ``reads`` and write ``writes`` arrays of ``nbytes`` bytes each.

    With several threads one thread is tried too: small arrays are faster that way.  Measured once
    per process for each (reads, writes, size to the nearest eighth of a power of two, threads).
    Streams beyond 16 are measured as 16 larger ones.
    """
    if reads + writes == 0 or nbytes <= 0:
        return 0.0
    streams = reads + writes
    if streams > MAX_STREAMS:
        fewer = max(1 if reads else 0, round(reads * MAX_STREAMS / streams))
        nbytes = nbytes * streams // MAX_STREAMS
        reads, writes = fewer, MAX_STREAMS - fewer
    rounded = round_size(nbytes)
    return _measured(reads, writes, rounded, threads) * nbytes / rounded


def round_size(nbytes: int) -> int:
    """The next of eight steps per power of two, so that near sizes share a measurement."""
    step = 1 << max(0, nbytes.bit_length() - 4)
    return max(256, -(-nbytes // step) * step)


def streaming_limit(reads: int, writes: int, nbytes: int, threads: int = 1) -> float:
    """The same as bytes per second over all streams together."""
    return (reads + writes) * nbytes / streaming_seconds(reads, writes, nbytes, threads)
