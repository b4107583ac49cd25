"""Threads of a library's own: one pool for all libraries of a process.

They share one variable, ``fusec_pool_1``, whose symbol the loader takes for the same in all
(``STB_GNU_UNIQUE``; in static libraries it is weak).  It begins with the address of the function
that runs tasks, so that all run the code of the library that was loaded first; libraries with a
pool are never unloaded.  The number in the name is that of the layout.

The protocol is that of `fusec.runtime.native.pool`: the word ``state`` is generation << 32 |
open << 16 | active workers, a caller publishes a job by a new generation, everyone claims blocks of
``grain`` tasks.  Workers that find no job sleep by a futex on the generation.  The lock holds the
number of the process that has it, and ``owner`` that of the process which has the workers: a forked
child finds another number than its own, takes the lock and starts workers anew.  A caller that
finds the lock taken (nested calls, others at the same time) runs its range itself.

Of the C library only functions of one version are used: unversioned symbols are bound to the
oldest.
"""

from __future__ import annotations

from ...machine_code.targets import CpuTarget
from ..emitter import LlvmEmitter

POOL = "fusec_pool_1"
MOST_THREADS = 1024
_WORDS = {"lock": 128, "state": 256, "generation": 260, "next": 384, "sleepers": 512,
          "owner": 640, "workers": 644, "fn": 768, "args": 776, "tasks": 784, "grain": 792}
_BYTES = 1024 - 8  # behind the address
_SPINS = 1000  # pauses of some 40 ns before a worker sleeps
_CALLS = {  # of Linux: futex, sched_getaffinity, rt_sigprocmask; and what a waiting thread does
    "x86_64": (202, 204, 14, "void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": (98, 123, 135, "void @llvm.aarch64.hint(i32)",
                "call void @llvm.aarch64.hint(i32 1)")}

_TEXT = """
%LIB.pool = type { ptr, [BYTES x i8] }
@POOL = weak global %LIB.pool { ptr @LIB.pool_for, [BYTES x i8] zeroinitializer }, align 128
@LIB.pool_name = private unnamed_addr constant [18 x i8] c"FUSEC_NUM_THREADS\\00"

; Run blocks of the job until none is left.
define internal void @LIB.pool_claim() nounwind {
entry:
  %fn = load ptr, ptr AT.fn
  %args = load ptr, ptr AT.args
  %tasks = load i64, ptr AT.tasks
  %grain = load i64, ptr AT.grain
  br label %claim
claim:
  %begin = atomicrmw add ptr AT.next, i64 %grain monotonic
  %left = icmp slt i64 %begin, %tasks
  br i1 %left, label %run, label %done
run:
  %stop = add i64 %begin, %grain
  %end = call i64 @llvm.smin.i64(i64 %stop, i64 %tasks)
  call void %fn(ptr %args, i64 %begin, i64 %end)
  br label %claim
done:
  ret void
}

; A worker's life: wait for a new generation, join the job while it is open, sleep when none comes.
define internal ptr @LIB.pool_worker(ptr %start) nounwind {
entry:
  %first = ptrtoint ptr %start to i64
  br label %idle
idle:
  %seen = phi i64 [ %first, %entry ], [ %gen, %missed ], [ %gen, %work ], [ %seen, %bed ]
  br label %spin
spin:
  %spins = phi i64 [ 0, %idle ], [ %spun, %relax ]
  %polled = load atomic i64, ptr AT.state acquire, align 8
  %polledgen = lshr i64 %polled, 32
  %fresh = icmp ne i64 %polledgen, %seen
  br i1 %fresh, label %consider, label %relax
relax:
  PAUSE
  %spun = add i64 %spins, 1
  %tired = icmp sgt i64 %spun, SPINS
  br i1 %tired, label %bed, label %spin
bed:
  %low = trunc i64 %seen to i32
  %expected = zext i32 %low to i64
  %s = atomicrmw add ptr AT.sleepers, i64 1 seq_cst
  %address = ptrtoint ptr AT.generation to i64
  %w = call i64 (i64, ...) @syscall(i64 FUTEX, i64 %address, i64 128,
                                     i64 %expected, i64 0, i64 0, i64 0)
  %t = atomicrmw sub ptr AT.sleepers, i64 1 seq_cst
  br label %idle
consider:
  %word = phi i64 [ %polled, %spin ], [ %actual, %join ]
  %gen = lshr i64 %word, 32
  %openbit = and i64 %word, 65536
  %open = icmp ne i64 %openbit, 0
  br i1 %open, label %join, label %missed
missed:
  br label %idle
join:
  %joined = add i64 %word, 1
  %pair = cmpxchg ptr AT.state, i64 %word, i64 %joined acq_rel acquire
  %actual = extractvalue { i64, i1 } %pair, 0
  %in = extractvalue { i64, i1 } %pair, 1
  br i1 %in, label %work, label %consider
work:
  call void @LIB.pool_claim()
  %l = atomicrmw sub ptr AT.state, i64 1 acq_rel
  br label %idle
}

; How many threads a job may have: of the environment, else of the CPUs that the process may use.
define internal i64 @LIB.pool_size() nounwind {
entry:
  %mask = alloca [128 x i64], align 8
  %text = call ptr @getenv(ptr @LIB.pool_name)
  %none = icmp eq ptr %text, null
  br i1 %none, label %ask, label %digits
digits:
  %at = phi ptr [ %text, %entry ], [ %behind, %digit ]
  %value = phi i64 [ 0, %entry ], [ %longer, %digit ]
  %byte = load i8, ptr %at
  %digit0 = sub i8 %byte, 48
  %isdigit = icmp ult i8 %digit0, 10
  %small = icmp ult i64 %value, 100000
  %more = and i1 %isdigit, %small
  br i1 %more, label %digit, label %given
digit:
  %ten = mul i64 %value, 10
  %wide = zext i8 %digit0 to i64
  %longer = add i64 %ten, %wide
  %behind = getelementptr i8, ptr %at, i64 1
  br label %digits
given:
  %some = icmp sgt i64 %value, 0
  %end = icmp eq i8 %byte, 0
  %valid = and i1 %some, %end
  br i1 %valid, label %done, label %ask
ask:
  call void @llvm.memset.p0.i64(ptr %mask, i8 0, i64 1024, i1 false)
  %address = ptrtoint ptr %mask to i64
  %r = call i64 (i64, ...) @syscall(i64 AFFINITY, i64 0, i64 1024, i64 %address)
  br label %count
count:
  %k = phi i64 [ 0, %ask ], [ %next, %count ]
  %sum = phi i64 [ 0, %ask ], [ %total, %count ]
  %place = getelementptr i64, ptr %mask, i64 %k
  %bits = load i64, ptr %place
  %ones = call i64 @llvm.ctpop.i64(i64 %bits)
  %total = add i64 %sum, %ones
  %next = add i64 %k, 1
  %again = icmp slt i64 %next, 128
  br i1 %again, label %count, label %done
done:
  %all = phi i64 [ %value, %given ], [ %total, %count ]
  %most = call i64 @llvm.smin.i64(i64 %all, i64 MOST)
  ret i64 %most
}

; Start the workers of this process, with all signals blocked, by who has the lock.
define internal void @LIB.pool_start(i32 %pid) nounwind {
entry:
  %thread = alloca i64, align 8
  %all = alloca i64, align 8
  %before = alloca i64, align 8
  store i64 -1, ptr %all
  %size = call i64 @LIB.pool_size()
  %old = load atomic i64, ptr AT.state monotonic, align 8
  %closed = and i64 %old, -4294967296
  store atomic i64 %closed, ptr AT.state seq_cst, align 8
  store atomic i64 0, ptr AT.sleepers seq_cst, align 8
  %gen = lshr i64 %closed, 32
  %start = inttoptr i64 %gen to ptr
  %alladdress = ptrtoint ptr %all to i64
  %beforeaddress = ptrtoint ptr %before to i64
  %b = call i64 (i64, ...) @syscall(i64 SIGNALS, i64 2, i64 %alladdress, i64 %beforeaddress, i64 8)
  br label %next
next:
  %n = phi i32 [ 0, %entry ], [ %more, %made ]
  %count = sext i32 %n to i64
  %others = sub i64 %size, 1
  %wanted = icmp slt i64 %count, %others
  br i1 %wanted, label %make, label %done
make:
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @LIB.pool_worker, ptr %start)
  %bad = icmp ne i32 %failed, 0
  br i1 %bad, label %done, label %made
made:
  %id = load i64, ptr %thread
  %d = call i32 @pthread_detach(i64 %id)
  %more = add i32 %n, 1
  br label %next
done:
  %a = call i64 (i64, ...) @syscall(i64 SIGNALS, i64 2, i64 %beforeaddress, i64 0, i64 8)
  store i32 %n, ptr AT.workers
  store i32 %pid, ptr AT.owner
  ret void
}

; Run fn(args, begin, end) over 0..tasks in blocks of `grain`; return when all is done.
define internal void @LIB.pool_for(ptr %fn, ptr %args, i64 %tasks, i64 %grain) nounwind {
entry:
  %pid = call i32 @getpid()
  %held = load atomic i32, ptr AT.lock monotonic, align 4
  %own = icmp eq i32 %held, %pid
  br i1 %own, label %inline, label %try
try:
  %pair = cmpxchg ptr AT.lock, i32 %held, i32 %pid acquire monotonic
  %got = extractvalue { i32, i1 } %pair, 1
  br i1 %got, label %locked, label %inline
inline:
  call void %fn(ptr %args, i64 0, i64 %tasks)
  ret void
locked:
  %owner = load i32, ptr AT.owner
  %ready = icmp eq i32 %owner, %pid
  br i1 %ready, label %ask, label %start
start:
  call void @LIB.pool_start(i32 %pid)
  br label %ask
ask:
  %workers = load i32, ptr AT.workers
  %none = icmp eq i32 %workers, 0
  br i1 %none, label %alone, label %publish
alone:
  store atomic i32 0, ptr AT.lock release, align 4
  br label %inline
publish:
  store ptr %fn, ptr AT.fn
  store ptr %args, ptr AT.args
  store i64 %tasks, ptr AT.tasks
  store i64 %grain, ptr AT.grain
  store atomic i64 0, ptr AT.next monotonic, align 8
  %old = load atomic i64, ptr AT.state monotonic, align 8
  %oldgen = lshr i64 %old, 32
  %gen = add i64 %oldgen, 1
  %high = shl i64 %gen, 32
  %new = or i64 %high, 65536
  store atomic i64 %new, ptr AT.state seq_cst, align 8
  %sleepers = load atomic i64, ptr AT.sleepers seq_cst, align 8
  %sleeping = icmp sgt i64 %sleepers, 0
  br i1 %sleeping, label %wake, label %join
wake:
  %less = sub i64 %tasks, 1
  %blocks = sdiv i64 %less, %grain
  %address = ptrtoint ptr AT.generation to i64
  %w = call i64 (i64, ...) @syscall(i64 FUTEX, i64 %address, i64 129,
                                     i64 %blocks, i64 0, i64 0, i64 0)
  br label %join
join:
  call void @LIB.pool_claim()
  %closing = atomicrmw and ptr AT.state, i64 -65537 seq_cst
  br label %wait
wait:
  %spins = phi i64 [ 0, %join ], [ %spun, %relax ], [ %spun, %yield ]
  %now = load atomic i64, ptr AT.state acquire, align 8
  %active = and i64 %now, 65535
  %finished = icmp eq i64 %active, 0
  br i1 %finished, label %done, label %spin
spin:
  %spun = add i64 %spins, 1
  %long = icmp sgt i64 %spins, SPINS
  br i1 %long, label %yield, label %relax
relax:
  PAUSE
  br label %wait
yield:
  %y = call i32 @sched_yield()
  br label %wait
done:
  store atomic i32 0, ptr AT.lock release, align 4
  ret void
}

; What calls of nests call, with the pool that the process has.
define hidden void @LIB.parallel(ptr %fn, ptr %args, i64 %tasks, i64 %grain) nounwind {
entry:
  %few = icmp sle i64 %tasks, %grain
  br i1 %few, label %inline, label %pool
inline:
  call void %fn(ptr %args, i64 0, i64 %tasks)
  ret void
pool:
  %run = load ptr, ptr @POOL
  call void %run(ptr %fn, ptr %args, i64 %tasks, i64 %grain)
  ret void
}
"""


def pool_text(library: str, target: CpuTarget) -> tuple[LlvmEmitter, str]:
    """The pool, and what calls of nests call: ``LIB.parallel(code, block, tasks, grain)``."""
    em = LlvmEmitter()
    futex, affinity, signals, declared, pause = _CALLS[target.machine]
    for declaration in (
            declared, "i64 @llvm.smin.i64(i64, i64)", "i64 @llvm.ctpop.i64(i64)",
            "void @llvm.memset.p0.i64(ptr, i8, i64, i1)", "i64 @syscall(i64, ...)",
            "i32 @pthread_create(ptr, ptr, ptr, ptr)", "i32 @pthread_detach(i64)",
            "i32 @getpid()", "ptr @getenv(ptr)", "i32 @sched_yield()"):
        em.declare(f"declare {declaration}")
    text = _TEXT
    for name, offset in sorted(_WORDS.items(), key=lambda item: -len(item[0])):
        text = text.replace(f"AT.{name}", f"getelementptr (i8, ptr @{POOL}, i64 {offset})")
    for word, value in {
            "POOL": POOL, "BYTES": _BYTES, "PAUSE": pause, "SPINS": _SPINS, "FUTEX": futex,
            "AFFINITY": affinity, "SIGNALS": signals, "MOST": MOST_THREADS, "LIB": library}.items():
        text = text.replace(word, str(value))
    return em, text


__all__ = ["POOL", "pool_text"]
