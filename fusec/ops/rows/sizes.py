"""Sizes as values: a size that only the run knows, computed from arrays that have it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.ir import Graph, Node, TensorType, Value
from fusec.ir.sizes.dims import Dim, maximum, minimum, symbols_of

from ..admission.admission import known_size
from ..admission.row_admissions import FILL, SIZE_NUMBER
from ..build import Builder
from ..registry import Op, get, register

# What ops of integers do to sizes.
SIZE_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "FloorDiv": operator.floordiv,
    "Mod": operator.mod, "Neg": operator.neg, "Maximum": maximum, "Minimum": minimum,
    "Cast": lambda x: x, "Pos": lambda x: x,
}
_TYPE = TensorType(np.dtype(np.int64), (), "weak")


def defined_symbols(node: Node) -> frozenset[str]:
    """The symbols that a node's results define: those of no operand's size."""
    symbols = symbols_of(tuple(t.shape for t in node.types))
    return symbols - symbols_of(tuple(v.shape for v in node.inputs)) if symbols else symbols


def learnt_symbols(node: Node) -> frozenset[str]:
    """Those that the run learns by looking at the node's results: of arguments and slices, and of
    calls, branches and loops whose results have any size."""
    looks = node.op in ("Input", "Extent") or "results" in node.attrs or get(node.op).is_control
    return defined_symbols(node) if looks else frozenset()


def operand_symbols(node: Node) -> frozenset[str]:
    """Those of its operands' sizes, and of the sizes that it is given as numbers: a result's sizes
    among them are compared."""
    numbers = (known_size(v) for v in node.inputs)
    return symbols_of((tuple(v.shape for v in node.inputs),
                       tuple(n for n in numbers if isinstance(n, Dim))))


def needed_symbols(node: Node) -> frozenset[str]:
    """Those that it must be told to run: of sizes in its attributes, and in the graphs there."""
    own = symbols_of(tuple(v for k, v in node.attrs.items()
                           if k not in ("results", "type") and not isinstance(v, Graph)))
    return own.union(*(told_symbols(graph) for graph in node.graphs))


def told_symbols(graph: Graph) -> frozenset[str]:
    """Those that a graph needs and nothing in it has learnt before."""
    symbols: frozenset[str] = frozenset()
    told: frozenset[str] = frozenset()
    for node in graph.nodes:
        told |= needed_symbols(node) - symbols
        symbols |= learnt_symbols(node)
    return told


def definer(name: str, users: Iterable[Value]) -> Value:
    """The value behind ``users`` whose size defines the symbol."""
    stack, seen = [v.node for v in users], set()
    while stack:
        node = stack.pop()
        if node.id in seen:
            continue
        seen.add(node.id)
        if name in defined_symbols(node):
            return next(v for v in node.outputs if name in symbols_of(v.shape))
        stack.extend(v.node for v in node.inputs)
    raise AssertionError(f"internal error: nothing defines the size {name}")


def size_value(builder: Builder, size: Dim, users: Iterable[Value]) -> Value:
    """A size as a Python int of the graph; ``users`` are values that have it."""
    users = list(users)
    sources = dict.fromkeys(definer(name, users) for name in sorted(size.symbols))
    return builder.emit("Size", *sources, size=size)


def infer_fill(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    return (TensorType(types[0].dtype, tuple(attrs["shape"])),)


def fill_reference(value: Any, *dims: Any, shape: Any) -> np.ndarray:
    return np.array(np.broadcast_to(value, dims))


@dataclass(frozen=True)
class SpreadView:
    """The view of a result that is broadcast to sizes which outputs of the graph hold, by their
    ``numbers``."""

    numbers: tuple[int, ...]

    def __call__(self, array: np.ndarray, outputs: Sequence[Any]) -> np.ndarray:
        return np.broadcast_to(array, tuple(int(outputs[n]) for n in self.numbers))


register(Op(
    name="Fill", kind="extern", infer=infer_fill, reference=fill_reference, cost=1000.0,
    is_of_sizes=True,
    raises="never", called="np.full", admits=FILL,
    doc="A value broadcast to sizes that it does not have: the other operands. attrs shape.",
))


def size_reference(*arrays: Any, size: int) -> int:
    return size


register(Op(
    name="Size", kind="extern", infer=lambda types, attrs: (_TYPE,), reference=size_reference,
    cost=1000.0, takes="i", raises="never", called="len", admits=SIZE_NUMBER, is_of_sizes=True,
    doc="attrs size; the operands are the values whose results define its symbols.",
))
