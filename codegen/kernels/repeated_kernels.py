"""Kernels of one structure are lowered once: an unrolled loop has the same ones in each iteration.

Lowering reads of a node its domain and its body: the body's ops and types.  Names and
places in the source are for reports; everything else is the key.
"""

from __future__ import annotations

from collections.abc import Hashable

from fusec.core.records import replace
from fusec.ir import Graph, Node
from fusec.ir.attr_key import attr_key

from .loop_ir import Kernel
from .lower import locs_of, lower


class RepeatedKernels:
    """The kernels of one graph, by the structure of their nodes."""

    def __init__(self) -> None:
        self._kernels: dict[Hashable, Kernel] = {}

    def lower(self, node: Node) -> Kernel:
        """The node's kernel; its nests are those of the first node of this structure."""
        key = _structure(node)
        if key in self._kernels:
            return _renamed(self._kernels[key], node)
        kernel = self._kernels[key] = lower(node)
        return kernel


def _renamed(kernel: Kernel, node: Node) -> Kernel:
    body: Graph = node.attrs["body"]
    values = zip(kernel.buffers, (*body.inputs, *body.outputs), strict=True)
    buffers = tuple(replace(buffer, value=v.node.name) for buffer, v in values)
    return Kernel(node.name, buffers, kernel.params, kernel.nests, locs_of(body))


def _structure(node: Node) -> Hashable:
    """Equal for nodes that lowering cannot tell apart."""
    body: Graph = node.attrs["body"]
    numbers = {n.id: number for number, n in enumerate(body.nodes)}
    rows = tuple(
        (n.op, n.types, () if n.op == "Input" else _attrs(n),
         tuple((numbers[v.node.id], v.index) for v in n.inputs)) for n in body.nodes)
    ends = tuple((numbers[v.node.id], v.index) for v in (*body.inputs, *body.outputs))
    parts = dict(node.attrs.get("unrolled", ()))
    unrolled = tuple((numbers[n.id], parts[n.name]) for n in body.nodes if n.name in parts)
    return node.attrs["domain"], node.attrs["axes"], unrolled, rows, len(body.inputs), ends


def _attrs(node: Node) -> Hashable:
    return tuple((name, attr_key(value)) for name, value in node.attrs.items())
