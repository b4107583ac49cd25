// Blocks, threads, barriers and checks of the emulated device; linked into each module of kernels.
//
// Threads of a block are fibres: each has a stack, and one runs until it waits or returns.  A thread
// that never waits gives its stack to the next, so kernels without barriers cost two switches a
// thread.  Blocks run one after another.  Both orders are permuted by the launch's seed.
//
// This file is compiled without instrumentation; kernels are compiled with -fsanitize=thread and
// -fsanitize=alignment,..., whose functions are at the end of it.  A launch that finds a fault
// leaves the fibre where it is and returns: nothing of a kernel has to be cleaned up.
//
// A launch is run in slices: what schedules the fibres is a fibre itself, and after some thousands of
// accesses control goes back to the host wherever the launch is, which goes on with it or does not.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned u32;
typedef unsigned long long u64;
typedef __UINTPTR_TYPE__ word;
struct uint3 { u32 x, y, z; };

#define HIDDEN extern "C" __attribute__((visibility("hidden")))
#define EXPORT extern "C" __attribute__((visibility("default")))
#define SHARED __attribute__((section("fusec_shared"), used))

// ---- what the host hands over; `launches.py` has the same fields ---------------------------------------

struct Range { word start, end; u32 is_written, unused; };
enum Phase { NEW, RUNNING, PAUSED, OVER };
enum Kind {
  OUT_OF_BOUNDS = 1, READ_ONLY, MISALIGNED, RACE, DIVERGED, UNDEFINED, TRAPPED, TOO_LARGE,
  BAD_SHUFFLE, STACK_FULL
};
struct Report {
  u32 kind, line;
  uint3 block, thread, other;
  u64 address, size;
  u32 is_write, is_shared;
  u64 code;  // where in the module
  u32 other_line, other_has_left;
};
struct Launch {
  void (*kernel)(void **);
  void **args;
  u32 grid[3], block[3];
  u64 shared_bytes;
  const Range *ranges;
  u64 range_count;
  char *stacks;  // of one more than stack_count times stack_bytes: the last is the scheduler's
  u64 stack_bytes, stack_count;
  void *shadow;  // zeros at first, then kept from launch to launch: a `Shadow` for each shared byte
  u64 shadow_bytes;
  u64 seed;  // 0: blocks and threads in order
  u64 is_cooperative;  // its blocks wait for each other
  u64 phase;  // a `Phase`
  Report report;  // of the fault that ended it; its kind is 0 where there was none
};

static const u64 MOST_SHARED = 232448;  // bytes of a block's shared memory on sm_90
HIDDEN __attribute__((aligned(128))) char fusec_host_dynamic_shared[MOST_SHARED] = {};
static SHARED __attribute__((aligned(16))) char last_gap[64] = {};
static __attribute__((section("fusec_gaps"), used)) char *const last_gap_at = last_gap;
HIDDEN char __start_fusec_shared[], __stop_fusec_shared[];
HIDDEN char *const __start_fusec_gaps[], *const __stop_fusec_gaps[];
HIDDEN char __ehdr_start[];
HIDDEN char _end[];

// ---- the state: one launch at a time -------------------------------------------------------------------

enum State : u8 { FRESH, READY, WAITING, LEFT };
enum What { SYNC, BALLOT, MATCH, IDX, UP, DOWN, XOR, BLOCK = 100, GRID };
struct Thread {
  void *stack_pointer;
  char *stack;
  State state;
  u8 is_counted;
  u32 linear;
  uint3 index;
  int line, what, number, width, size;
  u32 mask, answer;
  const void *in;
  void *out;
};
struct Reader { u32 epoch, warp_epoch; u16 thread; };
struct Shadow {  // who has used a byte of shared memory last
  u32 write_epoch, write_warp_epoch;
  u16 writer;
  u8 is_atomic;
  Reader readers[3];  // the last; the last of another warp than that; another of its warp
};

static const u32 MOST_THREADS = 1024, WARP = 32;
static const u64 SLICE = 1u << 16;  // accesses and switches, up to some 20 ms
static const u64 UNTOUCHED = 0x5afe57ac5afe57acull;  // the lowest word of each stack
static Thread threads[MOST_THREADS];
static u32 order[MOST_THREADS], thread_count, free_count, warp_epochs[MOST_THREADS / WARP];
static char *free_stacks[MOST_THREADS];
static Thread *current;
static Launch *launch;
static uint3 block_index;
static u32 epoch;  // counts blocks and barriers of all launches: none sees what an earlier one used
static u64 random_state;
static Report report;
static bool has_failed;
static void *scheduler_stack, *host_stack, *paused_stack;
static u64 steps_left;  // of the slice
static word low, high;  // the stack of the thread that runs
static const Range *last_range;

HIDDEN uint3 fusec_host_thread() { return current->index; }
HIDDEN uint3 fusec_host_block() { return block_index; }
HIDDEN uint3 fusec_host_block_size() {
  return {launch->block[0], launch->block[1], launch->block[2]};
}
HIDDEN uint3 fusec_host_grid_size() { return {launch->grid[0], launch->grid[1], launch->grid[2]}; }

// ---- fibres ----------------------------------------------------------------------------------------------
// Saves what the calling convention has callees save, and goes on where `to` was saved.

HIDDEN void fusec_host_switch(void **from, void *to);
HIDDEN void fusec_host_begin();
#if defined(__x86_64__)
asm(R"(
.text
.hidden fusec_host_switch
.globl fusec_host_switch
.type fusec_host_switch, @function
fusec_host_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size fusec_host_switch, .-fusec_host_switch
)");
static void *fresh_stack(char *top, void (*begin)()) {
  void **at = (void **)top;
  *--at = 0;  // nobody is returned to
  *--at = (void *)begin;
  return at - 6;
}
#elif defined(__aarch64__)
asm(R"(
.text
.hidden fusec_host_switch
.globl fusec_host_switch
.type fusec_host_switch, %function
fusec_host_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size fusec_host_switch, .-fusec_host_switch
)");
static void *fresh_stack(char *top, void (*begin)()) {
  void **at = (void **)(top - 160);
  at[11] = (void *)begin;  // x30, which ret goes to
  return at;
}
#else
#error "the emulated device knows the stacks of x86-64 and AArch64"
#endif

static void to_scheduler() { fusec_host_switch(&current->stack_pointer, scheduler_stack); }

// From the scheduler or from a thread: whoever it is goes on here when the host comes back.
static void to_host(Phase phase) {
  launch->phase = phase;
  fusec_host_switch(&paused_stack, host_stack);
}

static inline void count_step() {
  if (--steps_left) return;
  steps_left = SLICE;
  to_host(PAUSED);
}

HIDDEN void fusec_host_begin() {
  launch->kernel(launch->args);
  current->state = LEFT;
  to_scheduler();
  __builtin_unreachable();
}

static void note(Kind kind, int line);

static void run(Thread *thread) {
  count_step();
  current = thread;
  if (thread->state == FRESH) {
    thread->stack = free_stacks[--free_count];
    thread->stack_pointer = fresh_stack(thread->stack + launch->stack_bytes, fusec_host_begin);
    *(u64 *)thread->stack = UNTOUCHED;
  }
  thread->state = READY;
  low = (word)thread->stack;
  high = low + launch->stack_bytes;
  fusec_host_switch(&scheduler_stack, thread->stack_pointer);
  if (*(u64 *)thread->stack != UNTOUCHED) note(STACK_FULL, 0);
  if (thread->state == LEFT) free_stacks[free_count++] = thread->stack;
}

// ---- faults --------------------------------------------------------------------------------------------

static void note(Kind kind, int line) {
  report.kind = kind;
  report.line = (u32)line;
  report.block = block_index;
  if (current) report.thread = current->index;
  has_failed = true;
}

// Ends the launch at the thread that runs; it never goes on.
static void fail(Kind kind, int line, word address = 0, u64 size = 0, bool is_write = false,
                 void *code = 0) {
  note(kind, line);
  report.address = address;
  report.size = size;
  report.is_write = is_write;
  report.code = code ? (word)code - (word)__ehdr_start : 0;
  to_scheduler();
}

static uint3 index_of(u32 linear) { return threads[linear].index; }

// ---- shared memory ---------------------------------------------------------------------------------------

static bool is_ordered(u32 then, u32 warp_then, u32 other) {
  if (then != epoch) return true;
  u32 warp = current->linear / WARP;
  return other / WARP == warp && warp_then != warp_epochs[warp];
}

static void race(u32 other, word at, u64 size, bool is_write, void *code) {
  report.other = index_of(other);
  report.is_shared = 1;
  fail(RACE, 0, at, size, is_write, code);
}

static void note_reader(Shadow *byte) {
  Reader *readers = byte->readers;
  u16 me = (u16)current->linear;
  if (readers[0].thread != me || readers[0].epoch != epoch) {
    if (readers[0].epoch == epoch)
      readers[readers[0].thread / WARP == me / WARP ? 2 : 1] = readers[0];
  }
  readers[0] = {epoch, warp_epochs[me / WARP], me};
}

static void use_byte(Shadow *byte, word at, u64 size, bool is_write, bool is_atomic, void *code) {
  u32 me = current->linear;
  if (byte->writer != me && !(is_atomic && byte->is_atomic) &&
      !is_ordered(byte->write_epoch, byte->write_warp_epoch, byte->writer))
    race(byte->writer, at, size, is_write, code);
  if (!is_write) return note_reader(byte);
  for (Reader &reader : byte->readers)
    if (reader.thread != me && !is_ordered(reader.epoch, reader.warp_epoch, reader.thread))
      race(reader.thread, at, size, is_write, code);
  u32 warp_epoch = warp_epochs[me / WARP];
  bool was_plain = byte->writer == me && byte->write_epoch == epoch &&
                   byte->write_warp_epoch == warp_epoch && !byte->is_atomic;
  byte->write_epoch = epoch;
  byte->write_warp_epoch = warp_epoch;
  byte->writer = (u16)me;
  byte->is_atomic = is_atomic && !was_plain;  // its plain write is still a race with others
}

static void use_shared(u64 number, word at, u64 size, bool is_write, bool is_atomic, void *code) {
  Shadow *shadow = (Shadow *)launch->shadow + number;
  if ((number + size) * sizeof(Shadow) > launch->shadow_bytes) fail(TOO_LARGE, 0);
  for (u64 i = 0; i < size; i++) use_byte(shadow + i, at, size, is_write, is_atomic, code);
}

static bool is_in_gap(word at, u64 size) {
  for (char *const *gap = __start_fusec_gaps; gap < __stop_fusec_gaps; gap++)
    if (at < (word)*gap + 64 && at + size > (word)*gap) return true;
  return false;
}

// Whether that is shared memory; the bytes of static arrays come first in the shadow.
static bool is_shared(word at, u64 size, bool is_write, bool is_atomic, void *code) {
  word start = (word)__start_fusec_shared, stop = (word)__stop_fusec_shared;
  word dynamic = (word)fusec_host_dynamic_shared;
  report.is_shared = 1;
  if (at >= start && at < stop) {
    if (is_in_gap(at, size)) fail(OUT_OF_BOUNDS, 0, at, size, is_write, code);
    use_shared(at - start, at, size, is_write, is_atomic, code);
    return true;
  }
  if (at >= dynamic && at < dynamic + MOST_SHARED) {
    if (at + size > dynamic + launch->shared_bytes)
      fail(OUT_OF_BOUNDS, 0, at, size, is_write, code);
    use_shared(stop - start + (at - dynamic), at, size, is_write, is_atomic, code);
    return true;
  }
  report.is_shared = 0;
  return false;
}

static bool holds(const Range *range, word at, u64 size, bool is_write) {
  return at >= range->start && at + size <= range->end && (range->is_written || !is_write);
}

static void access(word at, u64 size, bool is_write, bool is_atomic, void *code) {
  count_step();
  if (at >= low && at + size <= high) return;
  if (last_range && holds(last_range, at, size, is_write)) return;
  bool is_read_only = false;
  for (u64 i = 0; i < launch->range_count; i++) {
    const Range *range = launch->ranges + i;
    if (holds(range, at, size, is_write)) {
      last_range = range;
      return;
    }
    is_read_only |= holds(range, at, size, false);
  }
  if (is_shared(at, size, is_write, is_atomic, code)) return;
  if (at >= (word)__ehdr_start && at + size <= (word)_end && !is_write) return;  // constants
  fail(is_read_only ? READ_ONLY : OUT_OF_BOUNDS, 0, at, size, is_write, code);
}

HIDDEN void fusec_host_atomic(const void *at, int size) {
  void *code = __builtin_return_address(0);
  if ((word)at % (u64)size) fail(MISALIGNED, 0, (word)at, (u64)size, true, code);
  access((word)at, (u64)size, true, true, code);
}

// ---- waiting -----------------------------------------------------------------------------------------------

static void wait(int line, int what) {
  current->line = line;
  current->what = what;
  current->state = WAITING;
  to_scheduler();
}

HIDDEN int fusec_host_block_count(int line, int predicate) {
  current->is_counted = predicate != 0;
  current->number = (int)thread_count;
  wait(line, BLOCK);
  return (int)current->answer;
}

HIDDEN void fusec_host_block_barrier(int line) { fusec_host_block_count(line, 0); }

// Of the first threads of a block, as many as that.
HIDDEN void fusec_host_team_barrier(int line, u32 count) {
  current->number = (int)count;
  if (!count || count % WARP || count > thread_count || current->linear >= count)
    fail(DIVERGED, line);
  wait(line, BLOCK);
}

HIDDEN void fusec_host_grid_barrier(int line) {
  current->number = (int)thread_count;
  if (!launch->is_cooperative) fail(DIVERGED, line);
  wait(line, GRID);
}

HIDDEN void fusec_host_trap(int line) { fail(TRAPPED, line); }

HIDDEN u32 fusec_host_warp(
    int line, int what, u32 mask, int number, int width, const void *in, void *out, int size) {
  Thread *me = current;
  if (!(mask >> (me->linear % WARP) & 1) || width < 1 || width > 32 || (width & (width - 1)))
    fail(BAD_SHUFFLE, line);
  me->mask = mask;
  me->number = number;
  me->width = width;
  me->in = in;
  me->out = out;
  me->size = size;
  wait(line, what);
  return me->answer;
}

// The lane that a shuffle reads from, as the PTX manual's shfl says; its own where that is outside.
static u32 source_lane(const Thread *thread, u32 lane) {
  int width = thread->width, number = thread->number;
  u32 first = lane & ~(u32)(width - 1), inside = lane - first;
  switch (thread->what) {
    case IDX: return first + ((u32)number & (u32)(width - 1));
    case UP: return inside < (u32)number ? lane : lane - (u32)number;
    case DOWN: return inside + (u32)number >= (u32)width ? lane : lane + (u32)number;
    default: return (inside ^ (u32)number) >= (u32)width ? lane : first + (inside ^ (u32)number);
  }
}

static u32 lanes(u32 first) { return thread_count - first < WARP ? thread_count - first : WARP; }

// What a lane that does not take part has is undefined on a GPU: it is garbage here.
static void shuffle(Thread *warp, u32 count, u32 lane) {
  Thread *to = warp + lane;
  u32 from = source_lane(to, lane);
  bool takes_part = from < count && (to->mask >> from & 1) && warp[from].state == WAITING;
  if (takes_part) __builtin_memcpy(to->out, warp[from].in, (u64)to->size);
  else __builtin_memset(to->out, 0xa5, (u64)to->size);
}

// The lanes that have the bytes of this one.
static u32 matches(const Thread *warp, u32 count, u32 mask, u32 lane) {
  u32 same = 0;
  for (u32 i = 0; i < count; i++)
    if (mask >> i & 1 && warp[i].state != LEFT && warp[i].size == warp[lane].size &&
        !__builtin_memcmp(warp[i].in, warp[lane].in, (u64)warp[lane].size))
      same |= 1u << i;
  return same;
}

// Whether all that the mask names, and that have not left, wait for the same.
static bool is_met(Thread *warp, u32 count, const Thread *first) {
  for (u32 i = 0; i < count; i++) {
    const Thread *lane = warp + i;
    if (!(first->mask >> i & 1) || lane->state == LEFT) continue;
    if (lane->state != WAITING || lane->what != first->what || lane->line != first->line ||
        lane->mask != first->mask)
      return false;
  }
  return true;
}

static void meet(Thread *warp, u32 count, u32 mask, int what, u32 number) {
  u32 ballot = 0;
  for (u32 i = 0; i < count; i++)
    if (mask >> i & 1 && warp[i].state == WAITING && warp[i].number) ballot |= 1u << i;
  u32 answers[WARP];
  for (u32 i = 0; i < count; i++)
    answers[i] = what == MATCH && mask >> i & 1 && warp[i].state == WAITING
                     ? matches(warp, count, mask, i)
                     : ballot;
  if (what >= IDX)
    for (u32 i = 0; i < count; i++)
      if (mask >> i & 1 && warp[i].state == WAITING) shuffle(warp, count, i);
  if (what == SYNC) warp_epochs[number]++;
  for (u32 i = 0; i < count; i++)
    if (mask >> i & 1 && warp[i].state == WAITING) {
      warp[i].answer = answers[i];
      warp[i].state = READY;
    }
}

static bool release_warps() {
  bool any = false;
  for (u32 first = 0; first < thread_count; first += WARP) {
    Thread *warp = threads + first;
    u32 count = lanes(first);
    for (u32 i = 0; i < count; i++)
      if (warp[i].state == WAITING && warp[i].what < BLOCK && is_met(warp, count, warp + i)) {
        meet(warp, count, warp[i].mask, warp[i].what, first / WARP);
        any = true;
      }
  }
  return any;
}

// Two threads that cannot both go on: one has left, or waits elsewhere.
static void diverge(const Thread *waiting, const Thread *other) {
  current = (Thread *)waiting;
  note(DIVERGED, waiting->line);
  report.other = other->index;
  report.other_has_left = other->state == LEFT;
  report.other_line = (u32)other->line;
}

// The first thread that waits says for how many: those of a team are the first of their block.
static bool release_block() {
  const Thread *first = 0;
  for (u32 i = 0; i < thread_count && !first; i++)
    if (threads[i].state == WAITING) first = threads + i;
  u32 count = 0, all = first->what < BLOCK ? thread_count : (u32)first->number;
  for (u32 i = 0; i < all; i++) {
    const Thread *thread = threads + i;
    if (thread->state == LEFT || thread->what != first->what || thread->line != first->line ||
        (u32)thread->number != all) {
      diverge(first, thread);
      return false;
    }
    count += thread->is_counted;
  }
  if (first->what != BLOCK) {  // all of a line, and yet some mask is not met
    if (first->what != GRID) diverge(first, first);
    return false;
  }
  epoch++;
  for (u32 i = 0; i < all; i++) {
    threads[i].answer = count;
    threads[i].state = READY;
  }
  return true;
}

// ---- blocks ------------------------------------------------------------------------------------------------

static u64 drawn(u64 below) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state % below;
}

static void shuffle_order() {
  if (!launch->seed) return;
  for (u32 i = thread_count - 1; i > 0; i--) {
    u32 j = (u32)drawn(i + 1), kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
}

// Shared memory holds garbage when a block begins.
static void begin_block(u64 first_stack) {
  u8 garbage = launch->seed ? (u8)(0x80 | drawn(128)) : 0xa5;
  char *at = __start_fusec_shared;
  __builtin_memset(at, garbage, (u64)(__stop_fusec_shared - at));
  __builtin_memset(fusec_host_dynamic_shared, garbage, launch->shared_bytes);
  epoch++;
  free_count = 0;
  for (u32 i = 0; i < thread_count; i++) {
    threads[i].state = FRESH;
    free_stacks[free_count++] = launch->stacks + (first_stack + i) * launch->stack_bytes;
  }
}

// Until all its threads have left, or wait for the other blocks.
static bool run_threads() {
  while (!has_failed) {
    bool is_over = true;
    shuffle_order();
    for (u32 i = 0; i < thread_count && !has_failed; i++)
      if (threads[order[i]].state <= READY) run(threads + order[i]);
    for (u32 i = 0; i < thread_count; i++) is_over &= threads[i].state == LEFT;
    if (is_over) return true;
    if (!has_failed && !release_warps() && !release_block()) return false;
  }
  return false;
}

static bool run_block() {
  begin_block(0);
  return run_threads();
}

// The n-th block in the launch's order: an affine permutation of all of them.
struct Blocks { u64 count, factor, first; };

static u64 greatest_divisor(u64 a, u64 b) { return b ? greatest_divisor(b, a % b) : a; }

static Blocks blocks_in_order() {
  u64 count = (u64)launch->grid[0] * launch->grid[1] * launch->grid[2];
  Blocks blocks = {count, 1, 0};
  if (!launch->seed || count < 2) return blocks;
  blocks.first = drawn(count);
  do blocks.factor = 1 + drawn(count < 1u << 31 ? count : 1u << 31);
  while (greatest_divisor(count, blocks.factor) != 1);
  return blocks;
}

// ---- blocks that wait for each other: each has the state above in its turn --------------------------

struct Kept {
  Thread threads[MOST_THREADS];
  u32 warp_epochs[MOST_THREADS / WARP], free_count;
  char *free_stacks[MOST_THREADS];
  char statics[MOST_SHARED], dynamic[MOST_SHARED];
  bool is_over;
};
static const u32 MOST_RESIDENT = 4;
static Kept kept[MOST_RESIDENT];

static void copy(void *to, const void *from, u64 size) { __builtin_memcpy(to, from, size); }

static u64 static_bytes() { return (u64)(__stop_fusec_shared - __start_fusec_shared); }

static void put_aside(Kept *block) {
  copy(block->threads, threads, sizeof(Thread) * thread_count);
  copy(block->warp_epochs, warp_epochs, sizeof warp_epochs);
  copy(block->free_stacks, free_stacks, sizeof free_stacks);
  copy(block->statics, __start_fusec_shared, static_bytes());
  copy(block->dynamic, fusec_host_dynamic_shared, launch->shared_bytes);
  block->free_count = free_count;
}

static void take_up(const Kept *block) {
  copy(threads, block->threads, sizeof(Thread) * thread_count);
  copy(warp_epochs, block->warp_epochs, sizeof warp_epochs);
  copy(free_stacks, block->free_stacks, sizeof free_stacks);
  copy(__start_fusec_shared, block->statics, static_bytes());
  copy(fusec_host_dynamic_shared, block->dynamic, launch->shared_bytes);
  free_count = block->free_count;
  epoch++;
}

// One round: every block until it waits for the others.  How many are over.
static u32 run_round(u32 count) {
  u32 over = 0, first = launch->seed ? (u32)drawn(count) : 0;
  for (u32 n = 0; n < count && !has_failed; n++) {
    u32 number = (first + n) % count;
    block_index = {number, 0, 0};
    take_up(kept + number);
    kept[number].is_over = kept[number].is_over || run_threads();
    put_aside(kept + number);
    over += kept[number].is_over;
  }
  return over;
}

// All of them wait at one line.
static void release_grid(u32 count) {
  for (u32 n = 0; n < count; n++)
    for (u32 i = 0; i < thread_count; i++) {
      Thread *thread = kept[n].threads + i;
      if (thread->state != WAITING || thread->what != GRID || thread->line != kept->threads->line) {
        block_index = {n, 0, 0};
        copy(threads, kept[n].threads, sizeof(Thread) * thread_count);
        return diverge(threads + i, threads);
      }
      thread->state = READY;
    }
}

static void run_together() {
  u32 count = launch->grid[0];
  for (u32 n = 0; n < count; n++) {
    begin_block((u64)n * thread_count);
    put_aside(kept + n);
    kept[n].is_over = false;
  }
  while (!has_failed) {
    u32 over = run_round(count);
    if (has_failed || over == count) return;
    release_grid(count);
  }
}

static void begin_launch() {
  has_failed = false;
  current = 0;
  last_range = 0;
  report = {};
  random_state = launch->seed * 0x9e3779b97f4a7c15ull | 1;
  thread_count = launch->block[0] * launch->block[1] * launch->block[2];
  if (epoch >= 1u << 31) {
    __builtin_memset(launch->shadow, 0, launch->shadow_bytes);
    epoch = 0;
  }
  u32 linear = 0;
  for (u32 z = 0; z < launch->block[2]; z++)
    for (u32 y = 0; y < launch->block[1]; y++)
      for (u32 x = 0; x < launch->block[0]; x++) {
        threads[linear] = {};
        threads[linear].linear = order[linear] = linear;
        threads[linear].index = {x, y, z};
        linear++;
      }
}

static void run_blocks() {
  if (launch->is_cooperative && launch->grid[0] > 1) return run_together();
  Blocks blocks = blocks_in_order();
  for (u64 n = 0, at = blocks.first; n < blocks.count; n++) {
    block_index = {(u32)(at % launch->grid[0]), (u32)(at / launch->grid[0] % launch->grid[1]),
                   (u32)(at / launch->grid[0] / launch->grid[1])};
    if (!run_block()) return;
    at = (at + blocks.factor) % blocks.count;
  }
}

HIDDEN void fusec_host_schedule() {
  u64 threads_asked = (u64)launch->block[0] * launch->block[1] * launch->block[2];
  if (launch->is_cooperative) threads_asked *= launch->grid[0];
  if (!launch->grid[0] || launch->shared_bytes > MOST_SHARED || threads_asked > launch->stack_count ||
      (launch->is_cooperative && launch->grid[0] > MOST_RESIDENT)) {
    report = {};
    current = 0;
    note(TOO_LARGE, 0);
  } else {
    begin_launch();
    run_blocks();
  }
  launch->report = report;
  to_host(OVER);
  __builtin_unreachable();
}

// Bytes of shadow that a launch with so many bytes of dynamic shared memory needs.
EXPORT u64 fusec_host_shadow_bytes(u64 shared_bytes) {
  return ((u64)(__stop_fusec_shared - __start_fusec_shared) + shared_bytes) * sizeof(Shadow);
}

// Runs a slice of a launch: the first, or the next of the one that was run before and is not over.
// Returns the phase that it is in then.
EXPORT u64 fusec_host_run(Launch *of) {
  if (of->phase == PAUSED && of != launch) of->phase = RUNNING;  // another has taken its place
  if (of->phase != NEW && of->phase != PAUSED) return of->phase;
  launch = of;
  steps_left = SLICE;
  if (of->phase == NEW)
    paused_stack = fresh_stack(of->stacks + (of->stack_count + 1) * of->stack_bytes,
                               fusec_host_schedule);
  of->phase = RUNNING;
  fusec_host_switch(&host_stack, paused_stack);
  return of->phase;
}

// ---- what the instrumentation calls --------------------------------------------------------------------

#define CODE __builtin_return_address(0)
#define ACCESS(name, size, is_write, needs_alignment) \
  HIDDEN void __tsan_##name##size(void *p) { \
    if (needs_alignment && (word)p % size) fail(MISALIGNED, 0, (word)p, size, is_write, CODE); \
    access((word)p, size, is_write, false, CODE); \
  }
#define ACCESSES(size) \
  ACCESS(read, size, false, true) \
  ACCESS(write, size, true, true) \
  ACCESS(volatile_read, size, false, true) \
  ACCESS(volatile_write, size, true, true) \
  ACCESS(unaligned_read, size, false, false) \
  ACCESS(unaligned_write, size, true, false)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
HIDDEN void __tsan_read_range(void *p, u64 size) { access((word)p, size, false, false, CODE); }
HIDDEN void __tsan_write_range(void *p, u64 size) { access((word)p, size, true, false, CODE); }
HIDDEN void __tsan_read_write4(void *p) { access((word)p, 4, true, false, CODE); }
HIDDEN void __tsan_read_write8(void *p) { access((word)p, 8, true, false, CODE); }
// Clang's, for arrays and structures as a whole.
HIDDEN void *__tsan_memset(void *to, int byte, u64 size) {
  if (size) access((word)to, size, true, false, CODE);
  return __builtin_memset(to, byte, size);
}
HIDDEN void *__tsan_memcpy(void *to, const void *from, u64 size) {
  if (size) access((word)from, size, false, false, CODE);
  if (size) access((word)to, size, true, false, CODE);
  return __builtin_memmove(to, from, size);
}
HIDDEN void *__tsan_memmove(void *to, const void *from, u64 size) {
  return __tsan_memcpy(to, from, size);
}
HIDDEN void __tsan_func_entry(void *) {}
HIDDEN void __tsan_func_exit() {}
HIDDEN void __tsan_init() {}

// Their first argument begins with the place in the source.
struct Place { const char *file; u32 line, column; };
struct Mismatch { Place place; const void *type; u8 log_alignment, kind; };

HIDDEN void __ubsan_handle_type_mismatch_v1(Mismatch *data, word at) {
  fail(MISALIGNED, (int)data->place.line, at, 1ull << data->log_alignment);
}
#define UNDEFINED_BINARY(name) \
  HIDDEN void __ubsan_handle_##name(Place *at, word, word) { fail(UNDEFINED, (int)at->line); }
#define UNDEFINED_UNARY(name) \
  HIDDEN void __ubsan_handle_##name(Place *at, word) { fail(UNDEFINED, (int)at->line); }
UNDEFINED_BINARY(add_overflow)
UNDEFINED_BINARY(sub_overflow)
UNDEFINED_BINARY(mul_overflow)
UNDEFINED_BINARY(divrem_overflow)
UNDEFINED_BINARY(shift_out_of_bounds)
UNDEFINED_UNARY(negate_overflow)
UNDEFINED_UNARY(float_cast_overflow)
