"""Random valid graphs for property tests: every op the registry gives a scalar form, and views."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from fusec.ir import Graph, Loc, Node, TensorType, Value
from fusec.ops import Builder, registry

DTYPES = [np.dtype(n) for n in ("f8", "f4", "i8", "i4", "u1", "?")]
SHAPES: list[tuple[int, ...]] = [(), (3,), (2, 3), (1, 3), (2, 1)]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 4.0, np.nan, np.inf, -np.inf, 1e300, 5e-324]
# Pow raises for negative integer powers, Fma's reference rounds twice: they have their own tests.
LEFT_OUT = frozenset({"Pow", "Fma", "Cast", "Where"})


def input_value(index: int, kind: TensorType) -> Value:
    attrs = {"index": index, "path": f"x{index}", "type": kind}
    return Node("Input", (), (kind,), attrs, name=f"x{index}").out()


def is_defined(op: registry.Op, dtype: np.dtype) -> bool:
    """Whether NumPy has the function for this dtype and keeps it."""
    if op.kind != "elementwise" or op.ufunc is None or op.name in LEFT_OUT:
        return False
    try:
        with np.errstate(all="ignore"):
            result = op.ufunc(*[np.ones(1, dtype)] * op.ufunc.nin)
    except TypeError:
        return False
    kind = TensorType(dtype, (1,))
    return result.dtype == op.infer([kind] * op.ufunc.nin, {})[0].dtype


OPS = {d: [op for op in registry.all_ops() if is_defined(op, d)] for d in DTYPES}


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 12) -> Graph:
    """A graph of up to three parameters and ``max_nodes`` operations."""
    kinds = draw(st.lists(st.builds(TensorType, st.sampled_from(DTYPES), st.sampled_from(SHAPES)),
                          min_size=1, max_size=3))
    builder = Builder()
    inputs = [input_value(i, kind) for i, kind in enumerate(kinds)]
    for value in inputs:
        builder.namer.fresh(value.node.name)
    values = list(inputs)
    for line in range(draw(st.integers(1, max_nodes))):
        builder.loc = Loc("program.py", line + 1, 4)
        values.append(draw(steps(builder, values)))
    outputs = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    return Graph.build(inputs, outputs, extra=[v.node for v in values])


@st.composite
def steps(draw: st.DrawFn, builder: Builder, values: list[Value]) -> Value:
    """One more value: a constant, an elementwise op, a cast, a choice, a view or a reduction."""
    value = draw(st.sampled_from(values))
    kind = draw(st.sampled_from(["constant", "apply", "apply", "apply", "cast", "where", "view",
                                 "view", "update", "reduce"]))
    if kind == "constant":
        return builder.const(draw(constants(value.dtype)))
    if kind == "cast":
        dtypes = [d for d in DTYPES if not (value.dtype.kind == "f" and d.kind in "iu")]
        return builder.emit("Cast", value, dtype=draw(st.sampled_from(dtypes)))
    if kind == "where":
        return draw(choices(builder, values, value))
    if kind == "reduce":
        axes = draw(st.sets(st.integers(0, max(0, len(value.shape) - 1)), max_size=2))
        axes = {a for a in axes if a < len(value.shape)}
        return builder.emit(draw(st.sampled_from(["Max", "Min"])), value, axes=tuple(sorted(axes)))
    if kind in ("view", "update"):
        return draw(views(builder, value, kind == "update"))
    op = draw(st.sampled_from(OPS[value.dtype]))
    return builder.emit(op.name, value, *draw(others(values, value, op.ufunc.nin - 1)))


def constants(dtype: np.dtype) -> st.SearchStrategy[Any]:
    numbers = SPECIAL if dtype.kind == "f" else [0, 1, 2, 3, 8, 255 if dtype.kind == "u" else -1]
    with np.errstate(all="ignore"):
        return st.sampled_from([np.asarray(n).astype(dtype)[()] for n in numbers])


@st.composite
def others(draw: st.DrawFn, values: list[Value], like: Value, count: int) -> list[Value]:
    """More operands: of the same dtype, and of a shape that broadcasts with it."""
    fitting = [v for v in values if v.dtype == like.dtype and _broadcasts(v.shape, like.shape)]
    picked = [draw(st.sampled_from(fitting)) for _ in range(count)]
    return picked if _broadcasts(*[v.shape for v in picked], like.shape) else [like] * count


def _broadcasts(*shapes: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


@st.composite
def choices(draw: st.DrawFn, builder: Builder, values: list[Value], value: Value) -> Value:
    tests = [v for v in values if v.dtype.kind == "b" and _broadcasts(v.shape, value.shape)]
    test = draw(st.sampled_from(tests)) if tests else builder.emit("Equal", value, value)
    (other,) = draw(others(values, value, 1))
    return builder.emit("Where", test, value, other if _broadcasts(
        other.shape, value.shape, test.shape) else value)


@st.composite
def views(draw: st.DrawFn, builder: Builder, value: Value, update: bool) -> Value:
    if value.type.kind != "array":
        return builder.emit("BroadcastTo", value, shape=(2, 3))
    region = draw(regions(value.shape))
    if update:
        piece = builder.emit("Slice", value, **draw(st.just(region)))
        return builder.emit("SliceUpdate", value, piece, **region)
    pick = draw(st.sampled_from(["Slice", "Transpose", "Reshape", "ExpandDims", "BroadcastTo"]))
    attrs: dict[str, dict[str, Any]] = {
        "Slice": region,
        "Transpose": {"perm": draw(st.permutations(range(len(value.shape))).map(tuple))},
        "Reshape": {"shape": draw(st.sampled_from([value.shape, (value.type.size,)]))},
        "ExpandDims": {"axes": (draw(st.integers(0, len(value.shape))),)},
        "BroadcastTo": {"shape": draw(st.sampled_from([value.shape, (2, *value.shape)]))},
    }
    return builder.emit(pick, value, **attrs[pick])


@st.composite
def regions(draw: st.DrawFn, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """starts, steps and sizes inside ``shape``; reversed, strided, empty and full ones too."""
    rows = []
    for size in shape:
        taken = range(size)[draw(st.sampled_from([
            slice(None), slice(1, None), slice(None, -1), slice(None, None, -1),
            slice(None, None, 2), slice(0, 0)]))]
        rows.append((taken.start if len(taken) else 0, taken.step, len(taken)))
    starts, steps, sizes = zip(*rows, strict=True) if rows else ((), (), ())
    return {"starts": tuple(starts), "steps": tuple(steps), "sizes": tuple(sizes)}


def arguments(graph: Graph, seed: int) -> list[np.ndarray]:
    """Arguments for the graph, special values among them."""
    rng = np.random.default_rng(seed)
    return [_argument(v.type, rng) for v in graph.inputs]


def _argument(kind: TensorType, rng: np.random.Generator) -> np.ndarray:
    if kind.dtype.kind == "f":
        special, ordinary = rng.choice(SPECIAL, kind.shape), rng.normal(size=kind.shape)
        with np.errstate(all="ignore"):
            return np.asarray(np.where(rng.random(kind.shape) < 0.4, special, ordinary), kind.dtype)
    return np.asarray(rng.integers(-8, 9, kind.shape)).astype(kind.dtype)


def same_bits(a: Any, b: Any) -> bool:
    """Equal dtype, shape and bits; any NaN equals any NaN."""
    a, b = np.asarray(a), np.asarray(b)
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    if a.dtype.kind == "f":
        both = np.isnan(a) & np.isnan(b)
        return bool(np.all(both | ((a == b) & (np.signbit(a) == np.signbit(b)))))
    return bool(np.all(a == b))
