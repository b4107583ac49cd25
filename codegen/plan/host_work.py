"""Says once of each line that a call with arrays of a GPU does work on the host, for which arrays
are copied there and back."""

from __future__ import annotations

from collections.abc import Collection

from fusec.core import log
from fusec.ir import Node
from fusec.ir.device_names import DeviceName

_said: set[str] = set()  # at most one for each line of the program


def tell(nodes: Collection[Node], home: DeviceName) -> None:
    """``nodes`` of arrays that live on ``home`` are computed on the host."""
    for node in nodes:
        if not any(v.shape for v in (*node.inputs, *node.outputs)):
            continue  # numbers
        where = f" at {node.loc}" if node.loc else ""
        line = (f"on {home.short} nothing computes {node.name}{where}: its arrays are copied to "
                "the CPU and back, at each call")
        if line not in _said:
            _said.add(line)
            log.write(log.WARN, line)
