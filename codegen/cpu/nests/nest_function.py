"""The function of a nest: its argument block, its operands' addresses, the loops around a stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ...kernels.loop_ir import walk
from ...kernels.specialise import LoopForm
from ..abi import BlockLayout
from ..emitter import LlvmEmitter, LlvmValue
from .indices import FailureFlags
from .inlining import with_calls

STEP_VECTORS = 4  # the most vectors that one step of a loop takes
MANY_PARTS = 8  # of short axes: each is a vector of its own, so that narrow ones are enough


def natural_lanes(form: LoopForm) -> int:
    """Elements per vector: two AVX2 registers of the widest dtype, one where parts are many."""
    sizes = [e.dtype.itemsize for e in walk(form.nest.roots) if e.op != "index"]
    sizes += [o.dtype.itemsize for o in form.operands]
    lanes = {8: 8, 4: 16}.get(max(sizes, default=8), 32)
    parts = sum(form.near_stride(number) != 0 for number in range(len(form.operands)))
    return lanes // 2 if parts >= MANY_PARTS and form.mode == "map" else lanes


class NestFunction:
    """Emits ``void name(ptr block, i64 begin, i64 end)`` for a form."""

    def __init__(self, form: LoopForm, name: str) -> None:
        self.form, self.name = form, name
        self.layout = BlockLayout.of(form)
        self.em = LlvmEmitter()
        self.lanes = natural_lanes(form)
        self.scratch: list[str] = []
        self.failures = FailureFlags(self.em)

    # -- function frame

    def emit(self) -> LlvmEmitter:
        """The finished functions are in ``emitter.functions``."""
        self._function(self.name, self._body)
        return self.em

    def _body(self) -> None:
        """Tasks ``%begin`` to ``%end``; every mode has its own."""
        raise NotImplementedError

    def _function(self, name: str, body: Callable[[], None]) -> None:
        em = self.em
        em.lines, em.allocas, em.of_lines = [], [], []
        self.failures = FailureFlags(em)
        self._load_block()
        body()
        if self.failures.slot:
            self.failures.report(self._slot(self.layout.status, "ptr"),
                                 self._slot(self.layout.record, "ptr"))
        for pointer in self.scratch:
            em.line(f"call void @free(ptr {pointer})")
        self.scratch = []
        em.line("ret void")
        head = f"define void @{name}(ptr %block, i64 %begin, i64 %end) nounwind {{"
        lines = with_calls(em.lines, em.functions, self.form.nest.roots)
        text = "\n".join([head, "entry:", *em.allocas, *lines, "}"])
        em.functions[name] = text
        if em.origins is not None:
            em.origins[name] = 2 + len(em.allocas), em.of_lines

    def _slot(self, number: int, kind: str = "i64") -> str:
        pointer = self.em.value(f"getelementptr i64, ptr %block, i64 {number}")
        return self.em.value(f"load {kind}, ptr {pointer}")

    def _load_block(self) -> None:
        layout, form = self.layout, self.form
        self.base = [self._slot(k, "ptr") for k in range(layout.operands)]
        self.extent = [self._slot(layout.extent(loop)) for loop in range(layout.loops)]
        self.stride = [
            [self._slot(layout.stride(k, loop)) for loop in range(layout.loops)]
            for k in range(layout.operands)
        ]
        self.gathered = [
            [self._slot(layout.gathered_stride(k, n)) for n in range(count)]
            for k, count in enumerate(layout.gathered)
        ]
        self.params = [self._param_pointer(n) for n in range(layout.params)]
        self.param_values: dict[int, LlvmValue] = {
            e.attr: self.em.load(self.params[e.attr], e.dtype, 1)
            for e in walk(form.nest.roots) if e.op == "param"
        }

    def _param_pointer(self, number: int) -> str:
        return self.em.value(f"getelementptr i64, ptr %block, i64 {self.layout.param(number)}")

    def _allocate_scratch(self, lanes: int) -> None:
        """Row scratch for this call: one element (or vector of columns) per inner point."""
        em, form = self.em, self.form
        if not form.nest.scratch:
            return
        count = "1"
        for loop in range(form.outer, len(form.extents)):
            count = em.mul(count, self.extent[loop])
        em.declare("declare ptr @malloc(i64)")
        em.declare("declare void @free(ptr)")
        for dtype in form.nest.scratch:
            # One more step: the last one of a row is written whole.
            padded = em.add(count, STEP_VECTORS * self.lanes)
            size = em.mul(padded, dtype.itemsize * lanes)
            self.scratch.append(em.value(f"call ptr @malloc(i64 {size})", "scratch"))

    # -- pointers and counters

    def _decode(self, task: str, loops: Sequence[int]) -> dict[int, str]:
        """Counters of the loops from a linear task number, last loop fastest."""
        em, counters = self.em, {}
        for loop in reversed(loops):
            if loop == loops[0]:
                counters[loop] = task
                break
            counters[loop] = em.value(f"urem i64 {task}, {self.extent[loop]}")
            task = em.value(f"udiv i64 {task}, {self.extent[loop]}")
        return counters

    def _moved(self, pointers: Sequence[str], counters: dict[int, str]) -> list[str]:
        """Pointers advanced by these counters (never along the vectorised loop)."""
        result = []
        for k, pointer in enumerate(pointers):
            for loop, counter in counters.items():
                if self.form.operands[k].strides[loop] != 0:
                    pointer = self.em.offset(pointer, self.em.mul(self.stride[k][loop], counter))
            result.append(pointer)
        return result

    @contextmanager
    def _each(
        self, loops: Sequence[int], pointers: list[str], counters: dict[int, str],
    ) -> Iterator[tuple[list[str], dict[int, str], str]]:
        """Every point of these loops: pointers and counters there, and its linear number."""
        em, linear = self.em, "0"
        with ExitStack() as stack:
            for loop in loops:
                i = stack.enter_context(em.loop(0, self.extent[loop]))
                pointers = self._moved(pointers, {loop: i})
                counters = {**counters, loop: i}
                linear = i if linear == "0" else em.value(
                    f"add i64 {em.mul(linear, self.extent[loop])}, {i}")
            yield pointers, counters, linear
