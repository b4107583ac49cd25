"""The variables of a differentiation: arrays, numbers and Variables, as values of their own.

The derivative is by an argument's value at entry.  In a graph one value may be many things (an
array that is passed twice, or that the function also reads from outside), so that each variable of
the differentiation is a node of its own, and an array among the arguments a piece of memory of its
own: writes to it reach the argument when the function returns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field
from fusec.errors import unsupported, user_error
from fusec.ir import Loc, Value
from fusec.ops.derivatives import DIFFERENTIABLE, Term, full
from fusec.state.variable import Variable
from fusec.trace.facts.layout import contiguous, order_like
from fusec.trace.objects.variables import storage_of
from fusec.trace.operands.operands import as_traced
from fusec.trace.values.array import TracedArray, from_value
from fusec.trace.values.selected_arrays import roots
from fusec.trace.values.storage import Storage
from fusec.trace.values.trace import Trace, assign

_NUMBERS = (float, complex, np.inexact, np.ndarray)


@dataclass
class Independent:
    """One variable of a differentiation: ``value`` at entry, ``given``, the program's argument
    (a Variable is itself), ``inside``, the argument that the function gets for it."""

    trace: Trace
    path: str
    value: Value
    given: Any
    inside: Any
    versions: list[tuple[Storage, int]] = field(default_factory=list)
    read: dict[Storage, Loc | None] = field(default_factory=dict)  # by another name, and where
    watched: list[Storage] = field(default_factory=list)

    @property
    def like(self) -> TracedArray:
        """An array or number of its type."""
        inside = self.inside
        return from_value(self.trace, self.value) if isinstance(inside, Variable) else inside

    def derivative(self, ct: Term | None) -> TracedArray:
        """A gradient with this shape, dtype and kind; None is zero."""
        builder, type_ = self.trace.builder, self.value.type
        if ct is None:
            ct = full(builder, type_.dtype.type(0), self.value)
        value = ct.value
        if type_.kind == "array" and value.type.kind != "array":
            value = builder.emit("BroadcastTo", value, shape=())
        elif type_.kind != value.type.kind:
            value = builder.emit("Cast", value, dtype=type_.dtype, kind=type_.kind)
        return from_value(self.trace, value)

    def returned(self) -> None:
        """The function has returned: writes to its array reach the argument now."""
        if any(storage.version != version for storage, version in self.versions):
            raise unsupported(
                f"writing to {self.path} by another name while it is differentiated by it",
                loc=self.trace.loc, cure="pass a copy, or write through the argument alone")
        if isinstance(self.inside, TracedArray) and self.inside.storage is not None and (
                self.inside.storage.version):
            for loc in self.read.values():
                raise unsupported(
                    f"reading {self.path} by another name, where the function writes to it and is "
                    "differentiated by it,", loc=loc, cure="pass a copy for one of the two names")
            self.given.write(self.inside.storage.value)

    def watch(self) -> None:
        """Note from now on reads by another name."""
        self.watched = [root for root, _ in self.versions if type(root) is Storage]
        for root in self.watched:
            root.replace(root.value, root.version)  # forgets its views, which were read before
            root.__class__ = _watching(self.trace, self.read)

    def unwatch(self) -> None:
        for root in self.watched:
            root.__class__ = Storage


def independent(trace: Trace, leaf: Any, path: str, name: str) -> Independent:
    """The variable that an argument's leaf is; ``name``: the transformation, for messages.

    Raises ``TypeError`` for integers, booleans and texts, which have no derivative.
    """
    if isinstance(leaf, Variable):
        return _of_variable(trace, leaf, name)
    is_number = type(leaf) is TracedArray or (
        isinstance(leaf, _NUMBERS) and not isinstance(leaf, bool))
    given = as_traced(trace, leaf) if is_number else None
    if given is None or given.dtype.kind not in DIFFERENTIABLE:
        raise no_derivative(trace, leaf, path, name)
    if not given.is_array:
        value = trace.emit("Pos", given.value)
        return Independent(trace, path, value, given, from_value(trace, value))
    return _of_array(trace, given, path)


def _of_array(trace: Trace, given: TracedArray, path: str) -> Independent:
    value = trace.emit("BroadcastTo", given.value, shape=given.shape)
    order = order_like(given.shape, given.strides, given.itemsize, "K")
    storage = Storage(value, contiguous(given.shape, given.itemsize, order),
                      writeable=given.is_writeable)
    assert given.storage is not None
    storage.written_to = given.storage  # a loop may not put it behind another name as a local array
    versions = [(root, root.version) for root in roots(given.storage)]
    return Independent(trace, path, value, given, TracedArray(trace, storage), versions)


def _watching(trace: Trace, read: dict[Storage, Loc | None]) -> type[Storage]:
    """Storages that note where their value is read."""
    value: Any = Storage.__dict__["value"]

    def noted(storage: Storage) -> Value:
        read.setdefault(storage, trace.loc)
        found: Value = value.__get__(storage)
        return found

    return type("Watched", (Storage,), {"__slots__": (), "value": property(noted, value.__set__)})


def _of_variable(trace: Trace, variable: Variable, name: str) -> Independent:
    if variable.dtype.kind not in DIFFERENTIABLE:
        raise no_derivative(trace, variable, variable.title, name)
    storage = storage_of(trace, variable)
    value = trace.emit("BroadcastTo", storage.value, shape=storage.value.shape)
    if trace.in_region:
        assign(trace, storage, value)
    else:
        storage.replace(value, storage.version)  # the same contents: nothing is assigned
    return Independent(trace, variable.title, value, variable, variable)


_OF_SPARSE = ("['indices']", "['row']")  # the first of its arrays that is no array of floats


def no_derivative(trace: Trace, leaf: Any, path: str, name: str) -> Exception:
    """The error for a leaf that is no float."""
    dtype = getattr(leaf, "dtype", None)
    what = type(leaf).__name__ if dtype is None else f"{dtype}{list(leaf.shape)}"
    cure = "pass a float (2.0, x.astype(float))"
    if dataclasses.is_dataclass(leaf):  # or what else holds arrays, and is no container here
        cure = 'name the arrays that it holds, as in wrt="params.weights", or pass a dict of them'
    elif path.endswith(_OF_SPARSE):  # or a dict's: both cures are given
        cure += '; of a sparse array, A, by its elements: wrt="A.data"'
    elif name not in ("jvp", "vjp"):
        cure += ", or choose the arguments with argnums"
    return user_error(TypeError, f"{name} by {path}, which is no float", trace.loc, cure,
                      values=[(path, what)])


def check_apart(variables: Sequence[Independent]) -> None:
    """Raise where one array is two variables and the function has written to it."""
    for number, x in enumerate(variables):
        for y in variables[:number]:
            own = {id(root) for root, _ in x.versions}
            if own.isdisjoint(id(root) for root, _ in y.versions):
                continue
            if any(v.inside.storage is not None and v.inside.storage.version for v in (x, y)):
                raise unsupported(
                    f"writing to {x.path}, which shares memory with {y.path}, where both are "
                    f"differentiated by,", loc=x.trace.loc, cure="pass a copy for one of them")
