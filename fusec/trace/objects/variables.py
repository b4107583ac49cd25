"""Variables in a trace: each is the storage of its buffer, an input that calls write back.

Data dependence is the order: a read gives the storage's value at that point of the program, and
an assignment replaces it, in branches and loops as any array.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np

from fusec.core.occupancy import Occupancy
from fusec.errors import unsupported
from fusec.ir import Loc
from fusec.ir.sizes.dims import symbols_of
from fusec.state import variable as variables
from fusec.state.variable import Variable, snapshots
from fusec.state.variable_values import first_buffer

from ..guards.guard import Guard
from ..guards.relations import Never
from ..operands.operands import PYTHON_KIND, as_traced, cast, spread, strong
from ..rewrite.transformer import Where
from ..values.array import TracedArray
from ..values.operations import OPERATIONS
from ..values.storage import Storage
from ..values.trace import Trace, assign, current
from .tracing_hooks import Args, Named, TracingHooks


class Created(NamedTuple):
    """A Variable that the program made in the trace; ``is_known``: with a value that tracing
    knew, so that the code has no first value to give it."""

    variable: Variable
    loc: Loc | None
    is_known: bool


class Met(NamedTuple):
    """A Variable by the input of the graph that it is; it is not kept alive."""

    input: int
    title: str
    occupancy: Occupancy
    reference: weakref.ref[Variable]


class TraceVariables:
    """Those that one trace met, by the ids of their buffers, and those that it made."""

    def __init__(self) -> None:
        self.met: dict[int, Variable] = {}
        self.created: list[Created] = []

    def close(self, trace: Trace) -> tuple[list[Met], list[Created]]:
        """At the end of the trace, which keeps no Variable: those that it met, and made."""
        met = [Met(origin_of(trace, key), v.title, v.occupancy, weakref.ref(v))
               for key, v in self.met.items()]
        created, self.created = self.created, []
        self.met.clear()
        return met, created

    def guards(self) -> list[Guard]:
        """A trace that makes Variables answers the call that it was made for and no other."""
        return [Guard(f"the creation of {new.variable.title}",
                      f"{new.variable.title} is created{f' at {new.loc}' if new.loc else ''}: "
                      "the next call is traced", lambda: None, Never()) for new in self.created]


def origin_of(trace: Trace, key: int) -> int:
    """The input of the graph that the buffer of this id is."""
    origin = trace.feeds.by_array[key].origin
    assert origin is not None
    return origin


class FrontEnd:
    """See `fusec.state.variable.InTraces`."""

    def current(self) -> Trace | None:
        trace = current()
        return trace if trace is not None and trace.active else None

    def read(self, trace: Trace, variable: Variable) -> TracedArray:
        storage = storage_of(trace, variable)
        return TracedArray(trace, Storage(storage.value, storage.strides))

    def write(self, trace: Trace, variable: Variable, value: Any, casting: Any) -> None:
        given = as_traced(trace, value)
        given_dtype: Any = given.dtype
        if given.type.is_weak:
            given_dtype = np.result_type(variable.dtype, PYTHON_KIND[given.dtype.kind](0))
        variable.check_dtype(given_dtype, trace.loc, casting)
        variable.check_shape(given.shape, trace.loc)
        new = spread(trace, cast(trace, given.value, variable.dtype), variable.shape)
        assign(trace, storage_of(trace, variable), new)

    def write_part(self, trace: Trace, variable: Variable, key: Any, value: Any) -> None:
        TracedArray(trace, storage_of(trace, variable))[key] = value

    def create(self, trace: Trace, variable: Variable, value: Any, dtype: Any) -> bool:
        if trace.in_region:
            raise unsupported(f"creating {variable.title} in a branch or loop that data decides",
                              loc=trace.loc, cure="create it before the branch, or outside")
        constant = _known(trace, value)
        if constant is None:
            self._begin(trace, variable, strong(trace, value), dtype)
        else:
            variable.buffer = first_buffer(snapshots(constant), dtype, variable.name)
        trace.part(TraceVariables).created.append(
            Created(variable, trace.loc, constant is not None))
        return constant is not None

    def _begin(self, trace: Trace, variable: Variable, value: TracedArray, dtype: Any) -> None:
        """The buffer gets its first value when the code runs."""
        if symbols_of(value.shape):
            raise unsupported(f"creating {variable.title} of a size that only the run knows",
                              loc=trace.loc, cure="create it with a size that is known")
        variable.buffer = first_buffer(
            np.zeros(value.shape, value.dtype), dtype, variable.name)
        self.write(trace, variable, value, "same_kind")


def _known(trace: Trace, value: Any) -> Any:
    """A first value that tracing knows; None for one that the code computes."""
    if isinstance(value, (list, tuple)):
        return value if all(_known(trace, x) is not None for x in value) else None
    if type(value) is np.ndarray:
        storage = trace.feeds.by_array.get(id(value))
        is_written = storage is not None and storage.version > 0
        return None if is_written or trace.local.memory.is_traced(value) else value
    if isinstance(value, (TracedArray, Variable)):
        traced = as_traced(trace, value)
        return OPERATIONS.value_of(trace, traced.value)
    return value


def storage_of(trace: Trace, variable: Variable) -> Storage:
    """The storage of its buffer."""
    buffer = variable.buffer
    if trace.part(TraceVariables).met.setdefault(id(buffer), variable) is variable:
        trace.feeds.titles.setdefault(id(buffer), variable.title)
    with trace.builder.on(variable.stated_device):
        return trace.capture(buffer)


def into(hooks: TracingHooks, where: Where, fn: Any, args: Args, kwargs: Named) -> Variable:
    """``np.add(v, 1, out=v)``, as NumPy casts in place."""
    target: Variable = kwargs["out"]
    value = hooks.call(where, fn, *args, **{k: v for k, v in kwargs.items() if k != "out"})
    target.take(value, "same_kind")
    return target


variables.answer_in_traces(FrontEnd())
