"""The words of a pool, which pool a thread's kernels use, and Python's messages to a pool.

LLVM IR text in which ``WORDS a b`` at the head of a function stands for the addresses ``%a.at`` and
``%b.at`` of those words of ``%pool``.
"""

from __future__ import annotations

import re

# The words of a pool and where they lie in its block.  Each word that several threads write has a
# cache line (and its neighbour) to itself.
_WORDS = {
    "lock": 0, "state": 128, "next": 256, "sleepers": 384,
    "created": 512,  # worker threads that exist
    "admitted": 520,  # how many of them may join one job
    "stopping": 528,
    "ready": 536,  # has Python started the workers it wants?
    "job_fn": 640, "job_args": 648, "job_ntasks": 656, "job_grain": 664,
    "job_cpu": 672,  # where the last caller ran; -1: not known
    "mutex": 768, "cond": 896,  # 128 bytes each: larger than any libc's
}
POOL_BYTES, POOL_ALIGN = 1024, 128

TEXT = """
@process_pool = internal global [POOL_BYTES x i8] zeroinitializer, align POOL_ALIGN
@has_key = internal global i32 0, align 4  ; does any thread have a pool of its own?
@key = internal global i64 0, align 8

declare i32 @pthread_key_create(ptr, ptr)
declare ptr @pthread_getspecific(i64)
declare i32 @pthread_setspecific(i64, ptr)

; The pool that this thread's kernels use.
define internal ptr @pool_of_this_thread() alwaysinline {
  %has = load atomic i32, ptr @has_key monotonic, align 4
  %none = icmp eq i32 %has, 0
  br i1 %none, label %process, label %ask
ask:
  %key = load i64, ptr @key
  %own = call ptr @pthread_getspecific(i64 %key)
  %missing = icmp eq ptr %own, null
  br i1 %missing, label %process, label %device
device:
  ret ptr %own
process:
  ret ptr @process_pool
}

define ptr @fusec_process_pool() {
  ret ptr @process_pool
}

; Let threads have pools of their own from now on: nonzero where the C library has no key left.
define i32 @fusec_pool_make_key() {
  %failed = call i32 @pthread_key_create(ptr @key, ptr null)
  %made = icmp eq i32 %failed, 0
  %has = zext i1 %made to i32
  store atomic i32 %has, ptr @has_key seq_cst, align 4
  ret i32 %failed
}

; This thread's kernels use that pool from now on.
define void @fusec_pool_enter(ptr %pool) {
  %key = load i64, ptr @key
  %r = call i32 @pthread_setspecific(i64 %key, ptr %pool)
  ret void
}

; Say how many worker threads exist and how many of them one job may use.
define void @fusec_pool_configure(ptr %pool, i64 %created, i64 %admitted) {
  WORDS created admitted ready
  store atomic i64 %created, ptr %created.at seq_cst, align 8
  store atomic i64 %admitted, ptr %admitted.at seq_cst, align 8
  store atomic i64 1, ptr %ready.at seq_cst, align 8
  ret void
}

; Another number of threads is wanted: the next parallel call asks Python for workers.
define void @fusec_pool_invalidate(ptr %pool) {
  WORDS ready
  store atomic i64 0, ptr %ready.at seq_cst, align 8
  ret void
}

; Of the pool that this thread's kernels use, as the next.
define i64 @fusec_pool_ready() {
  %pool = call ptr @pool_of_this_thread()
  WORDS ready
  %ready = load atomic i64, ptr %ready.at monotonic, align 8
  ret i64 %ready
}

define i64 @fusec_pool_workers() {
  %pool = call ptr @pool_of_this_thread()
  WORDS created
  %created = load atomic i64, ptr %created.at monotonic, align 8
  ret i64 %created
}

; Send the workers home; callers run their ranges themselves from now on.
define void @fusec_pool_stop(ptr %pool) {
  WORDS created admitted stopping mutex cond
  store atomic i64 0, ptr %admitted.at seq_cst, align 8
  store atomic i64 0, ptr %created.at seq_cst, align 8
  store atomic i64 1, ptr %stopping.at seq_cst, align 8
  %l = call i32 @pthread_mutex_lock(ptr %mutex.at)
  %b = call i32 @pthread_cond_broadcast(ptr %cond.at)
  %u = call i32 @pthread_mutex_unlock(ptr %mutex.at)
  ret void
}

; Forget every thread and every lock: for the first use, and for a forked child, whose only thread
; is the one that forked.
define void @fusec_pool_reset(ptr %pool) {
  WORDS lock state sleepers created admitted stopping ready job_cpu mutex cond
  store atomic i32 -1, ptr %job_cpu.at seq_cst, align 4
  store atomic i64 0, ptr %ready.at seq_cst, align 8
  store atomic i64 0, ptr %admitted.at seq_cst, align 8
  store atomic i64 0, ptr %created.at seq_cst, align 8
  store atomic i64 0, ptr %stopping.at seq_cst, align 8
  store atomic i64 0, ptr %sleepers.at seq_cst, align 8
  store atomic i64 0, ptr %state.at seq_cst, align 8
  %m = call i32 @pthread_mutex_init(ptr %mutex.at, ptr null)
  %c = call i32 @pthread_cond_init(ptr %cond.at, ptr null)
  store atomic i32 0, ptr %lock.at seq_cst, align 4
  ret void
}
"""


def with_addresses(text: str) -> str:
    """The text with the addresses of words where it names them."""
    return re.sub(r"  WORDS (.*)\n", lambda found: "".join(
        f"  %{name}.at = getelementptr i8, ptr %pool, i64 {_WORDS[name]}\n"
        for name in found[1].split()), text)
