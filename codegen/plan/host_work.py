"""Says once of each line that a call with arrays of a GPU does work on the host, for which arrays
are copied there and back."""

from __future__ import annotations

from collections.abc import Collection

from fusec.core import log
from fusec.ir import Node
from fusec.ir.device_names import DeviceName
from fusec.ops import get
from fusec.passes.placement.partition import Partition
from fusec.passes.placement.schedule_simulation import is_placed

from .. import backends

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


def on_host(partition: Partition) -> list[Node]:
    """What devices compute whose memory is the host's, in the program's order."""
    found = {number: node for part in partition.parts.values()
             if backends.backend(part.device.backend).arrays is None
             for number, node in part.homes.items()
             if is_placed(node) and not get(node.op).is_transfer}
    return [found[number] for number in sorted(found)]
