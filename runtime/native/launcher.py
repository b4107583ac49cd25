"""The launcher's native half: one builtin function that runs any plan.

``fusec_launch`` is the body of a Python builtin (``METH_FASTCALL``) whose ``self`` is a capsule
over a plan: tables of machine words laid out by ``launch``.  It compares the
arguments with the plan, makes the outputs, stores pointers and scalars into the kernels' argument
words, takes the Variables that the call uses, runs the steps and returns the results.  It gives
back the ``MISS`` object when an argument does not fit (nothing was touched), ``BUSY`` when another
thread is inside this plan or has a Variable, ``FAILED`` when a kernel set the plan's status word.
"""

from __future__ import annotations

import functools

from fusec.codegen.machine_code import llvm
from fusec.runtime.native import (
    NativeUnavailableError,
    compile_forever,
    guards,
    holds,
    numpy_api,
    outputs,
    python_addresses,
    records,
    stores,
)

_PYTHON = ("Py_IncRef", "Py_DecRef", "PyCapsule_GetPointer", "PyLong_AsLongLongAndOverflow",
           "PyLong_FromLongLong", "PyFloat_FromDouble", "PyBool_FromLong", "PyComplex_FromDoubles",
           "PyTuple_New", "PyTuple_SetItem", "PyEval_SaveThread", "PyEval_RestoreThread",
           "PyErr_NoMemory", "PyObject_CallNoArgs")

_STORAGE = """
@miss = internal global ptr null
@busy = internal global ptr null
@failed = internal global ptr null
@true = internal global ptr null
@starter = internal global ptr null

declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyComplex_FromDoubles(double, double)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyErr_NoMemory()
declare ptr @PyObject_CallNoArgs(ptr)
declare ptr @PyArray_Scalar(ptr, ptr, ptr)
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare i32 @PyArray_SetBaseObject(ptr, ptr)
declare ptr @fusec_alloc(i64)
declare void @fusec_free(ptr)
declare ptr @fusec_new_array(ptr, i32, ptr, ptr, i64)
declare void @fusec_parallel_for(ptr, ptr, i64, i64)
declare i64 @fusec_pool_ready()

define void @fusec_launcher_setup(ptr %miss, ptr %busy, ptr %failed, ptr %true, ptr %starter) {
  store ptr %miss, ptr @miss
  store ptr %busy, ptr @busy
  store ptr %failed, ptr @failed
  store ptr %true, ptr @true
  store ptr %starter, ptr @starter
  ret void
}

define internal i64 @word(ptr %base, i64 %index) alwaysinline {
  %place = getelementptr i64, ptr %base, i64 %index
  %value = load i64, ptr %place
  ret i64 %value
}

define internal ptr @pointer(ptr %base, i64 %index) alwaysinline {
  %value = call i64 @word(ptr %base, i64 %index)
  %pointer = inttoptr i64 %value to ptr
  ret ptr %pointer
}

define internal ptr @new_reference(ptr %object) {
  call void @Py_IncRef(ptr %object)
  ret ptr %object
}
"""

_RUN = """
; Memory for intermediate values; false when it is exhausted.
define internal i1 @make_temps(ptr %plan) {
entry:
  %records = call ptr @pointer(ptr %plan, i64 plan.temps)
  %count = call i64 @word(ptr %plan, i64 plan.ntemps)
  %scratch = call ptr @pointer(ptr %plan, i64 plan.scratch)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %put ]
  %end = icmp sge i64 %i, %count
  br i1 %end, label %yes, label %one
one:
  %at = mul i64 %i, temp.SIZE
  %temp = getelementptr i64, ptr %records, i64 %at
  %nbytes = call i64 @word(ptr %temp, i64 temp.nbytes)
  %block = call ptr @fusec_alloc(i64 %nbytes)
  %place = getelementptr ptr, ptr %scratch, i64 %i
  store ptr %block, ptr %place
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %no, label %put
put:
  %address = ptrtoint ptr %block to i64
  %nstores = call i64 @word(ptr %temp, i64 temp.nstores)
  %stores = call ptr @pointer(ptr %temp, i64 temp.stores)
  call void @store_address(i64 %address, i64 %nstores, ptr %stores)
  %next = add i64 %i, 1
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}

define internal void @free_temps(ptr %plan) {
entry:
  %count = call i64 @word(ptr %plan, i64 plan.ntemps)
  %scratch = call ptr @pointer(ptr %plan, i64 plan.scratch)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %one ]
  %end = icmp sge i64 %i, %count
  br i1 %end, label %done, label %one
one:
  %place = getelementptr ptr, ptr %scratch, i64 %i
  %block = load ptr, ptr %place
  store ptr null, ptr %place
  call void @fusec_free(ptr %block)
  %next = add i64 %i, 1
  br label %loop
done:
  ret void
}

; Steps after one that left a code in the status word are not run.
define internal void @run_steps(ptr %plan) {
entry:
  %statusplace = getelementptr i64, ptr %plan, i64 plan.status
  %records = call ptr @pointer(ptr %plan, i64 plan.steps)
  %count = call i64 @word(ptr %plan, i64 plan.nsteps)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %ran ]
  %end = icmp sge i64 %i, %count
  br i1 %end, label %done, label %look
look:
  %status = load i64, ptr %statusplace
  %good = icmp eq i64 %status, 0
  br i1 %good, label %one, label %done
one:
  %at = mul i64 %i, step.SIZE
  %step = getelementptr i64, ptr %records, i64 %at
  %function = call ptr @pointer(ptr %step, i64 step.function)
  %arguments = call ptr @pointer(ptr %step, i64 step.arguments)
  %ntasks = call i64 @word(ptr %step, i64 step.ntasks)
  %grain = call i64 @word(ptr %step, i64 step.grain)
  %parallel = call i64 @word(ptr %step, i64 step.parallel)
  %next = add i64 %i, 1
  %serial = icmp eq i64 %parallel, 0
  br i1 %serial, label %inline, label %fork
inline:
  call void %function(ptr %arguments, i64 0, i64 %ntasks)
  br label %ran
fork:
  call void @fusec_parallel_for(ptr %function, ptr %arguments, i64 %ntasks, i64 %grain)
  br label %ran
ran:
  br label %loop
done:
  ret void
}

; Ask Python for worker threads when this process has none yet; false with an exception set.
define internal i1 @ensure_workers(i64 %flags) {
entry:
  %bit = and i64 %flags, FLAG_PARALLEL
  %serial = icmp eq i64 %bit, 0
  br i1 %serial, label %yes, label %look
look:
  %ready = call i64 @fusec_pool_ready()
  %cold = icmp eq i64 %ready, 0
  br i1 %cold, label %start, label %yes
start:
  %starter = load ptr, ptr @starter
  %answer = call ptr @PyObject_CallNoArgs(ptr %starter)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %no, label %started
started:
  call void @Py_DecRef(ptr %answer)
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}

define internal void @run(ptr %plan, i64 %flags) {
entry:
  %bit = and i64 %flags, FLAG_RELEASE_GIL
  %hold = icmp eq i64 %bit, 0
  br i1 %hold, label %held, label %released
held:
  call void @run_steps(ptr %plan)
  ret void
released:
  %state = call ptr @PyEval_SaveThread()
  call void @run_steps(ptr %plan)
  call void @PyEval_RestoreThread(ptr %state)
  ret void
}

; Everything between taking the plan and giving it back.
define internal ptr @execute(ptr %plan, ptr %args, i64 %nargs) {
entry:
  %flags = call i64 @word(ptr %plan, i64 plan.flags)
  %statusplace = getelementptr i64, ptr %plan, i64 plan.status
  store i64 0, ptr %statusplace
  call void @store_all(ptr %plan, ptr %args, i64 %nargs)
  %workers = call i1 @ensure_workers(i64 %flags)
  br i1 %workers, label %before, label %undo
before:
  %made = call i1 @make_outputs(ptr %plan, ptr %args, i64 0)
  br i1 %made, label %temps, label %undo
temps:
  %room = call i1 @make_temps(ptr %plan)
  br i1 %room, label %go, label %exhausted
exhausted:
  call void @free_temps(ptr %plan)
  %e = call ptr @PyErr_NoMemory()
  br label %undo
go:
  %holds = call ptr @pointer(ptr %plan, i64 plan.holds)
  %nholds = call i64 @word(ptr %plan, i64 plan.nholds)
  %taken = call i64 @fusec_hold_here(ptr %holds, i64 %nholds)
  %isours = icmp ne i64 %taken, 0
  br i1 %isours, label %steps, label %occupied
occupied:
  call void @free_temps(ptr %plan)
  call void @drop_outputs(ptr %plan)
  %busy = load ptr, ptr @busy
  %busy2 = call ptr @new_reference(ptr %busy)
  ret ptr %busy2
steps:
  call void @run(ptr %plan, i64 %flags)
  call void @fusec_give_back(ptr %holds, i64 %nholds)
  call void @free_temps(ptr %plan)
  %status = load i64, ptr %statusplace
  %good = icmp eq i64 %status, 0
  br i1 %good, label %after, label %bad
bad:
  call void @drop_outputs(ptr %plan)
  %failed = load ptr, ptr @failed
  %failed2 = call ptr @new_reference(ptr %failed)
  ret ptr %failed2
after:
  %finished = call i1 @make_outputs(ptr %plan, ptr %args, i64 1)
  br i1 %finished, label %gather, label %undo
gather:
  %object = call ptr @collect(ptr %plan, i64 %flags)
  %lost = icmp eq ptr %object, null
  br i1 %lost, label %undo, label %done
done:
  ret ptr %object
undo:
  call void @drop_outputs(ptr %plan)
  ret ptr null
}

; PyObject *launch(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
define ptr @fusec_launch(ptr %self, ptr %args, i64 %nargs) {
entry:
  %plan = call ptr @PyCapsule_GetPointer(ptr %self, ptr null)
  %wanted = call i64 @word(ptr %plan, i64 plan.nargs)
  %count = icmp eq i64 %nargs, %wanted
  br i1 %count, label %guard, label %miss
guard:
  %fit = call i1 @guard_all(ptr %plan, ptr %args, i64 %nargs)
  br i1 %fit, label %relate, label %miss
relate:
  %related = call i1 @relations_hold(ptr %plan, ptr %args)
  br i1 %related, label %watch, label %miss
watch:
  %unchanged = call i1 @words_hold(ptr %plan)
  br i1 %unchanged, label %take, label %miss
miss:
  %m = load ptr, ptr @miss
  %m2 = call ptr @new_reference(ptr %m)
  ret ptr %m2
take:
  %held = atomicrmw xchg ptr %plan, i64 1 acquire
  %free = icmp eq i64 %held, 0
  br i1 %free, label %run, label %busy
busy:
  %b = load ptr, ptr @busy
  %b2 = call ptr @new_reference(ptr %b)
  ret ptr %b2
run:
  %result = call ptr @execute(ptr %plan, ptr %args, i64 %nargs)
  store atomic i64 0, ptr %plan release, align 8
  ret ptr %result
}
"""


def type_offset() -> int:
    """The offset of ``ob_type`` in every object; free-threaded builds put more before it."""
    for offset in range(0, object.__basicsize__, numpy_api.WORD):
        if all(numpy_api.word(id(sample) + offset) == id(type(sample))
               for sample in (1.5, "text", (), [1])):
            return offset
    raise NativeUnavailableError("objects of this Python do not hold their type's address")


@functools.cache
def code_offset() -> int:
    """The offset of a function's code in the function object."""
    sample = type_offset
    for offset in range(0, type(sample).__basicsize__, numpy_api.WORD):
        if numpy_api.word(id(sample) + offset) == id(sample.__code__):
            return offset
    raise NativeUnavailableError("functions of this Python do not hold their code's address")


def _constants() -> dict[str, int]:
    """The names in the text that stand for numbers."""
    constants = dict(records.CONSTANTS)
    constants |= {f"AT_{name.upper()}": offset
                  for name, offset in vars(numpy_api.array_layout()).items()}
    return constants | {"AT_TYPE": type_offset()}


def source() -> str:
    """The launcher as LLVM IR text, for the object layouts of this Python and NumPy."""
    text = "".join((_STORAGE, guards.TEXT, stores.TEXT, outputs.TEXT, holds.TEXT, _RUN))
    constants = _constants()
    for name in sorted(constants, key=len, reverse=True):
        text = text.replace(name, str(constants[name]))
    return text


@functools.cache
def code() -> llvm.NativeCode:
    """The launcher's machine code.  The pool and the allocator must have been started before."""
    symbols = python_addresses(*_PYTHON) | numpy_api.addresses(
        "PyArray_Scalar", "PyArray_NewFromDescr", "PyArray_SetBaseObject")
    return compile_forever(source(), symbols)
