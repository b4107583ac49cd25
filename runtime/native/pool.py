"""The thread pool's native half: fork-join of a task range over waiting worker threads.

One word, ``@state``, is the whole protocol: generation << 32 | open << 16 | active workers.  A
caller publishes a job by storing a new generation with ``open`` set.  A worker takes part by
adding one to ``active`` with compare-and-swap, which fails once the job is closed; so a job never
waits for a worker that has not yet woken.  Everyone claims blocks of ``grain`` tasks by
fetch-and-add.  The caller then clears ``open`` and waits until ``active`` is zero; only then may
the job's fields change.

Sleeping uses a mutex and a condition variable.  A worker counts itself in ``@sleepers`` and then
reads ``@state``; a caller writes ``@state`` and then reads ``@sleepers``.  Both are sequentially
consistent, so at least one of the two sees the other, and no wake-up is lost.

On Linux a sleeping worker also keeps off the CPU of the last caller.  Left alone, the scheduler
often queues the woken worker behind the spinning caller, on the caller's CPU, until the next tick:
3 ms were measured (2 CPUs idle otherwise) where a wake-up on the other CPU takes 40 us.

There is one pool for the process, and one for each device whose threads keep to cores of its own.
A pool's words lie in one block; a thread-specific pointer says which pool a device's thread uses.
"""

from __future__ import annotations

import functools

from fusec.codegen.machine_code import llvm
from fusec.runtime.native import compile_forever, cpus, libc_addresses, pool_words

# A `pause` takes 10 to 140 cycles: the least and the longest spin are about 2 us and 100 us.
MIN_SPIN = 64
MAX_SPIN = 2048
# Refuses nonsense long before the 16 bits of `active` overflow.
MAX_WORKERS = 1023

_LIBC = (
    "pthread_mutex_init", "pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_init",
    "pthread_cond_wait", "pthread_cond_signal", "pthread_cond_broadcast", "sched_yield",
    "pthread_key_create", "pthread_getspecific", "pthread_setspecific",
)

_LIBRARY = """
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""

_CLAIM = """
; Run blocks of the current job until none is left.
define internal void @claim_blocks(ptr %pool) {
entry:
  WORDS next job_fn job_args job_ntasks job_grain
  %fn = load ptr, ptr %job_fn.at
  %args = load ptr, ptr %job_args.at
  %ntasks = load i64, ptr %job_ntasks.at
  %grain = load i64, ptr %job_grain.at
  br label %claim
claim:
  %begin = atomicrmw add ptr %next.at, i64 %grain monotonic
  %left = icmp slt i64 %begin, %ntasks
  br i1 %left, label %run, label %done
run:
  %stop = add i64 %begin, %grain
  %end = call i64 @llvm.smin.i64(i64 %stop, i64 %ntasks)
  call void %fn(ptr %args, i64 %begin, i64 %end)
  br label %claim
done:
  ret void
}
"""

_WAKE = """
; Wake as many sleepers as the job can use beyond the workers that are already spinning.  A caller
; that `moved` since the last job may sit on the CPU its workers wake on, and lets them leave it.
define internal void @wake_sleepers(ptr %pool, i64 %blocks, i1 %moved) {
entry:
  WORDS sleepers created admitted mutex cond
  %sleepers = load atomic i64, ptr %sleepers.at seq_cst, align 8
  %none = icmp eq i64 %sleepers, 0
  br i1 %none, label %done, label %count
count:
  %created = load atomic i64, ptr %created.at monotonic, align 8
  %admitted = load atomic i64, ptr %admitted.at monotonic, align 8
  %awake = sub i64 %created, %sleepers
  %others = sub i64 %blocks, 1
  %useful = call i64 @llvm.smin.i64(i64 %others, i64 %admitted)
  %wanted = sub i64 %useful, %awake
  %any = icmp sgt i64 %wanted, 0
  br i1 %any, label %lock, label %done
lock:
  %l = call i32 @pthread_mutex_lock(ptr %mutex.at)
  %all = icmp sge i64 %wanted, %sleepers
  br i1 %all, label %everyone, label %signal
everyone:
  %b = call i32 @pthread_cond_broadcast(ptr %cond.at)
  br label %unlock
signal:
  %left = phi i64 [ %wanted, %lock ], [ %less, %signal ]
  %s = call i32 @pthread_cond_signal(ptr %cond.at)
  %less = sub i64 %left, 1
  %more = icmp sgt i64 %less, 0
  br i1 %more, label %signal, label %unlock
unlock:
  %u = call i32 @pthread_mutex_unlock(ptr %mutex.at)
  br i1 %moved, label %yield, label %done
yield:
  %y = call i32 @sched_yield()
  br label %done
done:
  ret void
}
"""

_PARALLEL_FOR = """
; Call fn(args, begin, end) over the range 0..ntasks in blocks of `grain`; return when all is done.
; A nested or concurrent caller finds the lock taken and runs its range itself.
define void @fusec_parallel_for(ptr %fn, ptr %args, i64 %ntasks, i64 %asked) {
entry:
  %pool = call ptr @pool_of_this_thread()
  WORDS lock state next admitted job_fn job_args job_ntasks job_grain job_cpu
  %grain = call i64 @llvm.smax.i64(i64 %asked, i64 1)
  %workers = load atomic i64, ptr %admitted.at monotonic, align 8
  %alone = icmp sle i64 %workers, 0
  %small = icmp sle i64 %ntasks, %grain
  %serial = or i1 %alone, %small
  br i1 %serial, label %inline, label %try
try:
  %held = atomicrmw xchg ptr %lock.at, i32 1 acquire
  %free = icmp eq i32 %held, 0
  br i1 %free, label %publish, label %inline
inline:
  call void %fn(ptr %args, i64 0, i64 %ntasks)
  ret void
publish:
  store ptr %fn, ptr %job_fn.at
  store ptr %args, ptr %job_args.at
  store i64 %ntasks, ptr %job_ntasks.at
  store i64 %grain, ptr %job_grain.at
  %cpu = call i32 @current_cpu()
  %lastcpu = load atomic i32, ptr %job_cpu.at monotonic, align 4
  %moved = icmp ne i32 %cpu, %lastcpu
  store atomic i32 %cpu, ptr %job_cpu.at monotonic, align 4
  store atomic i64 0, ptr %next.at monotonic, align 8
  %old = load atomic i64, ptr %state.at monotonic, align 8
  %oldgen = lshr i64 %old, 32
  %gen = add i64 %oldgen, 1
  %high = shl i64 %gen, 32
  %new = or i64 %high, 65536
  store atomic i64 %new, ptr %state.at seq_cst, align 8
  %round = add i64 %ntasks, %grain
  %last = sub i64 %round, 1
  %blocks = sdiv i64 %last, %grain
  call void @wake_sleepers(ptr %pool, i64 %blocks, i1 %moved)
  call void @claim_blocks(ptr %pool)
  %closing = atomicrmw and ptr %state.at, i64 -65537 seq_cst
  br label %wait
wait:
  %spins = phi i64 [ 0, %publish ], [ %spun, %again ]
  %now = load atomic i64, ptr %state.at acquire, align 8
  %active = and i64 %now, 65535
  %finished = icmp eq i64 %active, 0
  br i1 %finished, label %done, label %spin
spin:
  %spun = add i64 %spins, 1
  %long = icmp sgt i64 %spins, MAX_SPIN
  br i1 %long, label %yield, label %relax
relax:
  PAUSE
  br label %again
yield:
  %y = call i32 @sched_yield()
  br label %again
again:
  br label %wait
done:
  store atomic i32 0, ptr %lock.at release, align 4
  ret void
}
"""

_WORKER = """
; A worker thread's life: spin for a new generation, join it or let it pass, sleep when none comes.
; The spin doubles after it met a job and halves after each sleep.
define void @fusec_worker_main(ptr %pool) {
entry:
  WORDS state sleepers admitted stopping job_cpu mutex cond
  %process = icmp eq ptr %pool, @process_pool
  br i1 %process, label %start, label %own
own:
  call void @fusec_pool_enter(ptr %pool)  ; a nested call finds this pool busy, not another idle
  br label %start
start:
  br label %idle
idle:
  %seen = phi i64 [ 0, %start ], [ %gen, %missed ], [ %gen, %leave ], [ %seen, %awake ]
  %budget = phi i64 [ MAX_SPIN, %start ], [ %budget, %missed ], [ %longer, %leave ],
                    [ %shorter, %awake ]
  %avoided = phi i32 [ -1, %start ], [ %avoided, %missed ], [ %avoided, %leave ],
                     [ %avoiding, %awake ]
  br label %spin
spin:
  %spins = phi i64 [ 0, %idle ], [ %spun, %relax ]
  %polled = load atomic i64, ptr %state.at acquire, align 8
  %polledgen = lshr i64 %polled, 32
  %fresh = icmp ne i64 %polledgen, %seen
  br i1 %fresh, label %consider, label %relax
relax:
  PAUSE
  %spun = add i64 %spins, 1
  %tired = icmp sgt i64 %spun, %budget
  br i1 %tired, label %bed, label %spin

consider:
  %word = phi i64 [ %polled, %spin ], [ %actual, %join ]
  %gen = lshr i64 %word, 32
  %openbit = and i64 %word, 65536
  %open = icmp ne i64 %openbit, 0
  %active = and i64 %word, 65535
  %admitted = load atomic i64, ptr %admitted.at monotonic, align 8
  %room = icmp slt i64 %active, %admitted
  %welcome = and i1 %open, %room
  br i1 %welcome, label %join, label %missed
missed:
  br label %idle
join:
  %joined = add i64 %word, 1
  %pair = cmpxchg ptr %state.at, i64 %word, i64 %joined acq_rel acquire
  %actual = extractvalue { i64, i1 } %pair, 0
  %in = extractvalue { i64, i1 } %pair, 1
  br i1 %in, label %work, label %consider
work:
  call void @claim_blocks(ptr %pool)
  %left = atomicrmw sub ptr %state.at, i64 1 acq_rel
  br label %leave
leave:
  %double = shl i64 %budget, 1
  %longer = call i64 @llvm.smin.i64(i64 %double, i64 MAX_SPIN)
  br label %idle

bed:
  %callercpu = load atomic i32, ptr %job_cpu.at monotonic, align 4
  %avoiding = call i32 @avoid_cpu(i32 %avoided, i32 %callercpu)
  %l = call i32 @pthread_mutex_lock(ptr %mutex.at)
  %s = atomicrmw add ptr %sleepers.at, i64 1 seq_cst
  br label %look
look:
  %state = load atomic i64, ptr %state.at seq_cst, align 8
  %stategen = lshr i64 %state, 32
  %same = icmp eq i64 %stategen, %seen
  %stop = load atomic i64, ptr %stopping.at seq_cst, align 8
  %stay = icmp eq i64 %stop, 0
  %sleep = and i1 %same, %stay
  br i1 %sleep, label %asleep, label %up
asleep:
  %w = call i32 @pthread_cond_wait(ptr %cond.at, ptr %mutex.at)
  br label %look
up:
  %t = atomicrmw sub ptr %sleepers.at, i64 1 seq_cst
  %u = call i32 @pthread_mutex_unlock(ptr %mutex.at)
  br i1 %stay, label %awake, label %home
awake:
  %half = lshr i64 %budget, 1
  %shorter = call i64 @llvm.smax.i64(i64 %half, i64 MIN_SPIN)
  br label %idle
home:
  ret void
}
"""


def source() -> str:
    """The pool as LLVM IR text."""
    declaration, instruction = cpus.pause_instruction()
    text = "\n".join((_LIBRARY, pool_words.TEXT, cpus.affinity_text(), _CLAIM, _WAKE,
                      _PARALLEL_FOR, _WORKER, declaration))
    for name, value in {"PAUSE": instruction, "MAX_SPIN": MAX_SPIN, "MIN_SPIN": MIN_SPIN,
                        "POOL_BYTES": pool_words.POOL_BYTES,
                        "POOL_ALIGN": pool_words.POOL_ALIGN}.items():
        text = text.replace(name, str(value))
    return pool_words.with_addresses(text)


@functools.cache
def code() -> llvm.NativeCode:
    """The pool's machine code, compiled at first use; ``NativeUnavailableError`` off POSIX."""
    return compile_forever(source(), libc_addresses(*_LIBC, *cpus.AFFINITY_SYMBOLS))
