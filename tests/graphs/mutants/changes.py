"""Changes of a graph that leave it a graph: types behind a change are inferred anew, so that many
mutants are admitted and run.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.ir import Graph, Node, TensorType
from fusec.ir.sizes.dims import Dim, maximum, minimum, symbol
from fusec.ops import all_ops, get
from fusec.ops.admission.claims import DTYPES

INDEX = np.dtype(np.int64)
INTEGERS = (0, 1, -1, 2, -2, 3, 4, 5, 9, 10, 11, -56, 200, 255, 256, -128, 2**31 - 1, 2**31,
            -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 1e30, float("inf"), float("-inf"), float("nan"))
Ref = tuple[int, int]  # number of a node, and of its output


@dataclass
class Part:
    """A node that may be changed."""

    node: Node
    op: str
    inputs: list[Ref]
    attrs: dict[str, Any]
    types: tuple[TensorType, ...]
    control: list[int]
    is_stale: bool = False


class Draft:
    """A graph as a list of nodes that may be changed."""

    def __init__(self, graph: Graph) -> None:
        self.graph, at = graph, {n.id: i for i, n in enumerate(graph.nodes)}
        self.parts = [Part(n, n.op, [(at[v.node.id], v.index) for v in n.inputs], dict(n.attrs),
                           n.types, [at[c.id] for c in n.control_inputs]) for n in graph.nodes]
        self.inputs = [at[v.node.id] for v in graph.inputs]
        self.outputs = [(at[v.node.id], v.index) for v in graph.outputs]
        self.updates = [(i, (at[v.node.id], v.index)) for i, v in graph.updates]

    def insert(self, position: int, op: str, inputs: Sequence[Ref], **attrs: Any) -> int:
        """A new node there; references behind it move by one."""
        def moved(ref: Ref) -> Ref:
            return (ref[0] + (ref[0] >= position), ref[1])

        for part in self.parts:
            part.inputs = [moved(r) for r in part.inputs]
            part.control = [c + (c >= position) for c in part.control]
        self.inputs = [i + (i >= position) for i in self.inputs]
        self.outputs = [moved(r) for r in self.outputs]
        self.updates = [(i, moved(r)) for i, r in self.updates]
        name = f"new{len(self.parts)}"
        made = Node(op, (), (), attrs, name=name)
        self.parts.insert(position, Part(made, op, list(inputs), attrs, (), []))
        return position

    def built(self) -> Graph:
        """The graph, its types inferred where that works."""
        nodes: list[Node] = []
        for part in self.parts:
            inputs = [nodes[i].out(k) for i, k in part.inputs]
            types, attrs = part.types, part.attrs
            if part.op == "Input":
                attrs = attrs | {"type": types[0]}
            elif not part.is_stale or not types:
                attrs = _fitted(part.op, attrs, inputs)
                types = _inferred(part.op, attrs, inputs, types)
            nodes.append(part.node.with_(
                op=part.op, inputs=inputs, types=types, attrs=attrs,
                control_inputs=[nodes[c] for c in part.control]))
        return Graph(tuple(nodes[i].out() for i in self.inputs),
                     tuple(nodes[i].out(k) for i, k in self.outputs),
                     tuple((i, nodes[j].out(k)) for i, (j, k) in self.updates), tuple(nodes),
                     self.graph.name)


def _inferred(op: str, attrs: Any, inputs: Sequence[Any], types: Any) -> tuple[TensorType, ...]:
    try:
        return tuple(get(op).infer([v.type for v in inputs], attrs))
    except Exception:
        return types or (TensorType(np.dtype(np.float64)),)


def _fitted(op: str, attrs: dict[str, Any], inputs: Sequence[Any]) -> dict[str, Any]:
    """Graphs inside take their node's operands."""
    if op not in ("Loop", "Cond", "Call"):
        return attrs
    types = [v.type for v in inputs][op == "Cond":]
    return {k: retyped(v, types) if isinstance(v, Graph) else v for k, v in attrs.items()}


def retyped(graph: Graph, types: Sequence[TensorType]) -> Graph:
    """The graph with parameters of these types."""
    if len(types) != len(graph.inputs) or [v.type for v in graph.inputs] == list(types):
        return graph
    draft = Draft(graph)
    for i, type_ in zip(draft.inputs, types, strict=True):
        draft.parts[i].types = (type_,)
    return draft.built()


# ------------------------------------------------------------------------------------- changes


def mutated(graph: Graph, row: str, rng: random.Random) -> Graph:
    """The graph with one to three changes, most of them at nodes of the row or their operands."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        with contextlib.suppress(IndexError):  # results that a changed node has not
            graph = _changed(graph, row, rng)
    return graph


def _changed(graph: Graph, row: str, rng: random.Random) -> Graph:
    draft = Draft(graph)
    inner = [(i, k) for i, p in enumerate(draft.parts) for k, v in p.attrs.items()
             if isinstance(v, Graph)]
    if inner and rng.random() < 0.7:
        i, k = rng.choice(inner)
        draft.parts[i].attrs[k] = _changed(draft.parts[i].attrs[k], row, rng)
        return draft.built()
    here = [i for i, p in enumerate(draft.parts) if p.op == row]
    near = sorted({*here, *(j for i in here for j, _ in draft.parts[i].inputs)})
    chosen = near if near and rng.random() < 0.8 else range(len(draft.parts))
    if not len(chosen):
        return graph
    rng.choice(CHANGES)(draft, rng.choice(list(chosen)), rng)
    if rng.random() < 0.05:
        rng.choice(draft.parts).is_stale = True
    return draft.built()


def _attr(draft: Draft, i: int, rng: random.Random) -> None:
    part = draft.parts[i]
    names = [k for k, v in part.attrs.items() if not isinstance(v, Graph) and k != "path"]
    if part.op == "Input":
        _parameter(draft, i, rng)
    elif names:
        name = rng.choice(names)
        part.attrs[name] = _value(part.attrs[name], part, rng)


def _value(old: Any, part: Part, rng: random.Random) -> Any:
    """Another value of the same sort, now and then of another."""
    if rng.random() < 0.02:
        return rng.choice((None, True, 0, 1.5, "x", (), (0,), np.dtype(np.int32), symbol("n")))
    if type(old) is bool or isinstance(old, np.bool_):
        return type(old)(not old)
    if isinstance(old, Dim):
        return rng.choice((old + 1, old - 1, old * 2, maximum(old - 1, 0), minimum(old, 2), 3,
                           symbol("n")))
    if type(old) is int:
        return rng.choice((old + 1, old - 1, -old, old * 2, *INTEGERS))
    if isinstance(old, np.generic):
        return _number(old.dtype, rng)
    if type(old) in (float, complex):
        return rng.choice(FLOATS)
    if isinstance(old, np.dtype):
        return rng.choice(DTYPES)
    if isinstance(old, TensorType):
        return _type(old, rng)
    if type(old) is tuple and old:
        return _tuple(old, part, rng)
    return rng.choice(("Add", "Maximum", "Mul", "array", "scalar", "weak", "n", old, "x"))


def _tuple(old: tuple[Any, ...], part: Part, rng: random.Random) -> tuple[Any, ...]:
    items, k = list(old), rng.randrange(len(old))
    what = rng.random()
    if what < 0.75:
        items[k] = _value(items[k], part, rng)
    elif what < 0.85:
        del items[k]
    elif what < 0.95:
        items.insert(k, items[k])
    else:
        rng.shuffle(items)
    return tuple(items)


def _number(dtype: np.dtype, rng: random.Random) -> Any:
    if not isinstance(dtype, np.dtype):  # an earlier change put something else there
        return 1
    if dtype.kind in "iu":
        return np.array(rng.choice(INTEGERS)).astype(dtype)[()]
    return dtype.type(rng.choice(FLOATS if dtype.kind != "b" else (0, 1)))


def _type(old: TensorType, rng: random.Random) -> TensorType:
    dtype, shape, kind = old.dtype, list(old.shape), old.kind
    what = rng.random()
    if what < 0.4 and shape:
        k = rng.randrange(len(shape))
        shape[k] = rng.choice((0, 1, 2, 3, shape[k] + 1, maximum(shape[k] - 1, 0)))
    elif what < 0.5:
        shape.insert(rng.randrange(len(shape) + 1), rng.choice((0, 1, 2, 3)))
    elif what < 0.6 and shape:
        del shape[rng.randrange(len(shape))]
    elif what < 0.9:
        dtype = rng.choice((*DTYPES, INDEX, INDEX))
    else:
        kind = rng.choice(("array", "scalar", "weak"))
    return TensorType(dtype, tuple(shape), kind)


def _parameter(draft: Draft, i: int, rng: random.Random) -> None:
    part = draft.parts[i]
    if part.op == "Input":
        part.types = (_type(part.types[0], rng),)


def _earlier(draft: Draft, i: int) -> list[Ref]:
    return [(j, k) for j, p in enumerate(draft.parts[:i]) for k in range(len(p.types))]


def _rewired(draft: Draft, i: int, rng: random.Random) -> None:
    """An operand is another value, of the same dtype if there is one."""
    part = draft.parts[i]
    if part.inputs:
        k = rng.randrange(len(part.inputs))
        j, port = part.inputs[k]
        old = draft.parts[j].types[port] if port < len(draft.parts[j].types) else None
        every = _earlier(draft, i)
        alike = [(a, b) for a, b in every if old is not None and draft.parts[a].types[b].dtype
                 == old.dtype]
        part.inputs[k] = rng.choice(alike if alike and rng.random() < 0.8 else every)


def _counted(draft: Draft, i: int, rng: random.Random) -> None:
    """An operand more or less."""
    inputs = draft.parts[i].inputs
    if inputs and rng.random() < 0.5:
        del inputs[rng.randrange(len(inputs))]
    elif _earlier(draft, i):
        inputs.insert(rng.randrange(len(inputs) + 1), rng.choice(_earlier(draft, i)))


def _operand(draft: Draft, i: int, rng: random.Random) -> tuple[int, Ref, TensorType] | None:
    part = draft.parts[i]
    if not part.inputs:
        return None
    k = rng.randrange(len(part.inputs))
    j, port = part.inputs[k]
    types = draft.parts[j].types
    return (k, (j, port), types[port]) if port < len(types) else None


def _through_casts(draft: Draft, i: int, rng: random.Random) -> None:
    """An operand goes through another dtype and back: numbers that do not fit there wrap."""
    found = _operand(draft, i, rng)
    if found is not None:
        k, ref, type_ = found
        at = draft.insert(i, "Cast", [ref], dtype=rng.choice(DTYPES))
        back = draft.insert(at + 1, "Cast", [(at, 0)], dtype=type_.dtype)
        draft.parts[back + 1].inputs[k] = (back, 0)


def _through_arithmetic(draft: Draft, i: int, rng: random.Random) -> None:
    """An operand with a constant: added, as a limit, shifted, divided."""
    found = _operand(draft, i, rng)
    if found is not None:
        k, ref, type_ = found
        value: Any = _number(type_.dtype, rng)
        value = value.item() if type_.is_weak else value
        const = draft.insert(i, "Const", [], value=value,
                             kind="weak" if type_.is_weak else "scalar")
        op = rng.choice(("Add", "Sub", "Mul", "Maximum", "Minimum", "FloorDiv", "Mod", "ShiftLeft",
                         "ShiftRight", "BitAnd", "CheckIndex"))
        attrs = {"axis": 0} if op == "CheckIndex" else {}
        made = draft.insert(const + 1, op, [ref, (const, 0)], **attrs)
        draft.parts[made + 1].inputs[k] = (made, 0)


def _as_constant(draft: Draft, i: int, rng: random.Random) -> None:
    """An operand is a constant."""
    found = _operand(draft, i, rng)
    if found is not None:
        k, _, type_ = found
        value: Any = _number(type_.dtype, rng)
        if type_.is_weak and hasattr(value, "item"):
            value = value.item()
        const = draft.insert(i, "Const", [], value=value,
                             kind="weak" if type_.is_weak else "scalar")
        draft.parts[const + 1].inputs[k] = (const, 0)


def _op(draft: Draft, i: int, rng: random.Random) -> None:
    part = draft.parts[i]
    if part.op != "Input":
        part.op = rng.choice(OPS)


def _swapped(draft: Draft, i: int, rng: random.Random) -> None:
    rng.shuffle(draft.parts[i].inputs)


def _result(draft: Draft, i: int, rng: random.Random) -> None:
    """Another value is given back, or nothing reads one."""
    if draft.outputs and _earlier(draft, len(draft.parts)):
        k = rng.randrange(len(draft.outputs))
        draft.outputs[k] = rng.choice(_earlier(draft, len(draft.parts)))


def _updated(draft: Draft, i: int, rng: random.Random) -> None:
    """A parameter becomes another value of its type."""
    arrays = [(n, j) for n, j in enumerate(draft.inputs)
              if draft.parts[j].types[0].kind == "array" and n not in dict(draft.updates)]
    if arrays:
        n, j = rng.choice(arrays)
        alike = [(a, b) for a, b in _earlier(draft, len(draft.parts))
                 if draft.parts[a].types[b] == draft.parts[j].types[0] and a != j]
        if alike:
            draft.updates.append((n, rng.choice(alike)))


OPS = [row.name for row in all_ops()]
CHANGES: tuple[Callable[[Draft, int, random.Random], None], ...] = (
    _attr, _attr, _attr, _attr, _attr, _parameter, _parameter, _rewired, _rewired, _rewired,
    _through_casts, _through_arithmetic, _through_arithmetic, _as_constant, _op, _swapped, _counted,
    _result, _updated)
