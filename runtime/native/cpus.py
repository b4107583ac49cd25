"""Requests of native code to the CPU and the scheduler: a spin hint, and CPUs to stay off."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

_LINUX = sys.platform == "linux"
_CPU_INFO = Path("/proc/cpuinfo")
AFFINITY_SYMBOLS = (
    ("sched_getcpu", "sched_getaffinity", "sched_setaffinity", "getpid") if _LINUX else ())

_ELSEWHERE = """
define internal i32 @current_cpu() {
  ret i32 -1
}

define internal i32 @avoid_cpu(i32 %avoided, i32 %cpu) {
  ret i32 %avoided
}
"""

_ON_LINUX = """
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
declare i32 @getpid()

define internal i32 @current_cpu() {
  %cpu = call i32 @sched_getcpu()
  ret i32 %cpu
}

define internal void @set_bit(ptr %mask, i32 %index, i8 %value) {
  %byte = lshr i32 %index, 3
  %place = getelementptr i8, ptr %mask, i32 %byte
  %low = and i32 %index, 7
  %shift = trunc i32 %low to i8
  %bit = shl i8 1, %shift
  %keep = xor i8 %bit, -1
  %old = load i8, ptr %place
  %cleared = and i8 %old, %keep
  %set = shl i8 %value, %shift
  %new = or i8 %cleared, %set
  store i8 %new, ptr %place
  ret void
}

; Move this thread's ban from CPU `avoided` (-1: none) to `cpu`; returns what is banned now.  The
; thread stays on CPUs that the process, which is its first thread, may use by now.  Where that
; would leave no CPU, or one numbered beyond the mask, the kernel refuses and nothing changes.
define internal i32 @avoid_cpu(i32 %avoided, i32 %cpu) {
entry:
  %mask = alloca [128 x i8], align 8
  %process = alloca [128 x i8], align 8
  %same = icmp eq i32 %avoided, %cpu
  %small = icmp ult i32 %cpu, 1024
  %different = xor i1 %same, true
  %change = and i1 %different, %small
  br i1 %change, label %read, label %unchanged
read:
  call void @llvm.memset.p0.i64(ptr %mask, i8 0, i64 128, i1 false)
  %got = call i32 @sched_getaffinity(i32 0, i64 128, ptr %mask)
  %ok = icmp sge i32 %got, 0
  br i1 %ok, label %ask, label %unchanged
ask:
  call void @llvm.memset.p0.i64(ptr %process, i8 0, i64 128, i1 false)
  %pid = call i32 @getpid()
  %found = call i32 @sched_getaffinity(i32 %pid, i64 128, ptr %process)
  %known = icmp sge i32 %found, 0
  br i1 %known, label %lift, label %unchanged
lift:
  %banned = icmp sge i32 %avoided, 0
  br i1 %banned, label %allow, label %ban
allow:
  call void @set_bit(ptr %mask, i32 %avoided, i8 1)
  br label %ban
ban:
  %own = load <16 x i64>, ptr %mask, align 8
  %whole = load <16 x i64>, ptr %process, align 8
  %both = and <16 x i64> %own, %whole
  store <16 x i64> %both, ptr %mask, align 8
  call void @set_bit(ptr %mask, i32 %cpu, i8 0)
  %set = call i32 @sched_setaffinity(i32 0, i64 128, ptr %mask)
  %done = icmp eq i32 %set, 0
  br i1 %done, label %changed, label %unchanged
changed:
  ret i32 %cpu
unchanged:
  ret i32 %avoided
}
"""


def affinity_text() -> str:
    """``@current_cpu`` and ``@avoid_cpu`` as LLVM IR; they do nothing but on Linux."""
    return _ON_LINUX if _LINUX else _ELSEWHERE


def pause_instruction() -> tuple[str, str]:
    """(declaration, instruction) that tells this kind of CPU that it is spinning."""
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64", "i686", "x86"):
        return "declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"
    if machine in ("arm64", "aarch64"):
        # `isb` waits some tens of cycles, as x86's `pause` does; `yield` is a no-op on most cores.
        return "declare void @llvm.aarch64.isb(i32)", "call void @llvm.aarch64.isb(i32 15)"
    return "", "fence acquire"


def cpu_model() -> str:
    """The system's name for this machine's CPU."""
    if _CPU_INFO.is_file():
        for line in _CPU_INFO.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "CPU part", "cpu"):
                return value.strip()
    return platform.processor() or platform.machine()
