"""Variables in a trace: each is the storage of its buffer, an input that calls write back.

Data dependence is the order: what is read is the storage's value at that point of the program, and
an assignment replaces it, in branches and loops as any array.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from fusec import variable as variables
from fusec.variable import Variable

from ..operands.operands import PYTHON_KIND, as_traced, cast, spread
from ..rewrite.transformer import Where
from ..values.array import TracedArray
from ..values.storage import Storage
from ..values.trace import Trace, assign, current
from .tracing_hooks import Args, Named, TracingHooks


class Variables:
    """Those that one trace met, by the ids of their buffers."""

    def __init__(self) -> None:
        self.met: dict[int, Variable] = {}

    def references(self, trace: Trace) -> Iterator[tuple[int, weakref.ref[Variable]]]:
        """The input of the graph that each is, and the Variable, which is not kept alive."""
        for key, variable in self.met.items():
            origin = trace.feeds.by_array[key].origin
            assert origin is not None
            yield origin, weakref.ref(variable)


class FrontEnd:
    """See `fusec.variable.InTraces`."""

    def current(self) -> Trace | None:
        trace = current()
        return trace if trace is not None and trace.active else None

    def read(self, trace: Trace, variable: Variable) -> TracedArray:
        storage = storage_of(trace, variable)
        return TracedArray(trace, Storage(storage.value, storage.strides))

    def write(
        self, trace: Trace, variable: Variable, value: Any, casting: Any
    ) -> None:
        given = as_traced(trace, value)
        found: Any = given.dtype
        if given.type.is_weak:
            found = np.result_type(variable.dtype, PYTHON_KIND[given.dtype.kind](0))
        variable.check_dtype(found, trace.loc, casting)
        variable.check_shape(given.shape, trace.loc)
        new = spread(trace, cast(trace, given.value, variable.dtype), variable.shape)
        assign(trace, storage_of(trace, variable), new)

    def write_part(self, trace: Trace, variable: Variable, key: Any, value: Any) -> None:
        TracedArray(trace, storage_of(trace, variable))[key] = value

    def create(self, trace: Trace, variable: Variable, value: Any, dtype: Any) -> None:
        raise NotImplementedError


def storage_of(trace: Trace, variable: Variable) -> Storage:
    """The storage of its buffer."""
    buffer = variable.buffer
    if trace.part(Variables).met.setdefault(id(buffer), variable) is variable:
        trace.feeds.titles.setdefault(id(buffer), variable.title)
    return trace.capture(buffer)


def into(hooks: TracingHooks, where: Where, fn: Any, args: Args, kwargs: Named) -> Variable:
    """``np.add(v, 1, out=v)``, as NumPy casts in place."""
    target: Variable = kwargs["out"]
    value = hooks.call(where, fn, *args, **{k: v for k, v in kwargs.items() if k != "out"})
    target.take(value, "same_kind")
    return target


variables.answer_in_traces(FrontEnd())

__all__ = ["Variables", "storage_of"]
