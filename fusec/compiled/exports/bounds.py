"""RunBounds that the run decides, as arithmetic on numbers: what ``Extent`` and ``Size`` compute by
arrays without memory (`fusec.ops.rows.windows`), for results of exported functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fusec.ir import Node, Value
from fusec.ir.sizes.dims import symbols_of
from fusec.ops import Builder
from fusec.ops.rows.sizes import definer

from .refusals import Refusal, RefusedError

_INDEX = np.dtype(np.int64)


class RunBounds:
    """The values of bounds; each is computed once."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self._extents: dict[Node, tuple[Value, Value]] = {}

    def number(self, value: Value) -> Value:
        """The int64 that the value is, without arrays whose size the data decides."""
        node = value.node
        if node.op == "Extent":
            return self._extent(node)[0]
        if node.op != "Size":
            return value
        size = node.attrs["size"]
        counts = {name: self._count(definer(name, node.inputs)) for name in symbols_of((size,))}
        return self.of_size(size, counts)

    def _count(self, witness: Value) -> Value:
        if witness.node.op != "Extent":
            raise RefusedError([Refusal("a result whose size the data decides", witness.node.loc)])
        return self._extent(witness.node)[1]

    def of_size(self, size: Any, counts: Mapping[str, Value]) -> Value:
        """A polynomial in sizes that have these values."""
        if not symbols_of((size,)):
            return self.const(size)
        total: Value | None = None
        for monomial, factor in size.terms:
            product = self.const(factor)
            for atom in monomial:
                if not isinstance(atom, str) or atom not in counts:
                    raise RefusedError([Refusal(f"a size that follows from {atom}",
                                                self.builder.loc)])
                product = self.emit("Mul", product, counts[atom])
            total = product if total is None else self.emit("Add", total, product)
        assert total is not None
        return total

    # -- Python's ``slice.indices``

    def _extent(self, node: Node) -> tuple[Value, Value]:
        """First index, and number of elements."""
        if node not in self._extents:
            self._extents[node] = self._computed(node)
        return self._extents[node]

    def _computed(self, node: Node) -> tuple[Value, Value]:
        step, limit, rest = node.attrs["step"], node.attrs["limit"], iter(node.inputs)
        low, high = (0, limit) if step > 0 else (-1, limit - 1)
        ends = [self._clipped(next(rest), limit, low, high) if is_given else self.const(default)
                for is_given, default in zip(node.attrs["given"],
                                             (low, high) if step > 0 else (high, low), strict=True)]
        first, last = ends if step > 0 else ends[::-1]
        length = self.emit("Sub", last, first)
        if abs(step) > 1:
            more = self.emit("Add", length, self.const(abs(step) - 1))
            length = self.emit("FloorDiv", more, self.const(abs(step)))
        count = self.emit("Maximum", length, self.const(0))
        some = self.emit("Greater", count, self.const(0))
        return self.emit("Where", some, ends[0], self.const(0)), count

    def _clipped(self, value: Value, limit: Any, low: Any, high: Any) -> Value:
        if value.node.op == "Const":
            known = int(value.node.attrs["value"])
            known = known if known >= 0 else known + limit
            return self.const(low if known < low else high if known > high else known)
        value = self.emit("Cast", value, dtype=_INDEX, kind="scalar")
        wrapped = self.emit("Add", value, self.const(limit))
        negative = self.emit("Less", value, self.const(0))
        value = self.emit("Where", negative, wrapped, value)
        return self.emit("Minimum", self.emit("Maximum", value, self.const(low)), self.const(high))

    def const(self, number: Any) -> Value:
        return self.builder.const(number)

    def emit(self, op: str, *inputs: Value, **attrs: Any) -> Value:
        return self.builder.emit(op, *inputs, **attrs)
