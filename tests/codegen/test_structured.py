"""The structured IR: its memory and exchanges, its text, and faults that its verifier finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen.kernels.loop_ir import Buffer, Kernel
from fusec.codegen.structured import statements as s
from fusec.codegen.structured.memory import BOOL, I64, Constant, Memory, Register, Variable, View
from fusec.codegen.structured.not_native import NotNativeError
from fusec.codegen.structured.program import StructuredProgram, build_program
from fusec.codegen.structured.verify import StructureError, verify
from fusec.ir.sizes.dims import symbol

F64 = np.dtype("f8")


def smooth(x: Any, steps: Any) -> Any:
    for _ in range(steps):
        y = x.copy()
        y[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
        x = y
    return x


def running_sum(x: Any, n: Any) -> Any:
    total = 0.0
    i = 0
    while total < 100.0 and i < n:
        total = total + x[i]
        x[i] = total
        i += 1
    return total


def program_of(function: Callable, *args: Any) -> StructuredProgram:
    """The program of the only branch or loop, which the back end compiles."""
    concrete = fusec.jit(function).concrete(*args)
    (control,) = concrete.control
    assert control.is_native
    program = build_program(control.run.node, control.run.strides)
    verify(program)
    return program


def inside(block: s.Block) -> Iterator[Any]:
    """Every statement, those inside of others included."""
    for statement in block:
        yield statement
        for part in s.blocks_of(statement):
            yield from inside(part)


def of_kind(program: StructuredProgram, kind: type) -> list[Any]:
    return [x for x in inside(program.body) if isinstance(x, kind)]


# -- what is decided


def test_an_array_computed_anew_changes_places_with_the_old_one() -> None:
    program = program_of(smooth, np.linspace(0, 1, 30), np.int64(50))
    loops = of_kind(program, s.While)
    assert len(loops) == 1 and len(loops[0].body) > 0
    assert not [x for x in inside(loops[0].body) if isinstance(x, s.Copy)]
    (exchange,) = of_kind(program, s.Exchange)
    old, new = exchange.pairs[0]
    assert exchange.pairs == ((old, new), (new, old)) and old.origin == "target"


def test_an_array_that_nobody_reads_later_is_written_in_place() -> None:
    program = program_of(running_sum, np.arange(50.0), np.int64(50))
    (store,) = of_kind(program, s.Store)
    assert store.place.memory.origin == "target" and not of_kind(program, s.Exchange)
    assert not [x for x in of_kind(program, s.Declare) if getattr(x.thing, "origin", "") == "temp"]


def test_numbers_alone_are_counted_without_polls() -> None:
    def mean_of_squares(n: Any) -> Any:
        total = 0
        for k in range(n):
            total += k * k
        return total

    program = program_of(mean_of_squares, np.int64(100))
    (loop,) = of_kind(program, s.CountedLoop)
    assert loop.cost > 0 and not of_kind(program, s.Poll) and not of_kind(program, s.While)


def test_what_cannot_be_native_is_refused_while_statements_are_built() -> None:
    @fusec.vectorize
    def root(x: float) -> float:
        if x < 0:
            raise ValueError("negative")
        return x ** 0.5

    def roots(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = root(x) + 1
        return x

    (control,) = fusec.jit(roots).concrete(np.arange(3.0), np.int64(4)).control
    assert control.structured == "" and not control.is_native
    with pytest.raises(NotNativeError, match="may raise"):
        build_program(control.run.node, control.run.strides)


# -- its text


TEXT = """\
structured Loop:
  m0: f64[] of 400 bytes = target 2
  r0: i64 = input 3
  v0: f64
  v0 = 0.0
  v1: i64
  v1 = 0
  loop:
    r1: f64 = v0
    r2: i64 = v1
    r3: bool = r1 < 100.0
    r4: bool = r2 < r0
    r5: bool = select(r3, r4, False)
    leave unless r5
    poll 20 ns
    r6: i64 = 50
    r7: i64 = wrap_index(r2, r6)
    r8: bool = in_range(r7, r6)
    check r8 else exit 0 index r2
    r9: f64 = load m0 [r7]
    r10: f64 = r1 + r9
    r11: i64 = 50
    r12: i64 = wrap_index(r2, r11)
    r13: bool = in_range(r12, r11)
    check r13 else exit 1 index r2
    store m0 [r12] = r10
    r14: i64 = r2 + 1
    v0 = r10
    v1 = r14
  r15: f64 = v0
  r16: i64 = v1
  output 0 = r15
  output 1 = r16
  m1: f64[] of 400 bytes = target 2
  r17: bool = m0 is not at m1
  if r17:
    copy (m1: f64[50 by 8]) = (m0: f64[50 by 8])
  exit 0: Pick Pick_2 at FILE:36
  exit 1: PickUpdate PickUpdate_1 at FILE:37"""


def test_the_text_names_registers_memory_and_exits() -> None:
    text = str(program_of(running_sum, np.arange(50.0), np.int64(50)))
    assert text.replace(__file__, "FILE") == TEXT


def test_loops_show_their_statements_and_dump_them(tmp_path: Path) -> None:
    x, n = np.arange(50.0), np.int64(50)
    with fusec.config.override(dump_dir=str(tmp_path)):
        (control,) = fusec.jit(running_sum).concrete(x, n).control
    (file,) = tmp_path.rglob("loop_0.structured")
    assert file.read_text().rstrip("\n") == control.structured == str(program_of(running_sum, x, n))
    assert (file.parent / "loop_0.ll").read_text().rstrip("\n") == control.asm["ll"].rstrip("\n")


# -- its verifier


def memory(number: int, nbytes: int = 80, origin: Any = "temp") -> Memory:
    return Memory(number, nbytes, F64, origin)


def view(of: Memory, size: int = 10, step: int = 8) -> View:
    return View(of, (size,), (step,), F64)


R, FLAG, INDEX = Register(0, F64), Register(1, BOOL), Register(2, I64)
V = Variable(0, F64)
A, B, SMALL = memory(0), memory(1), memory(2, 40)
ONE, TRUE = Constant(1.0, F64), Constant(True, BOOL)
KERNEL = Kernel("two", tuple(Buffer(name, F64, (4,), role) for name, role in (
    ("x", "in"), ("y", "out"), ("z", "out"))), (), ())
DECLARED = tuple(map(s.Declare, (V, A, B, SMALL)))
BROKEN: dict[str, tuple[tuple, str]] = {
    "read before it is defined": ((s.Set(V, R),), "r0 is not defined before"),
    "defined twice": ((s.Get(R, V), s.Get(R, V)), "r0 is defined twice"),
    "defined in a branch": (
        (s.If(TRUE, (s.Get(R, V),)), s.Set(V, R)), "r0 is not defined before"),
    "not declared": ((s.Get(R, Variable(9, F64)),), "v9 is not declared before"),
    "memory not declared": ((s.Store(View(memory(9), (), (), F64), ONE),), "m9 is not declared"),
    "another dtype": ((s.Set(V, TRUE),), "bool is not float64"),
    "a condition of numbers": ((s.If(ONE, ()),), "a condition is not a boolean"),
    "an index of floats": ((s.Let(INDEX, "wrap_index", (ONE, ONE)),), "not an int64"),
    "a view beyond its memory": ((s.Copy(view(A, 11), view(B, 11)),), "reaches beyond its memory"),
    "a view before its memory": ((s.Copy(view(A, 2, -8), view(B, 2)),), "reaches beyond"),
    "a copy between shapes": ((s.Copy(view(A, 4), view(B, 5)),), "between two shapes"),
    "a copy within memory": (
        (s.Copy(view(A, 4, 16), view(A, 4, 8)),), "within one memory that is not in C order"),
    "two results in one memory": (
        (s.RunKernel(KERNEL, (), (view(A, 4),), (view(B, 4), view(B, 4))),), "in one memory"),
    "an exchange that loses": ((s.Exchange(((A, B),)),), "loses memory"),
    "an exchange of sizes": ((s.Exchange(((A, SMALL), (SMALL, A))),), "different sizes"),
    "a target that is pointed": ((s.Point(A, B),), "no alias has taken it"),
    "a size nobody defines": (
        (s.Number(INDEX, symbol("n")),), "are not defined before"),
    "no such exit": ((s.Check(TRUE, 3, Constant(0, I64), Constant(0, I64)),), "there is no exit 3"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_verifier_finds(name: str) -> None:
    statements, message = BROKEN[name]
    program = program_of(running_sum, np.arange(5.0), np.int64(5))
    verify(fusec.core.records.replace(program, body=DECLARED, exits=[]))
    with pytest.raises(StructureError, match=message):
        verify(fusec.core.records.replace(program, body=(*DECLARED, *statements), exits=[]))


def test_an_exit_that_no_statement_takes_is_an_error() -> None:
    program = program_of(running_sum, np.arange(5.0), np.int64(5))
    with pytest.raises(StructureError, match=r"exits .* are nobody's"):
        verify(fusec.core.records.replace(program, body=()))


def test_programs_are_verified_where_passes_are(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    monkeypatch.setattr("fusec.codegen.cpu.loops.program.verify", found.append)
    for verified in (False, True):
        with fusec.config.override(verify=verified):
            fusec.jit(lambda x, n: running_sum(x, n)).concrete(np.arange(4.0), np.int64(3))
        assert len(found) == verified


def test_what_a_gradient_keeps_is_not_compared_pair_by_pair() -> None:
    """Each array that a loop leaves was asked whether it lies where any other one belongs: for a
    step of Runge-Kutta's, 15,000 comparisons, 2.1 MB of LLVM's text and 20 s to compile."""
    def loss(x: Any) -> Any:
        for _k in range(30):
            a, b = x
            x = x + 0.01 * np.array([b * np.sin(a) / (1.0 + a * a), np.cos(b) * np.exp(-a) - a * b])
        return x[0]

    x, h = np.array([0.5, 0.25]), np.array([1e-6, 0.0])
    gradient = fusec.grad(loss)
    assert abs(gradient(x)[0] - (loss(x + h) - loss(x - h)) / 2e-6) < 1e-6
    control = gradient.concrete(x).control
    programs = [build_program(c.run.node, c.run.strides) for c in control]
    asked = [len(one.others) for program in programs for one in _statements(program.body)
             if isinstance(one, s.IsAt)]
    assert len(control) == 2 and asked and sum(asked) < 2 * len(asked)


def _statements(block: Any) -> Any:
    for x in block:
        yield x
        for inner in s.blocks_of(x):
            yield from _statements(inner)
