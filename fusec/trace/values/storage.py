"""Storages and views: NumPy's memory semantics over functional values.

A `Storage` stands for one piece of memory and keeps the value it holds now.  An array is a storage
seen through view steps; writing through a view replaces the storage's value, so every other view
sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field
from fusec.ir import TensorType, Value
from fusec.ir.graph import new_id
from fusec.ir.regions import Region
from fusec.ir.sizes.bindings import Bindings, resolve
from fusec.ir.sizes.dims import is_static, symbols_of
from fusec.ir.sizes.symbolic_numbers import expressions
from fusec.ops import Builder
from fusec.ops.complex_parts import PARTS
from fusec.ops.rows.picking import PickView
from fusec.ops.rows.sizes import SpreadView
from fusec.ops.rows.views import region
from fusec.ops.rows.windows import WindowView

from ..facts.layout import Strides, contiguous


@dataclass(frozen=True, slots=True, eq=False)
class ViewStep:
    """One view op with its attrs, the strides of the result, and run-time indices if it has any.

    ``ReadOnly`` is no op of the graph: the same array, which may not be written to; nor is
    ``Windows``, whose elements are gathered, nor ``Itself``: another array that shows all of it.
    """

    op: str
    attrs: tuple[tuple[str, Any], ...]
    strides: Strides
    operands: tuple[Value, ...] = ()
    _key: tuple[Any, ...] = field(init=False, repr=False)  # nobody asks for the value of a size

    def __post_init__(self) -> None:
        key = self.op, expressions(self.attrs), expressions(self.strides), self.operands
        object.__setattr__(self, "_key", key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ViewStep) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def apply(self, builder: Builder, value: Value) -> Value:
        if self.op == "ReadOnly":
            return value
        if self.op == "Windows":
            return _windows(builder, value, **dict(self.attrs))
        return builder.emit(self.op, value, *self.operands, **dict(self.attrs))

    def undo(self, builder: Builder, base: Value, value: Value) -> Value:
        """``base`` with the part this step shows replaced by ``value``."""
        attrs = dict(self.attrs)
        if self.op == "Slice":
            if _covers(base.shape, attrs):
                return value
            return builder.emit("SliceUpdate", base, value, **attrs)
        if self.op == "Transpose":
            return builder.emit("Transpose", value, perm=tuple(np.argsort(attrs["perm"]).tolist()))
        if self.op == "ExpandDims":
            return builder.emit("Squeeze", value, axes=attrs["axes"])
        if self.op == "Squeeze":
            return builder.emit("ExpandDims", value, axes=attrs["axes"])
        if self.op == "Reshape":
            return builder.emit("Reshape", value, shape=base.shape)
        if self.op in PARTS:
            return builder.emit(f"With{self.op}", base, value)
        if self.op == "Reinterpret":
            return builder.emit("Reinterpret", value, dtype=base.dtype)
        if self.operands:  # the places that only the run knows
            return builder.emit(f"{self.op}Update", base, value, *self.operands, **attrs)
        raise AssertionError(f"internal error: view step {self.op} cannot be written through")

    def after(self, before: ViewStep) -> ViewStep | None:
        """One step for two; None where there is none."""
        if self.op != "Slice" or before.op != "Slice":
            return None
        first, then = Region.of(dict(before.attrs)), Region.of(dict(self.attrs))
        if not is_static(first.sizes) or not is_static(then.sizes) or 0 in then.sizes:
            return None
        attrs = tuple(first.part(then)._asdict().items())
        return ViewStep("Slice", attrs, self.strides)

    def on_array(self, numbers: Iterator[int]) -> Callable[..., np.ndarray]:
        """The same view of a concrete array, for the values of the sizes' symbols; ``numbers`` say
        which outputs hold its indices."""
        if self.op == "Pick":
            axes = dict(self.attrs)["axes"]
            return PickView(axes, tuple(next(numbers) for _ in self.operands))
        if self.op == "Fill":
            return SpreadView(tuple(next(numbers) for _ in self.operands))
        if self.op == "Window":
            attrs = dict(self.attrs)
            return WindowView(attrs["axes"], attrs["steps"],
                              tuple(next(numbers) for _ in self.operands))
        if symbols_of(tuple(value for _, value in self.attrs)):
            return lambda array, sizes: self.at_sizes(sizes)._on_array()(array)
        view = self._on_array()
        return lambda array, sizes: view(array)

    def at_sizes(self, sizes: Bindings) -> ViewStep:
        return ViewStep(self.op, resolve(self.attrs, sizes), self.strides)

    def _on_array(self) -> Callable[..., np.ndarray]:
        attrs = dict(self.attrs)
        if self.op == "ReadOnly":
            return _read_only
        if self.op == "Itself":
            return np.ndarray.view
        if self.op == "Windows":
            return lambda array: np.lib.stride_tricks.sliding_window_view(
                array, attrs["sizes"], attrs["axes"])
        if self.op == "Slice":
            key = region(attrs["starts"], attrs["steps"], attrs["sizes"])
            return lambda array: array[key]
        if self.op == "Transpose":
            return lambda array: array.transpose(attrs["perm"])
        if self.op == "BroadcastTo":
            return lambda array: np.broadcast_to(array, attrs["shape"])
        if self.op == "Diagonal":
            return lambda array: array.diagonal(attrs["offset"], *attrs["axes"])
        if self.op == "Reshape":
            return lambda array: array.reshape(attrs["shape"])
        if self.op == "Reinterpret":
            return lambda array: array.view(attrs["dtype"])
        if self.op in PARTS:
            return np.real if self.op == "Real" else np.imag
        if self.op == "ExpandDims":
            return lambda array: np.expand_dims(array, attrs["axes"])
        return lambda array: np.squeeze(array, attrs["axes"])


def _windows(
    builder: Builder, value: Value, axes: tuple[int, ...], sizes: tuple[int, ...]
) -> Value:
    """Windows along one axis after the other; their own axes become the last ones."""
    for axis, size in zip(axes, sizes, strict=True):
        count = value.shape[axis] - size + 1
        first, within = (builder.emit("Iota", size=n, dtype=np.dtype(np.int64))
                         for n in (count, size))
        index = builder.emit("Add", builder.emit("ExpandDims", first, axes=(1,)),
                             builder.emit("ExpandDims", within, axes=(0,)))
        value = builder.emit("Gather", value, index, axes=(axis,), at=axis)
        rank = value.type.rank
        order = [d for d in range(rank) if d != axis + 1] + [axis + 1]
        value = builder.emit("Transpose", value, perm=tuple(order))
    return value


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def with_step(
    steps: tuple[ViewStep, ...], step: ViewStep, shape: tuple[int, ...], strides: Strides
) -> tuple[ViewStep, ...]:
    """The steps and one more; two slices become one, and a slice of all of the memory none."""
    joined = step.after(steps[-1]) if steps else None
    if joined is None:
        return (*steps, step)
    if len(steps) == 1 and _covers(shape, dict(joined.attrs)) and joined.strides == strides:
        return ()
    return (*steps[:-1], joined)


def _covers(shape: tuple[int, ...], attrs: dict[str, Any]) -> bool:
    return attrs["sizes"] == shape and all(s == 1 for s in attrs["steps"])


class Storage:
    """Memory with a current value.

    ``origin`` is the position of the graph input it came with (``None``: made in the trace);
    ``writeable`` as NumPy's flag; ``version`` counts writes; ``born``: ids of nodes made later are
    larger; ``is_constant``: an array that plain NumPy made during the trace.
    """

    __slots__ = (
        "_views", "born", "is_asked", "is_constant", "origin", "shown_by", "stands_for", "strides",
        "value", "version", "writeable", "written_to",
    )

    writes_elsewhere = False  # whether writing to it is writing to other storages

    def __init__(
        self, value: Value, strides: Strides | None = None, *, origin: int | None = None,
        writeable: bool = True,
    ) -> None:
        self.value = value
        self.born = new_id()
        if strides is None:
            strides = contiguous(value.shape, value.dtype.itemsize)
        self.strides = strides
        self.origin = origin
        self.writeable = writeable
        self.is_asked = False  # whether it may be written
        self.version = 0
        self.is_constant = False
        self.stands_for: Storage | None = None  # in a loop's body: the array before the loop
        self.written_to: Storage | None = None  # memory that takes over what it holds in the end
        self.shown_by: list[Callable[[], Any]] = []  # weak references to the arrays made of it
        self._views: dict[tuple[ViewStep, ...], Value] = {}

    @property
    def type(self) -> TensorType:
        """The type of its value."""
        return self.value.type

    def tell_writeable(self) -> bool:
        """NumPy's flag, from which what the trace does may follow from now on."""
        self.is_asked = True
        if self.stands_for is not None:
            self.stands_for.tell_writeable()
        return self.writeable

    @property
    def is_shared(self) -> bool:
        """Whether more than one array shows it."""
        return sum(array() is not None for array in self.shown_by) > 1

    def check_apart(self) -> None:
        """Raise unless no other storage is, or may be, the same memory."""

    def read(self, builder: Builder, steps: tuple[ViewStep, ...]) -> Value:
        """The value seen through the steps now; equal reads between writes share nodes."""
        if not steps:
            return self.value
        view = self._views.get(steps)
        if view is None:
            base = self.read(builder, steps[:-1])
            view = self._views[steps] = steps[-1].apply(builder, base)
        return view

    def write(self, builder: Builder, steps: tuple[ViewStep, ...], value: Value) -> None:
        """Replace the part that the steps show by ``value``, which has that shape and the dtype."""
        for depth in range(len(steps), 0, -1):
            step = steps[depth - 1]
            base = self.read(builder, steps[: depth - 1])
            value = step.undo(builder, base, value)
        self.replace(value, self.version + 1)

    def replace(self, value: Value, version: int) -> None:
        """Hold another value."""
        self.value, self.version = value, version
        self._views.clear()
