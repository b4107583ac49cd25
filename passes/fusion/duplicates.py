"""Values that several kernels compute again although storing them would be cheaper."""

from __future__ import annotations

from collections.abc import Iterable

from fusec.ir import Value

from .groups import Unit
from .known_cones import KnownCones
from .materialise import RECOMPUTE_LIMIT, is_strip

MANY_NODES = 300  # graphs of more than these get several such values a round
MANY_ROUNDS = 4  # by then the values stored last show in each round which to store next


def duplicates(units: list[Unit], cones: KnownCones, size: int, number: int) -> set[Value]:
    """The values to store next: the last such value, or several in a graph of many nodes.

    Storing a value may make those before it be computed once only.  So after each round the nodes
    are grouped anew.  A round is linear in ``size``, the number of nodes.  So that large graphs do
    not take quadratic time, several values are stored in one round, and the effect of each on the
    kernels is counted here instead of by grouping: at first as if one kernel computed all of them,
    and where round ``number`` shows that it does not, as if each had its own.
    """
    stored: set[Value] = set()
    shared = _Shared(units, apart=number >= MANY_ROUNDS)
    for value in shared.candidates():
        cost = cones.cost(value)
        # Within one group a stored value costs one store; the other kernels save the whole cone.
        if cost * (len(shared.kernels[value]) - 1) > RECOMPUTE_LIMIT / 2:
            stored.add(value)
            if size <= MANY_NODES:
                break
            shared.store(value)
    return stored


class _Shared:
    """By value, the kernels that compute it, each with how many of its values read it there."""

    def __init__(self, units: list[Unit], apart: bool) -> None:
        self.apart = apart
        self.kernels: dict[Value, dict[object, int]] = {}
        for unit in units:
            for reach in unit.cones:
                for value in reach.inlined:
                    if not is_strip(unit.domain, value.shape):
                        self.kernels.setdefault(value, {})[unit.number] = 0
        for unit in units:
            inlined = {v for reach in unit.cones for v in reach.inlined}
            for value in inlined.union(unit.roots):
                self._count(_read_by(value), unit.number)

    def candidates(self) -> list[Value]:
        shared = (v for v, kernels in self.kernels.items() if len(kernels) > 1)
        return sorted(shared, key=lambda v: v.node.id, reverse=True)

    def store(self, value: Value) -> None:
        """Kernels that read it do not compute it, nor operands of its own; one kernel does, with
        others that are stored and have its shape unless kernels are `apart`."""
        for kernel in self.kernels.pop(value, {}):
            self._drop(_read_by(value), kernel)
        self._compute(_read_by(value), value if self.apart else (
            "stored", value.shape, value.node.device))

    def _count(self, values: Iterable[Value], kernel: object) -> None:
        for value in values:
            if kernel in self.kernels.get(value, ()):
                self.kernels[value][kernel] += 1

    def _drop(self, values: Iterable[Value], kernel: object) -> None:
        stack = list(values)
        while stack:
            value = stack.pop()
            readers = self.kernels.get(value, {})
            if kernel in readers:
                readers[kernel] -= 1
                if readers[kernel] <= 0:
                    del readers[kernel]
                    stack.extend(_read_by(value))

    def _compute(self, values: Iterable[Value], kernel: object) -> None:
        stack = list(values)
        while stack:
            value = stack.pop()
            readers = self.kernels.get(value)
            if readers is None:  # stored, or in memory as it is
                continue
            if kernel not in readers:
                readers[kernel] = 0
                stack.extend(_read_by(value))
            readers[kernel] += 1


def _read_by(value: Value) -> Iterable[Value]:
    """The operands of its computation, each value once."""
    return dict.fromkeys(value.node.inputs)


__all__ = ["duplicates"]
