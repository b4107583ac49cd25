"""The text of a plan: objects by name, and expressions of the values in its places.

Plans that differ in sizes alone share their text, which is written from the plan with symbols.
Objects of one plan, or of its sizes, are made for its names by functions of the plan.
"""

from __future__ import annotations

import builtins
import functools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fusec.codegen.plan.call_plan import AtItsSizes, CallPlan
from fusec.codegen.structured.memory import View
from fusec.codegen.structured.text_writer import TextWriter
from fusec.ir import TensorType
from fusec.ir.sizes.bindings import Bindings, bind, size_source
from fusec.ir.sizes.dims import Size, is_static
from fusec.ops.calls.host_calls import HostObject
from fusec.ops.calls.library import decode, leaves_of

from ..call_spec import CallSpec
from ..launching.cells import Cells
from .segments import allocator, sized_allocator

if TYPE_CHECKING:
    from .sub_programs import GraphPlan

Key = tuple[str, int]
_STEMS = {"operand": "arg", "target": "out", "temp": "temp"}  # of the variables of arrays


class Plan(Protocol):
    """What names of a text are made from; the text names the plan itself too."""

    call_plan: CallPlan
    spec: CallSpec
    cells: Cells
    segments: list[Any]
    objects: list[HostObject] | None

    @staticmethod
    def of_graph(call_plan: CallPlan) -> GraphPlan: ...
    def results_of(self, graph_outputs: list[Any], leaves: Sequence[Any], captured: Sequence[Any],
                   sizes: Bindings) -> list[Any]: ...


def itself(value: Any) -> Any:
    return value


class PlanText(TextWriter):
    """Lines of the text, the objects that they name, and the variables of arrays.

    ``spec`` and ``at`` are those of the first plan that has the text.
    """

    def __init__(self, call_plan: CallPlan, spec: CallSpec, at: AtItsSizes) -> None:
        self.call_plan, self.spec, self.at = call_plan, spec, at
        super().__init__({
            "ndarray": np.ndarray, "asarray": np.asarray, "matmul": np.matmul, "bind": bind,
            "partial": functools.partial, "itself": itself, "leaves_of": leaves_of,
            "perf_counter": time.perf_counter, "__builtins__": builtins,
        })
        self.made: dict[str, Callable[[Plan], Any]] = {"plan": itself}  # for each plan anew
        self.assigned: dict[Key, str] = {}  # the variable of each array that is there

    def _bind_made(self, stem: str, make: Callable[[Plan], Any]) -> str:
        """A name for what each plan has by itself."""
        return self._once_made(self.new_name(stem), make)

    def _bind_data(self, stem: str, data: Any, of: Callable[[Any], Any] = itself) -> str:
        """A name for what is made of data, at the sizes of each plan if these are in it."""
        if self.at.data(data) is data:
            return self.bind(stem, of(data))
        return self._bind_made(stem, lambda plan: of(plan.call_plan.at.data(data)))

    def decoded(self, form: Any) -> str:
        """A name for what a form without operands stands for."""
        return self._bind_data("constant", form, lambda x: decode(x, ()))

    def _bind_source(self, stem: str, source: Any, of: Callable[[Any], Any] = itself) -> str:
        """The same of a place, or of a constant that a step has in the stead of one."""
        if self.at.source(source) is source:
            return self.bind(stem, of(source))
        return self._bind_made(stem, lambda plan: of(plan.call_plan.at.source(source)))

    def new_name(self, stem: str) -> str:
        return f"{stem}_{len(self.names) + len(self.made)}"

    def _assign(self, key: Key, expression: str) -> None:
        name = self.assigned.setdefault(key, f"{_STEMS[key[0]]}{key[1]}")
        if name != expression:
            self.line(f"{name} = {expression}")

    def _write_cell(self, number: int, dtype: np.dtype, value: str) -> None:
        """What a number leaves of its words is zero."""
        if dtype.itemsize < 8:
            self._once_made("words", lambda plan: plan.cells.words)
            self.line(f"words[{number}] = 0")
        self.line(f"{self._cell(number, dtype)}[0] = {value}")

    def _cell(self, number: int, dtype: np.dtype) -> str:
        """A scalar's words as an array of one element."""
        return self._once_made(
            f"cell{number}_{dtype.num}", lambda plan: plan.cells.view(number, dtype))

    def _cell_array(self, place: View) -> str:
        """The same as an array of rank 0, for libraries to write."""
        number, dtype = place.memory.position, place.dtype
        return self._once_made(f"scalar{number}_{dtype.num}",
                               lambda plan: plan.cells.view(number, dtype).reshape(()))

    def _once_made(self, name: str, make: Callable[[Plan], Any]) -> str:
        self.made.setdefault(name, make)
        return name

    # -- memory

    def _read(self, place: Any, type_: TensorType) -> str:
        """What a place holds: an array, or a NumPy scalar of a cell or an array's element."""
        if not isinstance(place, View):
            return self._bind_source("constant", place)
        if not place.is_cell:
            text = self.assigned[place.key]
        else:
            text = f"{self._cell(place.memory.position, place.dtype)}[0]"
            if place.views:
                text = f"asarray({text}, {self.bind('dtype', place.dtype)})"
        if place.views:
            taken = [] if type_.kind == "array" else self._taken(place)
            view = self._bind_source("view", place, lambda at: _composed([*at.views, *taken]))
            text = f"{view}({text}, sizes)"
        return text

    def _taken(self, place: View) -> list[Shown]:
        """What makes a number of the array of rank 0 that a place's views show."""
        arrays = self.call_plan.arrays
        views: list[Shown] = [lambda array, sizes: array[()]]
        if arrays is not None and not place.is_cell:
            fetch = arrays.fetch
            views.insert(0, lambda array, sizes: fetch(array))
        return views

    def _contents(self, place: Any, type_: TensorType) -> str:
        """What a place holds; for an array of rank 0 its memory, not a copy of the number."""
        is_array = isinstance(place, View) and place.is_cell and type_.kind == "array"
        return self._cell_array(place) if is_array and not place.views else self._read(place, type_)

    def _operand(self, place: Any, type_: TensorType) -> str:
        """The same as NumPy would have it: an array, a scalar, a Python number."""
        if not isinstance(place, View):
            return self._bind_source("constant", place, lambda at: _as_operand(at, type_))
        if type_.is_weak and place.is_cell and not place.views:
            return f"{self._cell(place.memory.position, place.dtype)}.item()"
        text = self._read(place, type_)
        if type_.kind == "array" and (place.is_cell or place.views):
            return f"asarray({text})"
        return text if not type_.is_weak else f"{self.bind('number', _number)}({text})"

    def _new(self, place: View) -> str:
        """Fresh memory in the place's layout, where the plan's kernels read it."""
        arrays = self.call_plan.arrays
        if arrays is not None:
            return f"{self.bind('new', sized_allocator(place, arrays.empty))}(sizes)"
        if place.is_static:
            return f"{self._bind_source('new', place, allocator)}()"
        return f"{self.bind('new', sized_allocator(place))}(sizes)"

    def _sizes(self, sizes: tuple[Size, ...]) -> str:
        """A tuple of sizes."""
        return self._bind_data("sizes", sizes) if is_static(sizes) else shape_text(sizes)

    def _target(self, place: View) -> str:
        """The memory that a library call is to write."""
        if place.is_cell:
            return self._cell_array(place)
        return self.assigned.get(place.key) or self._new(place)

    def _device_memory(self, place: View) -> str:
        """An expression of a function that returns the memory that a device's call is to write."""
        if place.is_cell or place.key in self.assigned:
            return f"partial(itself, {self._target(place)})"
        return f"lambda: {self._new(place)}"

    def _target_maker(self, place: View) -> str:
        """An expression of a function that returns that memory."""
        variable = self.assigned.get(place.key)
        if place.is_cell:
            return f"partial(itself, {self._cell_array(place)})"
        if variable is not None:
            return f"partial(itself, {variable})"
        if place.is_static:
            return self._bind_source("new", place, allocator)
        return f"partial({self.bind('new', sized_allocator(place))}, sizes)"


def _as_operand(value: Any, type_: TensorType) -> Any:
    if type_.is_weak:
        return _number(value)
    return np.asarray(value) if type_.kind == "array" else value


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def shape_text(sizes: Sequence[Size]) -> str:
    return "(" + "".join(f"{size_source(n, 'sizes')}, " for n in sizes) + ")"


Shown = Callable[[np.ndarray, Bindings], np.ndarray]


def _composed(views: Sequence[Shown]) -> Shown:
    """The views applied in turn.

    As text they would be nested calls, and Python cannot compile hundreds of these.
    """
    if len(views) == 1:
        return views[0]

    def view(array: np.ndarray, sizes: Bindings) -> np.ndarray:
        for step in views:
            array = step(array, sizes)
        return array

    return view
