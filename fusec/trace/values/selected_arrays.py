"""Arrays that are one of several, as the run decides: ``w = a if test else b``.

Reading `Selected` memory reads the one that was chosen; writing writes to it, which in the graph is
a write to both under the test and its opposite.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusec.errors import UnsupportedError, unsupported
from fusec.ir import Value
from fusec.ir.sizes.symbolic_numbers import expressions
from fusec.ops import Builder

from ..facts.layout import Strides, contiguous, like_order
from .array import TracedArray
from .storage import Storage, ViewStep
from .trace import Trace

MOST_CHOICES = 6  # every write asks them all again; what is one of more arrays is only read


class Selected(Storage):
    """The memory of ``then`` where the test holds, else that of ``orelse``.

    ``merges`` remembers the whole while the plain arrays behind it hold certain values.
    """

    writes_elsewhere = True

    def __init__(
        self, trace: Trace, test: Value, then: TracedArray, orelse: TracedArray,
        value: Value | None = None,
    ) -> None:
        self.trace, self.test, self.sides = trace, test, (then, orelse)
        self.depth = 1 + max(depth(then), depth(orelse))
        # What was chosen of what was chosen has many paths to few arrays.
        by_side = [roots(side.storage) for side in self.sides if side.storage is not None]
        self.roots = tuple(dict.fromkeys(root for side in by_side for root in side))
        self.merges: dict[tuple[Value, ...], Value] = {}
        if value is None:
            value = self.value
        self.merges[self._key()] = value
        same = then.strides == orelse.strides
        super().__init__(value, then.strides if same else contiguous(
            value.shape, value.dtype.itemsize))
        self.writeable = all(side.is_writeable for side in self.sides)
        self.has_layouts: bool = not same or any(
            isinstance(side.storage, Selected) and side.storage.has_layouts for side in self.sides)

    def _key(self) -> tuple[Value, ...]:
        return tuple(root.value for root in self.roots)

    @property
    def value(self) -> Value:
        key = self._key()
        if key not in self.merges:
            then, orelse = (side.value for side in self.sides)
            self.merges[key] = self.trace.emit("Where", self.test, then, orelse, kind="array")
        return self.merges[key]

    @value.setter
    def value(self, value: Value) -> None:
        """Its value follows from its sides."""

    def read(self, builder: Builder, steps: tuple[ViewStep, ...]) -> Value:
        value = self.value
        for step in steps:
            value = step.apply(builder, value)
        return value

    def replace(self, value: Value, version: int) -> None:
        """Hold another value, by writing to both sides."""
        then, orelse = self.sides
        then.write(self.trace.emit("Where", self.test, value, then.value, kind="array"))
        orelse.write(self.trace.emit("Where", self.test, orelse.value, value, kind="array"))
        self.merges[self._key()] = value
        self.version = version


def selected(
    trace: Trace, test: Value, then: TracedArray, orelse: TracedArray, value: Value | None = None
) -> TracedArray:
    """One of two arrays, each of which may be one of several itself.

    Many branches choose between few arrays (a function with early returns of one of its two
    arguments): each array is asked for once.
    """
    choice = Selected(trace, test, then, orelse, value)
    arrays = _apart(choice)
    if len(arrays) > choice.depth:  # not more choices than it takes
        return TracedArray(trace, choice)
    *others, rest = arrays
    for array in reversed(others):
        is_this = _is(choice, array, {})
        assert isinstance(is_this, Value)
        whole = choice.value if array is others[0] else None
        rest = TracedArray(trace, Selected(trace, is_this, array, rest, whole))
    return rest


def _apart(x: Selected) -> list[TracedArray]:
    """The different arrays that it may be, of which none is one of several as a whole."""
    arrays: dict[tuple[Storage | None, tuple[ViewStep, ...]], TracedArray] = {}
    seen = {x}
    waiting = [*x.sides]
    while waiting:
        side = waiting.pop()
        if not isinstance(side.storage, Selected) or side.steps:
            arrays.setdefault((side.storage, side.steps), side)
        elif side.storage not in seen:
            seen.add(side.storage)
            waiting += side.storage.sides
    return list(arrays.values())


def _is(x: Selected, array: TracedArray, memo: dict[Selected, Value | bool]) -> Value | bool:
    """Whether it is a certain one of its arrays."""
    if x not in memo:
        memo[x] = _where(x.trace, x.test, *(_side_is(side, array, memo) for side in x.sides))
    return memo[x]


def _side_is(
    side: TracedArray, array: TracedArray, memo: dict[Selected, Value | bool]
) -> Value | bool:
    if isinstance(side.storage, Selected) and not side.steps:
        return _is(side.storage, array, memo)
    return side.storage is array.storage and side.steps == array.steps


def _where(trace: Trace, test: Value, then: Value | bool, orelse: Value | bool) -> Value | bool:
    """``then if test else orelse`` of truth values."""
    if then is orelse:
        return then
    if isinstance(then, bool):  # what holds with the test, and what holds without it
        if isinstance(orelse, bool):
            return test if then else trace.emit("LogicalNot", test)
        return (trace.emit("LogicalOr", test, orelse) if then
                else trace.emit("LogicalAnd", trace.emit("LogicalNot", test), orelse))
    if isinstance(orelse, bool):
        return (trace.emit("LogicalOr", trace.emit("LogicalNot", test), then) if orelse
                else trace.emit("LogicalAnd", test, then))
    return trace.emit("LogicalOr", trace.emit("LogicalAnd", test, then),
                      trace.emit("LogicalAnd", trace.emit("LogicalNot", test), orelse))


class Copied(Storage):
    """A copy for a variable that a loop may have bound to one of other arrays.

    It may be read while these have the same contents, and not be written.  Where every iteration
    binds the variable to a new array only a loop without iterations leaves another one:
    ``entered`` says that there was one, and is checked when the code runs.
    """

    def __init__(
        self, trace: Trace, value: Value, others: Sequence[Storage],
        strides: Strides | None = None, entered: Value | None = None,
    ) -> None:
        super().__init__(value, strides)
        self.trace, self.entered = trace, entered
        # Loops in a row name the same few arrays again and again, twice as many in each.
        self.others = [(other, other.value) for other in dict.fromkeys(others)]

    def may_be_of(self, memory: Sequence[Storage]) -> bool:
        """Whether it may be an array of this memory."""
        return any(other in memory for other, _ in self.others)

    def check_apart(self, what: str = "written") -> None:
        if self.entered is None:
            doing = "writing to" if what == "written" else "comparing by identity"
            raise unsupported(
                f"{doing} an array that is an argument or another array, as a branch or loop "
                "decides", loc=self.trace.loc,
                cure="copy the argument before the branch or loop: x = x.copy()")
        self.trace.check(self.entered, UnsupportedError(
            "the loop ran no iteration, so a variable that it binds is still an array that is an "
            f"argument or known by another name, and one of them is {what}: copy the array before "
            "the loop, x = x.copy()"))

    def read(self, builder: Builder, steps: tuple[ViewStep, ...]) -> Value:
        if any(other.value is not value for other, value in self.others):
            if self.entered is None:
                raise unsupported(
                    "reading an array that a branch or loop may have bound to another one, which "
                    "was written since", loc=self.trace.loc,
                    cure="copy the array in the branch or loop: x = y.copy()")
            self.check_apart()
        return super().read(builder, steps)


def with_one_layout(x: TracedArray) -> TracedArray:
    """For a view or a copy by how an array lies in memory: one that may be either, by which
    array was chosen, is read, not written."""
    if not isinstance(x.storage, Selected) or not x.storage.has_layouts:
        return x
    return TracedArray(x.trace, Copied(x.trace, x.value, x.storage.roots))


class LibraryView(Copied):
    """A copy by a library call where NumPy gives a view of an array: read, not written.

    ``sample`` is NumPy's own answer to arrays that stand in for the operands.
    """

    def __init__(
        self, trace: Trace, value: Value, others: Sequence[Storage], strides: Strides,
        name: str, sample: np.ndarray,
    ) -> None:
        super().__init__(trace, value, others, strides)
        self.name, self.sample = name, sample

    def may_be_of(self, memory: Sequence[Storage]) -> bool:
        """It is a view, always another array."""
        return False

    def check_apart(self, what: str = "written") -> None:
        raise self._refused("writing to a view that {} gives")

    def read(self, builder: Builder, steps: tuple[ViewStep, ...]) -> Value:
        if any(other.value is not value for other, value in self.others):
            raise self._refused("reading a view that {} gave once its array was written")
        return super().read(builder, steps)

    def check_returned(self, others: Sequence[Storage]) -> None:
        """Refuse to be a result with gaps, or beside another that NumPy lets share memory with it.
        """
        sample = self.sample
        dense = contiguous(sample.shape, sample.itemsize, like_order(sample.strides))
        if sample.size and any(n > 1 and a != b for n, a, b in zip(
                sample.shape, sample.strides, dense, strict=True)):
            raise self._refused("returning a view with gaps that {} gives")
        if any(other.origin is not None or other in others for other, _ in self.others) or any(
                isinstance(o, LibraryView) and o is not self and _is_shared(self, o)
                for o in others):
            raise self._refused("returning a view that {} gives and what it is a view of")

    def _refused(self, what: str) -> Exception:
        return unsupported(what.format(self.name), loc=self.trace.loc,
                           cure="copy the view, or use slices, reshape or np.transpose with sizes "
                                "known while tracing")


def _is_shared(a: LibraryView, b: LibraryView) -> bool:
    return np.may_share_memory(a.sample, b.sample)


def roots(storage: Storage) -> list[Storage]:
    """The plain storages whose memory it may be."""
    if isinstance(storage, Selected):
        return list(storage.roots)
    if isinstance(storage, Copied):
        return [storage, *(other for other, _ in storage.others)]
    return [storage]


def sides_of(x: TracedArray) -> list[TracedArray]:
    """The same views of the two arrays of which one was chosen."""
    assert isinstance(x.storage, Selected)
    return [TracedArray(x.trace, side.storage, (*side.steps, *x.steps)) if x.steps else side
            for side in x.storage.sides]


def has_views_of_some(x: TracedArray) -> bool:
    """Whether it may be a view of one of its arrays and would be a copy of another one."""
    assert isinstance(x.storage, Selected)
    layouts = {expressions(side.strides) for side in x.storage.sides}
    return len(layouts) > 1 and any(step.op in ("Reshape", "Reinterpret") for step in x.steps)


def depth(x: TracedArray) -> int:
    """How many choices an array is one of, in a row."""
    return x.storage.depth if isinstance(x.storage, Selected) else 0
