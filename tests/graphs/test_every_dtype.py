"""Every row in every dtype, as a graph by hand: refused, or the interpreter's result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hostile_graphs import outcome

from fusec.ir import Graph, Node, TensorType
from fusec.ops import Op, all_ops
from fusec.ops.admission.claims import DTYPES

ROWS = [row for row in all_ops()
        if row.kind in ("elementwise", "reduce", "scan", "composite", "fold")]
ATTRS: tuple[dict[str, Any], ...] = (
    {}, {"axes": (0,)}, {"axes": (1,), "ddof": 1}, {"axis": 0},
    *({"combine": name, "axes": (0,)} for name in ("Add", "Maximum", "LogicalAnd")),
    *({"dtype": dtype} for dtype in (DTYPES[0], DTYPES[3], DTYPES[11], DTYPES[13])))


def graphs_of(row: Op, type_: TensorType) -> Iterator[Graph]:
    """One operation on parameters of one type, with each set of attributes that the rule takes."""
    inputs = [Node("Input", (), (type_,), {"type": type_, "index": i, "path": f"x{i}"},
                   name=f"x{i}").out() for i in range(row.arity or 2)]
    for attrs in ATTRS:
        if set(attrs) != set(row.admits.attrs):
            continue
        try:
            types = row.infer([v.type for v in inputs], attrs)
        except (TypeError, ValueError, KeyError, IndexError):
            continue
        node = Node(row.name, inputs, types, attrs, name="y")
        yield Graph(tuple(inputs), (node.out(),), (), (*(v.node for v in inputs), node))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_row(dtype: np.dtype) -> None:
    types = [TensorType(dtype, (3, 4))]
    types += [TensorType(dtype, (), "weak")] if dtype.char in "?ldD" else []
    found = [outcome(graph.to_json()) for row in ROWS for type_ in types
             for graph in graphs_of(row, type_)]
    assert set(found) <= {"refused", "right", "raises"}
    assert found.count("right") > 15
