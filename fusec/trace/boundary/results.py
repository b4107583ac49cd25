"""Results of a trace: outputs of the graph, memory of its inputs, or objects."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from types import CellType, FunctionType
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.errors import unsupported, user_error
from fusec.ir import Value
from fusec.ir.sizes.symbolic_numbers import Symbolic
from fusec.state.variable import Variable

from ..facts.layout import Strides, contiguous, like_order
from ..facts.refusals import is_compiled
from ..guards.array_values import Handles
from ..guards.places import Places
from ..library.randomness import TracedGenerator
from ..operands.operands import as_traced
from ..operands.texts import check_text
from ..python.vectorized_calls import check_converted
from ..values.array import TracedArray
from ..values.selected_arrays import LibraryView
from ..values.storage import Storage, ViewStep
from ..values.trace import Trace
from .leftovers import keeps_values

_CHANGING = (set, deque, bytearray, dict, list)
_EMPTY = CellType()
_WHOLE = (ViewStep("Itself", (), ()),)  # ``x[:]`` is not ``x``
_THEMSELVES = (str, bytes, int, float, Variable)  # made in the trace, and not to be copied


@dataclass(frozen=True)
class ResultLeaf:
    """One result leaf.

    ``kind``: ``graph`` (an output of the graph), ``input`` (memory of a graph input), ``const`` (a
    Python object) or ``fresh`` (one to copy for each call); ``steps``: views to take of it, whose
    run-time ``indices`` are numbers of graph outputs.
    """

    kind: str
    index: int = 0
    steps: tuple[ViewStep, ...] = ()
    value: Any = None
    indices: tuple[int, ...] = ()

    def views(self) -> tuple[Any, ...]:
        """The views, to be taken of a concrete array."""
        numbers = iter(self.indices)
        return tuple(step.on_array(numbers) for step in self.steps)


def outputs_of(
    trace: Trace, leaves: list[Any]
) -> tuple[list[ResultLeaf], list[Value], list[tuple[int, ...]]]:
    outputs: list[ResultLeaf] = []
    values: list[Value] = []
    strides: list[tuple[int, ...]] = []
    numbers: dict[int, tuple[int, TracedArray]] = {}
    check_converted(trace)
    for leaf in leaves:
        outputs.append(_output(trace, leaf, values, strides, numbers))
    returned = [x.storage for x in leaves if type(x) is TracedArray and x.storage is not None]
    for storage in returned:
        if isinstance(storage, LibraryView):
            storage.check_returned(returned)
    return outputs, values, strides


def _check_returned(trace: Trace, leaf: Any) -> None:
    """Refuse to return an object that holds values of the graph: every call returns the same one.

    An object from outside may: the program's assignments to it are repeated after each call.
    """
    reached = trace.world.reachable.reached
    if isinstance(leaf, Iterator) and (trace.builder.is_symbolic or id(leaf) not in reached):
        raise unsupported("an iterator as a result, which is gone over once,",
                          loc=trace.entry_loc, cure="return a list")
    if isinstance(leaf, FunctionType) and any(
            isinstance(held, _CHANGING) and id(held) not in reached for held in _kept_by(leaf)):
        raise unsupported(f"returning {leaf.__name__}(), which keeps a list of the call,",
                          loc=trace.entry_loc, cure="return what it keeps, and make it outside")
    is_assigned = bool(trace.part(Places).attributes_of(leaf))
    if (is_assigned and id(leaf) in trace.local.objects) or keeps_values(trace, leaf):
        raise unsupported(
            f"returning a {type(leaf).__name__} that holds values of the graph",
            loc=trace.entry_loc,
            cure="return the arrays and numbers in tuples, lists and dicts, or register the class "
            "with optree.register_pytree_node")


def _check_objects(trace: Trace, array: np.ndarray) -> None:
    """The same of an array of objects, which plain NumPy made."""
    if array.dtype.hasobject and keeps_values(trace, array):
        raise unsupported("returning an array of objects that hold values of the graph",
                          loc=trace.entry_loc, cure="return them in a list (x.tolist())")


def _kept_by(function: FunctionType) -> list[Any]:
    """The values of its closure variables."""
    return [c.cell_contents for c in function.__closure__ or () if c != _EMPTY]


def _output(
    trace: Trace, leaf: Any, values: list[Value], strides: list[tuple[int, ...]],
    numbers: dict[int, tuple[int, TracedArray]],
) -> ResultLeaf:
    if type(leaf) is np.ndarray and (trace.local.memory.is_traced(leaf) or (
            is_compiled(leaf.dtype) and trace.world.reachable.place_of(leaf) is not None)):
        leaf = as_traced(trace, leaf)
    if type(leaf) is not TracedArray:
        if type(leaf) is Symbolic:
            return ResultLeaf("const", value=leaf)
        if type(leaf) is np.ndarray and id(leaf) in trace.local.arrays:
            _check_objects(trace, leaf)
            return ResultLeaf("fresh", value=leaf)
        if type(leaf) is TracedGenerator:
            raise user_error(
                TypeError, "the function returns a random generator that it was given or made",
                trace.loc,
                "leave it out of the result: one that is passed in is drawn from there, too")
        _check_returned(trace, leaf)
        check_text(trace, leaf)
        changes = isinstance(leaf, _CHANGING) or (
            id(leaf) in trace.local.objects and not isinstance(leaf, _THEMSELVES))
        return ResultLeaf("fresh" if changes else "const", value=leaf)
    if leaf.trace is not trace:
        raise user_error(TypeError, "the function returns a value of another trace", trace.loc,
                         "do not keep traced values outside the function")
    storage = leaf.storage
    indices = [v for step in leaf.steps for v in step.operands]
    indices_at = tuple(range(len(values), len(values) + len(indices)))
    values.extend(indices)
    strides.extend([()] * len(indices))
    if storage is not None and storage.origin is not None:
        steps = leaf.steps or (() if trace.part(Handles).is_one(leaf) else _WHOLE)
        return ResultLeaf("input", storage.origin, steps, None, indices_at)
    if storage is None:
        values.append(leaf.value)
        strides.append(())
        return ResultLeaf("graph", len(values) - 1)
    if id(storage) not in numbers:
        numbers[id(storage)] = len(values), leaf
        values.append(storage.read(trace.builder, ()))
        strides.append(_fresh_strides(storage))
    number, first = numbers[id(storage)]
    steps = leaf.steps or (_WHOLE if not first.steps and first is not leaf else ())
    return ResultLeaf("graph", number, steps, None, indices_at)


def _fresh_strides(storage: Storage) -> Strides:
    """Strides of a result in fresh memory, whose axes are ordered as in the trace."""
    shape, itemsize = storage.value.shape, storage.value.dtype.itemsize
    return contiguous(shape, itemsize, like_order(storage.strides))
