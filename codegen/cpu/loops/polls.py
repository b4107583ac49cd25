"""Polls of a native loop: it gives up the interpreter's lock, and lets signals be handled.

Work is counted in estimated nanoseconds.  When `BUDGET_NS` are spent, the function calls
``release`` before a kernel, or ``poll`` between two iterations; these look at the clock (see
``fusec.runtime.native.interrupts``).  A signal's handler may raise.  The call then ends between two
iterations, so arrays hold the results of whole iterations.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fusec.codegen.cpu.emitter import UNLIKELY

from .frame import Frame

BUDGET_NS = 50_000
# A loop that LLVM may vectorise runs so many iterations between polls, of a ns each at least.
CHUNK = 1 << 14
BYTES_OF_A_NS = 8  # bytes that are copied in one ns


@contextmanager
def in_chunks(frame: Frame, cost: int, counter: str, limit: str) -> Iterator[None]:
    """Repeats while the value in the slot ``counter`` is below the limit.

    ``cost``: ns of an iteration.  `CHUNK` iterations are an inner loop without polls, which LLVM
    can vectorise.  LLVM cannot see where a chunk begins, so it is told that the counter only grows;
    otherwise every chunk would test for negative indices.
    """
    em = frame.em
    for name in ("llvm.sadd.sat.i64", "llvm.smin.i64"):
        em.declare(f"declare i64 @{name}(i64, i64)")
    em.declare("declare void @llvm.assume(i1)")
    begun = em.value(f"load i64, ptr {counter}")
    with em.while_loop() as (_, done):
        first = em.value(f"load i64, ptr {counter}")
        em.line(f"call void @llvm.assume(i1 {em.value(f'icmp sge i64 {first}, {begun}')})")
        full = em.value(f"call i64 @llvm.sadd.sat.i64(i64 {first}, i64 {CHUNK})")
        end = em.value(f"call i64 @llvm.smin.i64(i64 {limit}, i64 {full})")
        with em.while_loop() as (_, rest):
            enter(frame, em.value(f"icmp slt i64 {em.value(f'load i64, ptr {counter}')}, {end}"),
                  rest)
            yield
        last = em.value(f"load i64, ptr {counter}")
        poll(frame, em.mul(em.value(f"sub i64 {last}, {first}"), str(cost)))
        enter(frame, em.value(f"icmp slt i64 {last}, {limit}"), done)


def enter(frame: Frame, going: str, done: str) -> None:
    """Branch to ``done`` unless ``going`` is true."""
    inside = frame.em.fresh("inside")
    frame.em.line(f"br i1 {going}, label %{inside}, label %{done}")
    frame.em.label(inside)


def prepare_polls(frame: Frame) -> None:
    """Of a function of which calls poll: the lock is its, and it takes it back at its end."""
    _state(frame)


def poll(frame: Frame, cost: str) -> None:
    """A poll between two iterations; ``cost``: ns of the last one that were not yet counted."""
    em = frame.em
    spend(frame, cost)
    with em.branch(_is_spent(frame), UNLIKELY):
        em.line(f"store i64 {BUDGET_NS}, ptr {budget(frame)}")
        raised = em.value(f"call i64 {_callee(frame, 'poll')}(ptr {_state(frame)})")
        _leave_if(frame, em.value(f"icmp ne i64 {raised}, 0"))


def before_work(frame: Frame, cost: str) -> None:
    """Give the lock up, if the budget is spent, before so many ns of work without a poll."""
    spend(frame, cost)
    with frame.em.branch(_is_spent(frame), UNLIKELY):
        frame.em.line(f"call void {_callee(frame, 'release')}(ptr {_state(frame)})")


def call_python(frame: Frame, number: int) -> str:
    """Call the callback of that number; the register that says whether it succeeded.

    An exception of a signal's handler, before or after the call, is an early exit.
    """
    em = frame.em
    code = em.value(f"call i64 {_callee(frame, 'call_python')}(ptr {_state(frame)}, "
                    f"ptr {frame.word('callback', number, 'ptr')})")
    _leave_if(frame, em.value(f"icmp eq i64 {code}, 2"))
    return em.value(f"icmp eq i64 {code}, 0")


def spend(frame: Frame, cost: str) -> None:
    """Count so many ns of work."""
    em, left_at = frame.em, budget(frame)
    left = em.value(f"load i64, ptr {left_at}")
    em.line(f"store i64 {em.value(f'sub i64 {left}, {cost}')}, ptr {left_at}")


def _leave_if(frame: Frame, raised: str) -> None:
    """Emit an early exit where an exception is set."""
    em = frame.em
    leave, on = em.fresh("leave"), em.fresh("on")
    em.line(f"br i1 {raised}, label %{leave}, label %{on}")
    em.label(leave)
    frame.leave(-1)
    em.label(on)


def _is_spent(frame: Frame) -> str:
    left = frame.em.value(f"load i64, ptr {budget(frame)}")
    return frame.em.value(f"icmp slt i64 {left}, 0")


def budget(frame: Frame) -> str:
    """Where the ns of work left until the next poll are."""
    if not frame.budget:
        frame.budget = frame.em.alloca("i64", "budget", 8)
        frame.entry.append(f"  store i64 {BUDGET_NS}, ptr {frame.budget}")
    return frame.budget


def _callee(frame: Frame, name: str) -> str:
    return frame.word(name, 0, "ptr")


def _state(frame: Frame) -> str:
    """The address of the lock's two words.

    Whoever asks may give the lock up, so the function takes it back at its end.
    """
    if not frame.at_end and frame.caller is None:
        first, second = (frame.word_address("lock", number) for number in range(2))
        frame.entry += [f"  store i64 0, ptr {first}", f"  store i64 0, ptr {second}"]
        frame.at_end = f"call void {frame.early_word('hold', 0, 'ptr')}(ptr {first})"
    return frame.word_address("lock", 0)
