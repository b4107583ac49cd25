"""The array allocator's native half: big blocks are kept in size classes and given out again.

Arrays are made over our block and then given ``OWNDATA`` and our handler, as NumPy's own
allocation does; switching NumPy's current handler (``PyDataMem_SetHandler``) would cost two context
variable changes a call.
"""

from __future__ import annotations

import functools

from fusec.codegen.machine_code import llvm
from fusec.runtime.native import (
    blocks,
    compile_forever,
    cpus,
    libc_addresses,
    numpy_api,
    python_addresses,
)

# NumPy's own tracemalloc domain, NPY_TRACE_DOMAIN of ndarraytypes.h.
_TRACE_DOMAIN = 389047

# The order of the words that `fusec_memory_stats` writes.
STATS = ("cap_bytes", "retained_bytes", "retained_blocks", "live_bytes", "hits", "misses",
         "evictions", "contended")

_STORAGE = """
@lock = internal global i32 0, align 128
@cap_bytes       = internal global i64 0, align 64
@retained_bytes  = internal global i64 0
@retained_blocks = internal global i64 0
@evictions       = internal global i64 0
@hand            = internal global i64 0                       ; the class to evict from next
@live_bytes      = internal global i64 0, align 64
@hits            = internal global i64 0
@misses          = internal global i64 0
@contended       = internal global i64 0
@counts = internal global [CLASSES x i64] zeroinitializer, align 64
@slots  = internal global [CLASSES x [SLOTS x ptr]] zeroinitializer, align 64
@array_type = internal global ptr null
@handler    = internal global ptr null

; block header: what to free, the size class (-1: none), bytes of data
%header = type { ptr, i64, i64 }

declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)
declare void @Py_IncRef(ptr)
declare ptr @PyErr_NoMemory()
declare i32 @PyTraceMalloc_Track(i32, i64, i64)
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.ctlz.i64(i64, i1)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

_HANDLER = """
; NumPy's memory handler, version 1 (NEP 49).
define ptr @handler_malloc(ptr %context, i64 %size) {
  %data = call ptr @fusec_alloc(i64 %size)
  ret ptr %data
}

define void @handler_free(ptr %context, ptr %data, i64 %size) {
  call void @fusec_free(ptr %data)
  ret void
}

define ptr @handler_calloc(ptr %context, i64 %count, i64 %each) {
entry:
  %product = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %count, i64 %each)
  %size = extractvalue { i64, i1 } %product, 0
  %overflow = extractvalue { i64, i1 } %product, 1
  br i1 %overflow, label %none, label %take
take:
  %data = call ptr @fusec_alloc(i64 %size)
  %failed = icmp eq ptr %data, null
  br i1 %failed, label %none, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %data, i8 0, i64 %size, i1 false)
  ret ptr %data
none:
  ret ptr null
}

; A block keeps its place while at least half of it stays in use.
define ptr @handler_realloc(ptr %context, ptr %old, i64 %size) {
entry:
  %first = icmp eq ptr %old, null
  br i1 %first, label %fresh, label %measure
fresh:
  %made = call ptr @fusec_alloc(i64 %size)
  ret ptr %made
measure:
  %header = call ptr @header_of(ptr %old)
  %sizeplace = getelementptr %header, ptr %header, i64 0, i32 2
  %have = load i64, ptr %sizeplace
  %fits = icmp ule i64 %size, %have
  %half = lshr i64 %have, 1
  %used = icmp uge i64 %size, %half
  %stay = and i1 %fits, %used
  br i1 %stay, label %same, label %move
same:
  ret ptr %old
move:
  %new = call ptr @fusec_alloc(i64 %size)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %none, label %copy
none:
  ret ptr null
copy:
  %common = call i64 @llvm.umin.i64(i64 %size, i64 %have)
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %old, i64 %common, i1 false)
  call void @fusec_free(ptr %old)
  ret ptr %new
}
"""

_ARRAYS = """
define void @fusec_memory_setup(ptr %array_type, ptr %handler, i64 %cap) {
  store ptr %array_type, ptr @array_type
  store ptr %handler, ptr @handler
  store atomic i64 %cap, ptr @cap_bytes seq_cst, align 8
  ret void
}

define void @fusec_memory_cap(i64 %cap) {
  store atomic i64 %cap, ptr @cap_bytes seq_cst, align 8
  call void @fusec_memory_trim(i64 %cap)
  ret void
}

; A new array (new reference), not initialised; null with an exception set.  The GIL is held.
; Small ones are NumPy's own, big ones own one of our blocks.
define ptr @fusec_new_array(ptr %descr, i32 %nd, ptr %dims, ptr %strides, i64 %nbytes) {
entry:
  %type = load ptr, ptr @array_type
  call void @Py_IncRef(ptr %descr)
  %small = icmp ult i64 %nbytes, MIN_BLOCK
  br i1 %small, label %numpy, label %ours
numpy:
  %plain = call ptr @PyArray_NewFromDescr(ptr %type, ptr %descr, i32 %nd, ptr %dims, ptr %strides,
                                          ptr null, i32 0, ptr null)
  ret ptr %plain
ours:
  %data = call ptr @fusec_alloc(i64 %nbytes)
  %failed = icmp eq ptr %data, null
  br i1 %failed, label %exhausted, label %wrap
exhausted:
  %e = call ptr @PyErr_NoMemory()
  ret ptr null
wrap:                                                        ; flags: WRITEABLE | ALIGNED
  %array = call ptr @PyArray_NewFromDescr(ptr %type, ptr %descr, i32 %nd, ptr %dims, ptr %strides,
                                          ptr %data, i32 1280, ptr null)
  %refused = icmp eq ptr %array, null
  br i1 %refused, label %giveback, label %own
giveback:
  call void @fusec_free(ptr %data)
  ret ptr null
own:                                                         ; OWNDATA and our handler
  %flagsplace = getelementptr i8, ptr %array, i64 FLAGS
  %flags = load i32, ptr %flagsplace
  %owned = or i32 %flags, 4
  store i32 %owned, ptr %flagsplace
  %handler = load ptr, ptr @handler
  call void @Py_IncRef(ptr %handler)
  %handlerplace = getelementptr i8, ptr %array, i64 MEM_HANDLER
  store ptr %handler, ptr %handlerplace
  %address = ptrtoint ptr %data to i64
  %t = call i32 @PyTraceMalloc_Track(i32 TRACE_DOMAIN, i64 %address, i64 %nbytes)
  ret ptr %array
}
"""


def _stats() -> str:
    """The function that copies the counters out."""
    lines = ["define void @fusec_memory_stats(ptr %out) {"]
    for index, name in enumerate(STATS):
        lines += [f"  %v{index} = load atomic i64, ptr @{name} monotonic, align 8",
                  f"  %p{index} = getelementptr i64, ptr %out, i64 {index}",
                  f"  store i64 %v{index}, ptr %p{index}"]
    return "\n".join([*lines, "  ret void", "}", ""])


def source() -> str:
    """The allocator as LLVM IR text, for the array layout of this NumPy."""
    layout = numpy_api.array_layout()
    declaration, pause = cpus.pause_instruction()
    text = "".join((_STORAGE, blocks.TEXT, _HANDLER, _ARRAYS, _stats(), declaration))
    constants = blocks.CONSTANTS | {
        "PAUSE": pause, "FLAGS": layout.flags, "MEM_HANDLER": layout.mem_handler,
        "TRACE_DOMAIN": _TRACE_DOMAIN,
    }
    for name, value in constants.items():
        text = text.replace(name, str(value))
    return text


@functools.cache
def code() -> llvm.NativeCode:
    """The allocator's machine code; ``NativeUnavailableError`` names the lack."""
    symbols = (
        libc_addresses("posix_memalign", "free", "madvise")
        | python_addresses("Py_IncRef", "PyErr_NoMemory", "PyTraceMalloc_Track")
        | numpy_api.addresses("PyArray_NewFromDescr"))
    return compile_forever(source(), symbols)
