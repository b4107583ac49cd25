"""Where the infinities and NaN of a graph come from: the evaluator, which keeps an origin for each.

A node *makes* an infinity or NaN where the flag of IEEE 754 (2019, section 7) for it would be
raised: a NaN of operands that are none (*invalid*), or an infinity of finite operands (*division by
zero*, *overflow*).  Others are passed on, with the origin of the element that they come from, or
were given: arguments, constants, draws, memory that nobody wrote.

Elements are followed through elementwise nodes, reductions along axes, scans, and nodes that only
move elements.  Of others (products of matrices, functions of libraries) each result may come from
each operand's elements.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from fusec.core.records import dataclass
from fusec.errors import InternalError
from fusec.ir.graph import Graph, Node, Value
from fusec.ir.sizes.bindings import Bindings
from fusec.ops import registry

from .evaluate import apply, as_type, function_of

MOST_KEPT = 1 << 28  # bytes of operands that are kept to be shown
_NO = np.int64(np.iinfo(np.int64).max)  # above each number of an element that was made
_MOVED = ("view", "gather", "piecewise")  # kinds of rows that compute no element
_NAMES: dict[np.ufunc, str] = {np.logical_or: "LogicalOr", np.minimum: "Minimum"}
_UNWRITTEN = ("Reserve",)  # holds elements that nobody wrote


class Tracked(NamedTuple):
    """A value, and for each element that was made, or comes from one, that one's number; 0 for
    others.  None: no element was."""

    value: Any
    numbers: np.ndarray | None = None


@dataclass(frozen=True)
class Origin:
    """The node that made an infinity or NaN, and the first index at which it reaches a result.

    ``operands`` are pairs of the node's operand and its value: at that index where the node is
    elementwise, else the whole.  ``count``: of the elements that the node made then.
    ``iterations``: the loops around it, outermost first, and the iteration of each, from 0.
    """

    node: Node
    index: tuple[int, ...]
    shape: tuple[int, ...]
    value: Any
    operands: tuple[tuple[Value, Any], ...]
    count: int
    iterations: tuple[tuple[Node, int], ...]


class _Made(NamedTuple):
    """A run of a node that made some."""

    node: Node
    value: Any
    number: int
    operands: tuple[Any, ...] | None  # None: too many bytes were kept before
    iterations: tuple[tuple[Node, int], ...]


class OriginSearch:
    """Evaluates graphs and numbers the elements that nodes make, in the order of the run."""

    def __init__(self) -> None:
        self._made: list[_Made] = []
        self._firsts: list[int] = []  # the number of the first element of each
        self._next = 1
        self._kept = 0
        self._iterations: list[tuple[Node, int]] = []
        self._functions: list[tuple[str, Any]] = []  # that run, by name, the innermost last

    def outputs(
        self, graph: Graph, arguments: Sequence[Any], sizes: Bindings
    ) -> tuple[list[Tracked], list[tuple[int, Tracked]]]:
        """Outputs and (parameter, new content) for every update, as `evaluate_all` gives them."""
        return self._run(graph, [Tracked(a) for a in arguments], dict(sizes))

    def first(self, values: Sequence[Tracked]) -> Origin | None:
        """The origin that was made first, of those of these values."""
        least = [int(made.min()) for _, numbers in values if numbers is not None
                 and (made := numbers[numbers > 0]).size]
        return self._origin(min(least)) if least else None

    def _origin(self, number: int) -> Origin:
        at = bisect.bisect(self._firsts, number) - 1
        made, flat = self._made[at], number - self._firsts[at]
        shape = np.shape(made.value)
        index = tuple(int(i) for i in np.unravel_index(flat, shape))
        given = () if made.operands is None else tuple(
            zip(made.node.inputs, made.operands, strict=True))
        if registry.get(made.node.op).kind == "elementwise":
            given = tuple((v, np.broadcast_to(x, shape)[index]) for v, x in given)
        return Origin(made.node, index, shape, np.asarray(made.value)[index], given, made.number,
                      made.iterations)

    # -- graphs

    def _run(
        self, graph: Graph, arguments: Sequence[Tracked], sizes: dict[str, int]
    ) -> tuple[list[Tracked], list[tuple[int, Tracked]]]:
        table = {v: Tracked(as_type(a.value, v.type, v.node, sizes), a.numbers)
                 for v, a in zip(graph.inputs, arguments, strict=True)}
        for node in graph.nodes:
            if node.op != "Input":
                results = self._node(node, [table[v] for v in node.inputs], sizes)
                table.update(zip(node.outputs, results, strict=True))
        return [table[v] for v in graph.outputs], [(i, table[v]) for i, v in graph.updates]

    def _node(
        self, node: Node, operands: list[Tracked], sizes: dict[str, int]
    ) -> Sequence[Tracked]:
        run = _CONTROL.get(node.op)
        if run is not None:
            return run(self, node, operands, sizes)
        values = apply(node, [x.value for x in operands], sizes)
        return [Tracked(value, self._numbers(node, value, operands, sizes)) for value in values]

    def _fused(self, node: Node, operands: list[Tracked], sizes: Any) -> Sequence[Tracked]:
        return self._run(node.attrs["body"], operands, sizes)[0]

    def _given(self, node: Node, operands: list[Tracked], sizes: Any) -> Sequence[Tracked]:
        return operands[: node.attrs["values"]]

    def _cond(self, node: Node, operands: list[Tracked], sizes: Any) -> Sequence[Tracked]:
        side = node.attrs["then" if bool(operands[0].value) else "orelse"]
        outputs, updates = self._run(side, operands[1:], dict(sizes))
        new = dict(updates)
        return [*outputs, *(new.get(i, operands[1 + i]) for i in range(node.attrs["changed"]))]

    def _loop(self, node: Node, operands: list[Tracked], sizes: Any) -> Sequence[Tracked]:
        test, body, carried = (node.attrs[name] for name in ("test", "body", "carried"))
        now, others = operands[:carried], operands[carried:]
        self._iterations.append((node, 0))
        try:
            while bool(self._run(test, [*now, *others], dict(sizes))[0][0].value):
                outputs, updates = self._run(body, [*now, *others], dict(sizes))
                changed, scalars = dict(updates), iter(outputs)
                now = [changed.get(i, now[i]) if v.type.kind == "array" else next(scalars)
                       for i, v in enumerate(body.inputs[:carried])]
                self._iterations[-1] = node, self._iterations[-1][1] + 1
        finally:
            self._iterations.pop()
        return now

    def _call(self, node: Node, operands: list[Tracked], sizes: Any) -> Sequence[Tracked]:
        own, body = node.attrs["own"], node.attrs["body"]

        def run(arguments: Sequence[Tracked]) -> Sequence[Tracked]:
            return self._run(body, [*arguments, *operands[own:]], dict(sizes))[0]

        with self._running(node.attrs["function"], run):
            return run(operands[:own])

    @contextmanager
    def _running(self, name: str, function: Any) -> Iterator[None]:
        self._functions.append((name, function))
        try:
            yield
        finally:
            self._functions.pop()

    def _recursion(self, node: Node, operands: list[Tracked], sizes: Any) -> Sequence[Tracked]:
        wanted = node.attrs["function"]
        for name, function in reversed(self._functions):
            if name == wanted:
                results: Sequence[Tracked] = function(operands)
                return results
        raise InternalError(f"a graph runs {wanted!r} again, which does not run")

    # -- elements

    def _numbers(
        self, node: Node, value: Any, operands: Sequence[Tracked], sizes: dict[str, int]
    ) -> np.ndarray | None:
        """The numbers of a result's elements."""
        if not is_float(value):
            return None
        bad = ~np.isfinite(value)
        if not bad.any():
            return None
        if _moves(node):
            return _moved(node, np.asarray(bad), operands, sizes)
        if _is_given(node):
            return None
        found = _Sources.of(node, operands, np.shape(value))
        new = bad & (found.numbers == _NO) & (
            ~found.bad | (np.isnan(value) & ~found.nan))
        numbers = np.where(bad & (found.numbers != _NO), found.numbers, 0)
        if new.any():
            own = self._next + np.arange(new.size, dtype=np.int64).reshape(new.shape)
            numbers = np.where(new, own, numbers)
            self._note(node, value, int(new.sum()), operands)
        return numbers if numbers.any() else None

    def _note(self, node: Node, value: Any, count: int, operands: Sequence[Tracked]) -> None:
        size = sum(np.asarray(x.value).nbytes for x in operands)
        fits = self._kept + size <= MOST_KEPT
        self._kept += size if fits else 0
        self._firsts.append(self._next)
        self._made.append(_Made(node, value, count, tuple(x.value for x in operands)
                                if fits else None, tuple(self._iterations)))
        self._next += np.size(value)


_CONTROL: dict[str, Any] = {
    "Fused": OriginSearch._fused, "GivenDerivative": OriginSearch._given,
    "Cond": OriginSearch._cond, "Loop": OriginSearch._loop, "Call": OriginSearch._call,
    "Recursion": OriginSearch._recursion, "CheckedRecursion": OriginSearch._recursion,
}


def is_float(value: Any) -> bool:
    """Whether it is a float, a complex number, or an array of them."""
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return kind in ("f", "c") if kind else isinstance(value, (float, complex))


def _is_given(node: Node) -> bool:
    """Whether its infinities and NaN are the program's own: draws, constants, attributes."""
    return (registry.get(node.op).kind == "source" or node.op in ("HostCall", *_UNWRITTEN)
            or any(is_float(x) and not np.isfinite(x).all() for x in node.attrs.values()))


def _moves(node: Node) -> bool:
    """Whether each element of its results is one of an operand, unchanged."""
    row = registry.get(node.op)
    is_moving = node.op == "Where" or row.kind in _MOVED or bool(row.picks)
    return is_moving and not _joins(node)


def _joins(node: Node) -> bool:
    """Whether it computes with the elements that it puts at indices (``np.add.at``)."""
    return node.op == "Scatter" and bool(node.attrs.get("combine"))


def _moved(
    node: Node, bad: np.ndarray, operands: Sequence[Tracked], sizes: dict[str, int]
) -> np.ndarray | None:
    """The operands' numbers, moved by the node's own reference as elements are."""
    if all(x.numbers is None for x in operands):
        return None
    stand_ins = [_numbers_of(x) if is_float(x.value) else x.value for x in operands]
    moved = np.where(bad, function_of(node, sizes)(*stand_ins), 0)
    return moved if moved.any() else None


def _numbers_of(x: Tracked) -> np.ndarray:
    return np.zeros(np.shape(x.value), np.int64) if x.numbers is None else x.numbers


class _Sources(NamedTuple):
    """Of the operands' elements that a result's element is computed from: whether one is no finite
    number, whether one is NaN, the least number of those that were made."""

    bad: np.ndarray
    nan: np.ndarray
    numbers: np.ndarray

    @classmethod
    def of(cls, node: Node, operands: Sequence[Tracked], shape: tuple[int, ...]) -> _Sources:
        found = cls(np.zeros(shape, bool), np.zeros(shape, bool), np.full(shape, _NO))
        for position, x in enumerate(operands):
            if not is_float(x.value) or np.isfinite(x.value).all():
                continue
            numbers = _numbers_of(x)
            parts = (~np.isfinite(x.value), np.isnan(x.value), np.where(numbers > 0, numbers, _NO))
            places = [i.value for i in operands[2:]] if _joins(node) and position == 1 else []
            bad, nan, least = (_spread(node, part, join, shape, places) for part, join in zip(
                parts, (np.logical_or, np.logical_or, np.minimum), strict=True))
            found = cls(np.asarray(found.bad | bad), np.asarray(found.nan | nan),
                        np.asarray(np.minimum(found.numbers, least)))
        return found


def _scattered(
    node: Node, part: np.ndarray, join: np.ufunc, shape: tuple[int, ...], places: Sequence[Any]
) -> np.ndarray:
    nothing = np.full(shape, False if part.dtype == bool else _NO)
    joined: np.ndarray = registry.get(node.op).reference(
        nothing, part, *places, axes=node.attrs["axes"], at=node.attrs["at"], combine=_NAMES[join])
    return joined


def _spread(
    node: Node, part: np.ndarray, join: np.ufunc, shape: tuple[int, ...], places: Sequence[Any]
) -> np.ndarray:
    """For each element of the result, what its elements of an operand have, joined; ``places``:
    the indices where these are put."""
    if places:
        return _scattered(node, part, join, shape, places)
    row = registry.get(node.op)
    axes = node.attrs.get("axes")
    if _joins(node) or row.kind == "elementwise" or (row.kind == "composite" and axes is None):
        return np.broadcast_to(part, shape)
    if row.kind == "scan" and axes is not None and len(axes) == 1 and part.shape == shape:
        joined: np.ndarray = join.accumulate(part, axis=axes[0])
        return joined
    if row.kind in ("reduce", "fold", "composite") and axes is not None and part.ndim:
        joined = join.reduce(part, axis=tuple(axes))
        if joined.size == math.prod(shape):
            return np.reshape(joined, shape)
    every = part.any() if join is np.logical_or else part.min(initial=_NO)
    return np.broadcast_to(every, shape)
