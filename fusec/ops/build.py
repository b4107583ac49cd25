"""Making nodes: type inference, names and locations in one place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from fusec.ir import Loc, Node, Value

from . import registry


class Namer:
    """Hands out unique names: ``Square``, ``Square_1``, …"""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        name, count = stem, self._next.get(stem, 0)
        while name in self._taken:
            count += 1
            name = f"{stem}_{count}"
        self._next[stem] = count
        self._taken.add(name)
        return name


class DeviceChoice(Protocol):
    """The collaborator that says the device of each new node."""

    @property
    def name(self) -> object:
        """The device of every node; None where that depends on the node."""
    def device_of(self, op: str, name: str, inputs: Sequence[Value], loc: Loc | None) -> str: ...
    def check_assigned(self, title: str, device: str, loc: Loc | None) -> None: ...


class Builder:
    """Emits nodes at the current location ``loc`` and below the current name ``scope``.

    They are on its ``device``, or the one that its ``devices`` says, and run after its
    ``control_inputs``.
    """

    def __init__(self, namer: Namer | None = None, loc: Loc | None = None) -> None:
        self.namer = namer or Namer()
        self.loc = loc
        self.scope = ""
        self.device = ""
        self.devices: DeviceChoice | None = None
        self.control_inputs: tuple[Node, ...] = ()
        self.is_symbolic = False  # whether sizes of arguments are symbols
        self.notes: list[str] = []  # decisions that `fusec.explain` tells

    def emit(self, op: str, *inputs: Value, name: str = "", **attrs: Any) -> Value:
        """A new node's first output.  Raises the op's type rule's error for bad shapes."""
        row = registry.get(op)
        types = row.infer([v.type for v in inputs], attrs)
        name = self.namer.fresh(self.scope + (name or op))
        device = self.device
        if self.devices is not None:
            device = self.devices.device_of(op, name, inputs, self.loc)
        return Node(op, inputs, types, attrs, name=name, loc=self.loc, device=device,
                    control_inputs=self.control_inputs if inputs else ()).out()

    def source(self, op: str, name: str, **attrs: Any) -> Value:
        """A new node without operands, which is in no scope."""
        types = registry.get(op).infer([], attrs)
        return Node(op, (), types, attrs, name=self.namer.fresh(name), loc=self.loc,
                    device=self.device).out()

    @contextmanager
    def on(self, device: str) -> Iterator[None]:
        """Nodes made inside are on this device."""
        before, self.device = self.device, device
        try:
            yield
        finally:
            self.device = before

    def stand_for(self, node: Node) -> None:
        """New nodes get the location, the device and the control inputs of this one."""
        self.loc, self.device, self.control_inputs = node.loc, node.device, node.control_inputs

    def const(self, value: Any) -> Value:
        """A constant: Python numbers are weak, NumPy scalars and rank-0 arrays are not."""
        kind = "weak"
        if isinstance(value, np.ndarray):
            value, kind = value[()], "array"
        elif isinstance(value, np.generic):
            kind = "scalar"
        return self.emit("Const", value=value, kind=kind)

    def cast(self, value: Value, dtype: np.dtype) -> Value:
        """The value in another dtype; itself when it is of that dtype and not weak."""
        if value.dtype == dtype and not value.type.is_weak:
            return value
        return self.emit("Cast", value, dtype=dtype)
