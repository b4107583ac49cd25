"""Calls with CuPy's arrays as one function of straight text: memory, launches, results.

A plan that one GPU runs alone, by kernels of known sizes and functions of CuPy, needs none of the
bookkeeping of plans over several devices: arguments are compared, memory is borrowed from
CuPy's pool, kernels are launched as `Prepared` has them, CuPy's functions are called in
between, results are CuPy's own arrays.  Everything is asked of CuPy's current stream.  Where the
function answers MISS, for arguments that do not fit, memory that is full, a check that has failed
or a matrix that is refused, the plan is run as others are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from fusec.codegen.structured.calls.call_statements import NodeCall
from fusec.codegen.structured.memory import View
from fusec.codegen.structured.still_views import NotStillError, PlacesOfCall, still_view
from fusec.codegen.structured.text_writer import TextWriter, indented
from fusec.core.occupancy import HoldOfPlan
from fusec.ir.regions import byte_extent
from fusec.runtime.call_spec import CallSpec, LeafSpec, ResultSpec, cell_count

from ..launching.outcomes import MISS
from .gpu_call import GpuCall, WithoutProducts
from .gpu_library_text import LibraryText, NotPreparedError, new_text
from .gpu_numbers import is_such, packed
from .gpu_tasks import only_task
from .resident_arrays import PreparedKernels
from .variable_values import reader, writer

_WORD = 8


def gpu_call(call_plan: Any, spec: CallSpec) -> GpuCall:
    """How calls of this plan run."""
    try:
        text = _Text(call_plan, spec)
    except NotPreparedError as error:
        return GpuCall(None, None, str(error))
    return GpuCall(text.function(), text.prepared, "", text.without_products)


class _Text(TextWriter):
    """The text for one plan and the objects that it names."""

    def __init__(self, call_plan: Any, spec: CallSpec) -> None:
        self.spec, self.whole = spec, call_plan
        self.without_products = WithoutProducts(partial(gpu_call, call_plan, spec))
        self.task = only_task(call_plan, spec)
        self.action = call_plan.actions[0]
        numbers = cell_count(tuple(v.type for v in self.task.graph.inputs))
        places = PlacesOfCall(self.task, self.action.layouts)
        prepared = call_plan.residents.prepared(self.task, numbers, places)
        if isinstance(prepared, str):
            raise NotPreparedError(prepared)
        self.prepared: PreparedKernels = prepared
        super().__init__({"MISS": MISS, **prepared.names})
        self.leaf_of = {leaf.input: i for i, leaf in reversed([*enumerate(spec.leaves)])
                        if leaf.input >= 0}
        self.outs = self._outs()
        self.outside = {number: captured for number, captured in spec.read_outside
                        if number in self.action.reads}
        self.words = False  # whether the host has to see the numbers that kernels compute
        self.library = LibraryText(places, prepared, self.bind, self._pointer, self._leaf)
        self._write()

    @property
    def _leaves(self) -> str:
        return ", ".join(f"x{i}" for i in range(len(self.spec.leaves)))

    def function(self) -> Callable[..., Any]:
        """The compiled text."""
        return self.compiled(f"def call({self._leaves}):", f"<call of {self.spec.name}>")

    def _write(self) -> None:
        results = [self._result(result) for result in self.spec.results]
        with self.inside("try:"):
            if self.prepared.products:
                again = self.bind("without_products", self.without_products)
                self.line(f"if {again}.made: return {again}({self._leaves})")
            self._guards()
            with self._held():
                self._body(results)
        if self.prepared.products:
            self.line(f"except no_product: return {again}({self._leaves})")
        self.line("except faults as error: raise told(error) from error")

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Around what is done while nobody else may have the Variables."""
        if any(writes for _, writes in self.spec.holds):
            hold = self.bind("hold", partial(HoldOfPlan, self.spec.holds, True))
            with self.inside(f"with {hold}():"):
                yield
        else:
            yield

    def _body(self, results: list[str]) -> None:
        self._read_variables()
        steps = [*self._steps()]
        self._borrow()
        if self.prepared.is_watched:
            self.line("try:", *indented([*steps, "wait()"]), "except BaseException:",
                      "    end_loops()", "    raise")
        else:
            self.line(*steps)
        if self.words or self.prepared.status >= 0:
            self._look()
        self._assign()
        text = results[0] if self.spec.bare else f"({''.join(f'{r}, ' for r in results)})"
        self.line(f"return {text}")

    # -- what fits

    def _guards(self) -> None:
        tests = [*self._of_code()]
        for number, leaf in enumerate(self.spec.leaves):
            tests += self._of_leaf(f"x{number}", leaf)
        self._miss_unless(tests)
        arrays = [i for i, leaf in enumerate(self.spec.leaves) if self._is_array(leaf)]
        self.line(*(f"p{i} = x{i}.data.ptr" for i in arrays))
        tests = [f"p{i} % {align} == 0" for i in arrays
                 if (align := self._type(i).dtype.alignment) > 1]
        self._miss_unless([*tests, *self._of_memory(arrays)])
        for number, captured in self.outside.items():
            self._read_outside(number, captured)

    def _miss_unless(self, tests: list[str]) -> None:
        if tests:
            self.line(f"if not ({' and '.join(tests)}): return MISS")

    def _of_code(self) -> Iterator[str]:
        """Functions must go on to have the code that was traced; work goes to one GPU alone."""
        for function, code in self.spec.code:
            yield f"{self.bind('fn', function)}.__code__ is {self.bind('code', code)}"
        if "device_now" in self.names:
            yield "device_now() == device"

    def _of_leaf(self, x: str, leaf: LeafSpec) -> Iterator[str]:
        if leaf.is_weak:  # the plan ends with it
            yield f"id({x}) == {id(leaf.object)}"
            return
        if leaf.generator is not None:
            yield f"type({x}) is {self.bind('kind', leaf.generator.type)}"
            return
        if leaf.input < 0:
            value = self.bind("static", leaf.value)
            yield f"type({x}) is int and {x} == {value}" if type(leaf.value) is int else (
                f"{x} is {value}")
            return
        type_ = self.spec.input_types[leaf.input]
        if type_.kind != "array":
            yield is_such(x, type_, self.bind)
        else:
            strides = self.spec.input_strides[leaf.input]
            yield f"type({x}) is kind and {x}.shape == {type_.shape} and {x}.strides == {strides}"
            yield f"{x}.dtype == {self.bind('dtype', type_.dtype)}"
            if "device_now" in self.names:
                yield f"{x}.device.id == device"

    def _read_outside(self, number: int, captured: Any) -> None:
        """What the call reads from outside, as it is now."""
        h, type_ = f"h{number}", self.spec.input_types[number]
        self.line(f"{h} = {self.bind('outside', captured)}{'()' * callable(captured)}")
        if type_.kind != "array":
            self._miss_unless([is_such(h, type_, self.bind)])
            return
        strides = self.spec.input_strides[number]
        self._miss_unless([
            f"isinstance({h}, {self.bind('array', np.ndarray)}) and {h}.shape == {type_.shape}",
            f"{h}.strides == {strides} and {h}.dtype == {self.bind('dtype', type_.dtype)}"])

    def _of_memory(self, arrays: list[int]) -> Iterator[str]:
        """Arguments that were one array are one; those that are written overlap no other."""
        leaves = self.spec.leaves
        for i in arrays:
            if leaves[i].alias_of >= 0:
                yield f"p{leaves[i].alias_of} == p{i}"
        for i in arrays:
            for j in arrays:
                if leaves[i].input in self.spec.updates and i != j and (
                        leaves[j].alias_of != i and leaves[i].alias_of != j):
                    yield self._are_apart(i, j)
        at = {leaves[i].input: i for i in arrays}
        for one, other in sorted(self.spec.apart):
            yield self._are_apart(at[one], at[other])

    def _are_apart(self, i: int, j: int) -> str:
        (low, high), (least, most) = (byte_extent(
            self._type(k).shape, self.spec.input_strides[self.spec.leaves[k].input],
            self._type(k).dtype.itemsize) for k in (i, j))
        return f"(p{i} + {high} <= p{j} + {least} or p{j} + {most} <= p{i} + {low})"

    def _is_array(self, leaf: LeafSpec) -> bool:
        return leaf.input >= 0 and self.spec.input_types[leaf.input].kind == "array"

    def _type(self, leaf: int) -> Any:
        return self.spec.input_types[self.spec.leaves[leaf].input]

    def _read_variables(self) -> None:
        """Their values on the GPU, of one moment."""
        residents, names = self.whole.residents, []
        for number, occupancy in self.spec.variables:
            read = reader(residents, occupancy, self.names["stream_now"])
            names.append((f"v{number}", self.bind("read", read)))
        self.line(*(f"{value} = {read}()" for value, read in names))
        self._miss_unless([f"{value} is not None" for value, _ in names])
        if len(names) > 1:
            self._miss_unless([f"{value} is {read}()" for value, read in names])

    # -- memory and launches

    def _outs(self) -> dict[int, View]:
        """The arrays that the plan gives, by the numbers of their places."""
        return {p.memory.position: p for p in self.task.outputs
                if isinstance(p, View) and p.memory.origin == "target"}

    def _borrow(self) -> None:
        lines = [f"target{n} = {new_text(place, self.bind('dtype', place.dtype))}"
                 for n, place in self.outs.items() if ("target", n) not in self.prepared.called]
        if ("block", 0) in self._bases() or self.library.uses_block:
            lines.append(f"block = alloc({self.prepared.nbytes})")
        for number in self.outside:
            if self.spec.input_types[number].kind == "array":
                there = self.prepared.outside(self.spec.is_packed(number))
                lines.append(f"c{number} = {self.bind('there', there)}(h{number})")
        if ("numbers", 0) in self._bases():
            numbers = [(self._name(at), value.type) for at, value in zip(
                self.action.reads, self.task.graph.inputs, strict=True)
                if value.type.kind != "array"]
            lines.append(f"numbers = given({packed(numbers, self.bind)})")
        if lines:
            self.line("try:", *indented(lines), "except full: return MISS")
        start, end = self.prepared.cleared
        if start < end:
            self.line(f"clear(block.ptr + {start}, {end - start})")

    def _bases(self) -> set[tuple[str, int]]:
        """All that kernels get addresses of."""
        return {base for part in self.prepared.parts if not isinstance(part, NodeCall)
                for base in part.bases}

    def _steps(self) -> Iterator[str]:
        """Launches of segments, and library calls between them."""
        segments = 0
        for part in self.prepared.parts:
            if isinstance(part, NodeCall):
                yield from self.library.lines(part)
            elif not hasattr(part, "launches"):
                yield f"copy({self._at(part.to)}, {self._at(part.of)}, {part.nbytes})"
            else:
                yield f"launch{segments}({', '.join(map(self._base, part.bases))})"
                segments += 1

    def _at(self, place: Any) -> str:
        """The address of bytes after the beginning of an array or block, or of a constant."""
        if isinstance(place, np.ndarray):
            return self._constant(place)
        return f"{self._base(place.base)} + {place.offset}"

    def _constant(self, array: np.ndarray) -> str:
        return f"{self.bind('constant', self.prepared.constant(array))}().data.ptr"

    def _base(self, base: tuple[str, int]) -> str:
        """The address of an array or block."""
        kind, number = base
        if kind == "constant":
            return self._constant(self.prepared.constants[number])
        if kind == "operand":
            index = self.action.reads[number]
            if index in self.leaf_of:
                return f"p{self.leaf_of[index]}"
            return f"c{index}.ptr" if index in self.outside else f"v{index}.address"
        return f"{kind}{number}.data.ptr" if kind in ("target", "temp") else f"{kind}.ptr"

    def _pointer(self, base: tuple[str, int]) -> str:
        """CuPy's pointer to it."""
        kind, number = base
        if kind == "operand":
            index = self.action.reads[number]
            if index in self.outside:
                return f"c{index}"
            over = self.bind("over", self.prepared.over)
            return f"x{self.leaf_of[index]}.data" if index in self.leaf_of else (
                f"{over}(v{index}.array).data")
        if kind == "temp" and base not in self.prepared.called:
            place = self.task.temps[number]
            return f"block + {self.prepared.address(place)[1]}"
        return f"{kind}{number}.data"

    def _leaf(self, base: tuple[str, int]) -> str:
        """The argument that is there, as the program gives it; empty where it is none."""
        index = self.action.reads[base[1]] if base[0] == "operand" else -1
        return f"x{self.leaf_of[index]}" if index in self.leaf_of else ""

    def _name(self, index: int) -> str:
        """Of an input as the call has it."""
        return f"x{self.leaf_of[index]}" if index in self.leaf_of else f"h{index}"

    def _look(self) -> None:
        """Bring to the host what kernels have computed beside arrays."""
        status = self.prepared.status
        self.line(f"words = computed(block.ptr, {self.prepared.words})")
        if status >= 0:
            self.line(f"if words[{status}:].any(): return MISS")

    def _assign(self) -> None:
        """Copy to arguments what the program has assigned to them."""
        for index, number in self.whole.writes:
            if index not in self.leaf_of:
                if index not in dict(self.spec.variables):
                    raise NotPreparedError("an array from outside is written")
                self._assign_variable(index, number)
                continue
            place, leaf = self._place(number), self.leaf_of.get(index, -1)
            if place is None or place.memory.origin != "target" or leaf < 0:
                raise NotPreparedError("an argument is given another one's elements")
            low, high = byte_extent(place.shape, place.strides, place.dtype.itemsize)
            nbytes = place.dtype.itemsize * int(np.prod(place.shape))
            if place.strides != self.spec.input_strides[index] or low or high != nbytes:
                raise NotPreparedError("an argument that is written has gaps")
            self.line(f"copy(p{leaf}, target{place.memory.position}.data.ptr, {nbytes})")

    def _assign_variable(self, index: int, number: int) -> None:
        """What a kernel has made becomes the value, where nobody else has it."""
        place = self._place(number)
        strides = self.spec.input_strides[index]
        if place is None or place.memory.origin != "target" or place.strides != strides or (
                number in self.whole.results):
            raise NotPreparedError("a Variable is assigned what something else has, too")
        buffer = self.spec.captured[index - self.spec.first_captured]
        write = writer(self.whole.residents, dict(self.spec.variables)[index], buffer,
                       self.names["stream_now"])
        self.line(f"{self.bind('write', write)}(target{place.memory.position})")

    # -- results

    def _result(self, result: ResultSpec) -> str:
        """The expression of a result."""
        if result.kind == "const":
            return self.bind("constant", result.value)
        if result.kind == "fresh":
            raise NotPreparedError("a result is an array that no kernel computes")
        if result.kind == "input":
            if result.index not in self.leaf_of:
                raise NotPreparedError("a result is an array from outside of the call")
            type_, strides = (
                self.spec.input_types[result.index], self.spec.input_strides[result.index])
            return self._shown(f"x{self.leaf_of[result.index]}", type_.shape, strides,
                               type_.dtype, result)
        number = self.whole.results[result.index]
        if number is None:
            return self.bind("constant", self.whole.outputs[result.index])
        place = self._place(number)
        if place is None or place.views or place.memory.origin not in ("target", "cell"):
            raise NotPreparedError("a result lies in the memory of another")
        if place.memory.origin == "target":
            return self._shown(f"target{place.memory.position}", place.shape, place.strides,
                               place.dtype, result)
        return self._number(place, self.spec.output_types[result.index], result)

    def _place(self, number: int) -> View | None:
        """Where the task has a value of the step; None: it does not make it."""
        if number not in self.action.writes:
            return None
        place = self.task.outputs[self.action.writes.index(number)]
        return place if isinstance(place, View) else None

    def _shown(
        self, array: str, shape: Any, strides: Any, dtype: np.dtype, result: ResultSpec
    ) -> str:
        if not result.views:
            return array
        try:
            view = still_view(shape, strides, dtype, result.views)
        except NotStillError as error:
            raise NotPreparedError(str(error)) from None
        return (f"kind({view.shape}, {self.bind('dtype', view.dtype)}, "
                f"{array}.data + {view.offset}, {view.strides})")

    def _number(self, place: View, type_: Any, result: ResultSpec) -> str:
        if result.views or type_.kind == "array" or place.memory.position < self.prepared.numbers:
            raise NotPreparedError("a number is returned as an array")
        self.words = True
        begin = _WORD * place.memory.position
        element = f"words[{begin}:{begin + place.dtype.itemsize}].view(" + (
            f"{self.bind('dtype', place.dtype)})[0]")
        return f"{element}.item()" if type_.is_weak else element
