"""The interpreter's lock and signals in native loops, as LLVM IR text.

A native loop begins with the lock held.  It gives it up before work of more than some 50 us, takes
it back around calls of Python and at its end, and every 100 ms lets Python handle signals.  Two
words of the loop's block hold its state: Python's thread state while the lock is given up, and when
signals were last handled.
"""

from __future__ import annotations

import functools
import os
import time

from fusec.codegen.plan.control_program import CALLS
from fusec.runtime.native import address_of, compile_forever, libc_addresses, python_addresses

SIGNALS_EVERY_NS = 100_000_000  # waiting for the lock may take a switch interval of 5 ms each time

_TEXT = """
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @PyErr_CheckSignals()
declare ptr @PyObject_CallNoArgs(ptr)
declare i32 @PyObject_IsTrue(ptr)
declare void @Py_DecRef(ptr)
@fusec_nothing = external global i8

; Give the lock up, unless that is done.
define void @release(ptr %state) {
entry:
  %thread = load ptr, ptr %state
  %held = icmp eq ptr %thread, null
  br i1 %held, label %give, label %done
give:
  %mine = call ptr @PyEval_SaveThread()
  store ptr %mine, ptr %state
  br label %done
done:
  ret void
}

; Take it back, unless it is held.
define void @hold(ptr %state) {
entry:
  %thread = load ptr, ptr %state
  %held = icmp eq ptr %thread, null
  br i1 %held, label %done, label %take
take:
  store ptr null, ptr %state
  call void @PyEval_RestoreThread(ptr %thread)
  br label %done
done:
  ret void
}

; Call a Python object: 0 when it answers True, 1 when not, 2 when an exception is set.
define i64 @call_python(ptr %state, ptr %callable) {
entry:
  call void @hold(ptr %state)
  %answer = call ptr @PyObject_CallNoArgs(ptr %callable)
  %raised = icmp eq ptr %answer, null
  br i1 %raised, label %exception, label %look
exception:
  ret i64 2
look:
  %good = call i32 @PyObject_IsTrue(ptr %answer)
  call void @Py_DecRef(ptr %answer)
  %bad = icmp ne i32 %good, 1
  %code = zext i1 %bad to i64
  ret i64 %code
}

; Between two iterations after much work; nonzero, and the lock held, when a handler raised, or
; another thread asked for an exception in this one: Python raises that where it begins a function.
define i64 @poll(ptr %state) {
entry:
  %place = getelementptr i64, ptr %state, i64 1
  %last = load i64, ptr %place
  %now = call i64 @now()
  %first = icmp eq i64 %last, 0
  br i1 %first, label %begin, label %compare
begin:
  store i64 %now, ptr %place
  br label %on
compare:
  %passed = sub i64 %now, %last
  %due = icmp sgt i64 %passed, SIGNALS_EVERY_NS
  br i1 %due, label %look, label %on
look:
  store i64 %now, ptr %place
  call void @hold(ptr %state)
  %raised = call i32 @PyErr_CheckSignals()
  %bad = icmp ne i32 %raised, 0
  br i1 %bad, label %leave, label %ask
ask:
  %answer = call ptr @PyObject_CallNoArgs(ptr @fusec_nothing)
  %asked = icmp eq ptr %answer, null
  br i1 %asked, label %leave, label %drop
drop:
  call void @Py_DecRef(ptr %answer)
  br label %on
leave:
  ret i64 1
on:
  call void @release(ptr %state)
  ret i64 0
}
"""

_POSIX_CLOCK = """
declare i32 @clock_gettime(i32, ptr)

define internal i64 @now() {
  %time = alloca [2 x i64], align 8
  %r = call i32 @clock_gettime(i32 CLOCK, ptr %time)
  %seconds = load i64, ptr %time
  %place = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %place
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %rest
  ret i64 %sum
}
"""

_WINDOWS_CLOCK = """
declare i64 @GetTickCount64()

define internal i64 @now() {
  %ms = call i64 @GetTickCount64()
  %ns = mul i64 %ms, 1000000
  ret i64 %ns
}
"""


def source() -> str:
    """The functions as LLVM IR text."""
    if os.name == "posix":
        clock = _POSIX_CLOCK.replace("CLOCK", str(int(time.CLOCK_MONOTONIC)))
    else:
        clock = _WINDOWS_CLOCK
    return clock + _TEXT.replace("SIGNALS_EVERY_NS", str(SIGNALS_EVERY_NS))


def _nothing() -> None:
    """Called by a poll, so that Python handles pending signals and calls of this thread."""


def _clock_symbols() -> dict[str, int]:
    if os.name == "posix":
        return libc_addresses("clock_gettime")
    import ctypes

    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined, unused-ignore]
    return {"GetTickCount64": address_of(kernel.GetTickCount64)}


@functools.cache
def addresses() -> dict[str, int]:
    """The addresses of `fusec.codegen.plan.control_program.CALLS`, compiled at first use."""
    python = python_addresses(
        "PyEval_SaveThread", "PyEval_RestoreThread", "PyErr_CheckSignals", "PyObject_CallNoArgs",
        "PyObject_IsTrue", "Py_DecRef")
    symbols = _clock_symbols() | python | {"fusec_nothing": id(_nothing)}
    code = compile_forever(source(), symbols)
    return {name: code.address(name) for name in CALLS}
