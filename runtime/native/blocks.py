"""Blocks of memory that are kept in size classes and given out again, as LLVM IR text.

A block is ``[64 bytes of header][data, 64-byte aligned]``; the header holds the fields of ``free``,
so nothing depends on the size that a caller claims.  Blocks of at least ``MIN_BLOCK`` bytes belong
to one of 200 classes, eight to each power of two (at most 12.5 % is lost to rounding).  Each class
keeps up to ``SLOTS`` free blocks, last in first out.  One spin lock guards the lists for a few
instructions; a caller that cannot get it goes to the C library instead.  When a block does not fit
under the cap, older blocks of other classes are freed, in turn, until it does.
"""

from __future__ import annotations

import sys

MIN_BLOCK = 1 << 16
HUGE_BLOCK = 1 << 22
HUGE_PAGE = 1 << 21
CLASSES = 200
SLOTS = 16
HEADER = 64
_MADV_HUGEPAGE = 14

LOCK = """
define internal i1 @try_lock() {
entry:
  br label %try
try:
  %tries = phi i64 [ 0, %entry ], [ %more, %again ]
  %held = atomicrmw xchg ptr @lock, i32 1 acquire
  %free = icmp eq i32 %held, 0
  br i1 %free, label %got, label %wait
wait:
  PAUSE
  %more = add i64 %tries, 1
  %enough = icmp sgt i64 %more, 100
  br i1 %enough, label %lost, label %again
again:
  br label %try
got:
  ret i1 true
lost:
  %c = atomicrmw add ptr @contended, i64 1 monotonic
  ret i1 false
}

define internal void @unlock() {
  store atomic i32 0, ptr @lock release, align 4
  ret void
}

; A forked child may have inherited the lock taken; the lists are never left half written (a slot
; is stored before it is counted).
define void @fusec_memory_unlock() {
  call void @unlock()
  ret void
}
"""

LISTS = """
define internal ptr @header_of(ptr %data) {
  %header = getelementptr i8, ptr %data, i64 -HEADER
  ret ptr %header
}

define internal void @free_block(ptr %data) {
  %header = call ptr @header_of(ptr %data)
  %raw = load ptr, ptr %header
  call void @free(ptr %raw)
  ret void
}

; Take the newest block of a class, or null.  The lock is held.
define internal ptr @pop(i64 %class) {
entry:
  %place = getelementptr [CLASSES x i64], ptr @counts, i64 0, i64 %class
  %count = load i64, ptr %place
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %none, label %take
none:
  ret ptr null
take:
  %index = sub i64 %count, 1
  store i64 %index, ptr %place
  %slot = getelementptr [CLASSES x [SLOTS x ptr]], ptr @slots, i64 0, i64 %class, i64 %index
  %data = load ptr, ptr %slot
  %header = call ptr @header_of(ptr %data)
  %sizeplace = getelementptr %header, ptr %header, i64 0, i32 2
  %size = load i64, ptr %sizeplace
  %bytes = load i64, ptr @retained_bytes
  %fewer = sub i64 %bytes, %size
  store atomic i64 %fewer, ptr @retained_bytes monotonic, align 8
  %blocks = load i64, ptr @retained_blocks
  %less = sub i64 %blocks, 1
  store atomic i64 %less, ptr @retained_blocks monotonic, align 8
  ret ptr %data
}

; Take a block from the class whose turn it is to lose one, or null.  The lock is held.
define internal ptr @pop_any() {
entry:
  br label %look
look:
  %tries = phi i64 [ 0, %entry ], [ %more, %next ]
  %class = load i64, ptr @hand
  %after = add i64 %class, 1
  %wrap = icmp sge i64 %after, CLASSES
  %turn = select i1 %wrap, i64 0, i64 %after
  store i64 %turn, ptr @hand
  %data = call ptr @pop(i64 %class)
  %found = icmp ne ptr %data, null
  br i1 %found, label %done, label %next
next:
  %more = add i64 %tries, 1
  %all = icmp sge i64 %more, CLASSES
  br i1 %all, label %done, label %look
done:
  ret ptr %data
}

; Free kept blocks until at most `target` bytes are kept.
define void @fusec_memory_trim(i64 %target) {
entry:
  br label %again
again:
  %locked = call i1 @try_lock()
  br i1 %locked, label %check, label %done
check:
  %bytes = load i64, ptr @retained_bytes
  %over = icmp sgt i64 %bytes, %target
  br i1 %over, label %evict, label %enough
evict:
  %victim = call ptr @pop_any()
  call void @unlock()
  %none = icmp eq ptr %victim, null
  br i1 %none, label %done, label %drop
drop:
  call void @free_block(ptr %victim)
  %e = atomicrmw add ptr @evictions, i64 1 monotonic
  br label %again
enough:
  call void @unlock()
  br label %done
done:
  ret void
}

; Keep a block for later; false when the caller has to free it.
define internal i1 @keep(ptr %data, i64 %class, i64 %size) {
entry:
  %cap = load atomic i64, ptr @cap_bytes monotonic, align 8
  %target = sub i64 %cap, %size
  %fits = icmp sge i64 %target, 0
  br i1 %fits, label %room, label %refuse
room:
  %kept = load atomic i64, ptr @retained_bytes monotonic, align 8
  %full = icmp sgt i64 %kept, %target
  br i1 %full, label %trim, label %lock
trim:
  call void @fusec_memory_trim(i64 %target)
  br label %lock
lock:
  %locked = call i1 @try_lock()
  br i1 %locked, label %check, label %refuse
check:
  %bytes = load i64, ptr @retained_bytes
  %place = getelementptr [CLASSES x i64], ptr @counts, i64 0, i64 %class
  %count = load i64, ptr %place
  %slotfree = icmp slt i64 %count, SLOTS
  %under = icmp sle i64 %bytes, %target
  %ok = and i1 %slotfree, %under
  br i1 %ok, label %store, label %unlock
store:
  %slot = getelementptr [CLASSES x [SLOTS x ptr]], ptr @slots, i64 0, i64 %class, i64 %count
  store ptr %data, ptr %slot
  %counted = add i64 %count, 1
  store i64 %counted, ptr %place
  %more = add i64 %bytes, %size
  store atomic i64 %more, ptr @retained_bytes monotonic, align 8
  %blocks = load i64, ptr @retained_blocks
  %moreblocks = add i64 %blocks, 1
  store atomic i64 %moreblocks, ptr @retained_blocks monotonic, align 8
  br label %unlock
unlock:
  call void @unlock()
  ret i1 %ok
refuse:
  ret i1 false
}
"""

ALLOC = """
; A block from the C library with `size` bytes of data, or null.
define internal ptr @fresh(i64 %size, i64 %class) {
entry:
  %out = alloca ptr
  %big = icmp uge i64 %size, HUGE_BLOCK
  %align = select i1 %big, i64 HUGE_PAGE, i64 64
  %total = add i64 %size, HEADER
  %error = call i32 @posix_memalign(ptr %out, i64 %align, i64 %total)
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %advise, label %none
none:
  ret ptr null
advise:
  %raw = load ptr, ptr %out
  br i1 %big, label %huge, label %fill
huge:
  ADVISE
  br label %fill
fill:
  store ptr %raw, ptr %raw
  %classplace = getelementptr %header, ptr %raw, i64 0, i32 1
  store i64 %class, ptr %classplace
  %sizeplace = getelementptr %header, ptr %raw, i64 0, i32 2
  store i64 %size, ptr %sizeplace
  %data = getelementptr i8, ptr %raw, i64 HEADER
  ret ptr %data
}

; (class, bytes) of the size class that holds `size` bytes; class -1 for sizes that are not kept.
define internal { i64, i64 } @classify(i64 %size) {
entry:
  %small = icmp ult i64 %size, MIN_BLOCK
  %enormous = icmp ugt i64 %size, 1099511627776
  %plain = or i1 %small, %enormous
  br i1 %plain, label %own, label %shared
own:
  %p0 = insertvalue { i64, i64 } { i64 -1, i64 0 }, i64 %size, 1
  ret { i64, i64 } %p0
shared:
  %n = sub i64 %size, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %n, i1 true)
  %power = sub i64 63, %zeros
  %shift = sub i64 %power, 3
  %top = lshr i64 %n, %shift                  ; 8..15: the leading four bits
  %octave = sub i64 %power, 15
  %first = shl i64 %octave, 3
  %sub = and i64 %top, 7
  %class = or i64 %first, %sub
  %above = add i64 %top, 1
  %bytes = shl i64 %above, %shift
  %r0 = insertvalue { i64, i64 } poison, i64 %class, 0
  %r1 = insertvalue { i64, i64 } %r0, i64 %bytes, 1
  ret { i64, i64 } %r1
}

; `size` bytes, 64-byte aligned and not cleared; null when memory is exhausted even after
; dropping what was kept.
define ptr @fusec_alloc(i64 %size) {
entry:
  %both = call { i64, i64 } @classify(i64 %size)
  %class = extractvalue { i64, i64 } %both, 0
  %bytes = extractvalue { i64, i64 } %both, 1
  %plain = icmp slt i64 %class, 0
  br i1 %plain, label %miss, label %look
look:
  %locked = call i1 @try_lock()
  br i1 %locked, label %take, label %miss
take:
  %old = call ptr @pop(i64 %class)
  call void @unlock()
  %none = icmp eq ptr %old, null
  br i1 %none, label %miss, label %hit
hit:
  %h = atomicrmw add ptr @hits, i64 1 monotonic
  br label %done
miss:
  %m = atomicrmw add ptr @misses, i64 1 monotonic
  %new = call ptr @fresh(i64 %bytes, i64 %class)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %retry, label %done
retry:
  call void @fusec_memory_trim(i64 0)
  %second = call ptr @fresh(i64 %bytes, i64 %class)
  %lost = icmp eq ptr %second, null
  br i1 %lost, label %exhausted, label %done
done:
  %data = phi ptr [ %old, %hit ], [ %new, %miss ], [ %second, %retry ]
  %l = atomicrmw add ptr @live_bytes, i64 %bytes monotonic
  ret ptr %data
exhausted:
  ret ptr null
}

define void @fusec_free(ptr %data) {
entry:
  %null = icmp eq ptr %data, null
  br i1 %null, label %done, label %read
read:
  %header = call ptr @header_of(ptr %data)
  %classplace = getelementptr %header, ptr %header, i64 0, i32 1
  %class = load i64, ptr %classplace
  %sizeplace = getelementptr %header, ptr %header, i64 0, i32 2
  %size = load i64, ptr %sizeplace
  %l = atomicrmw sub ptr @live_bytes, i64 %size monotonic
  %plain = icmp slt i64 %class, 0
  br i1 %plain, label %drop, label %try
try:
  %kept = call i1 @keep(ptr %data, i64 %class, i64 %size)
  br i1 %kept, label %done, label %drop
drop:
  call void @free_block(ptr %data)
  br label %done
done:
  ret void
}
"""


def _advise() -> str:
    """Ask for huge pages where the system has them: fewer faults, each cheaper per byte."""
    if sys.platform != "linux":
        return ""
    return f"%a = call i32 @madvise(ptr %raw, i64 %total, i32 {_MADV_HUGEPAGE})"


TEXT = LOCK + LISTS + ALLOC
CONSTANTS: dict[str, str | int] = {
    "ADVISE": _advise(), "CLASSES": CLASSES, "SLOTS": SLOTS, "HEADER": HEADER,
    "MIN_BLOCK": MIN_BLOCK, "HUGE_BLOCK": HUGE_BLOCK, "HUGE_PAGE": HUGE_PAGE,
}
