"""Which nodes become kernels, for back ends that have nothing else: asked before fusion.

A branch or loop is a program of its device where all inside has kernels, and where that pays: a
launch costs a microsecond, waiting for a number twenty, a barrier of all blocks one, in which a CPU
goes through some thousand elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Set

from fusec.ir import Node, Value
from fusec.ir.sizes.bounds import range_of
from fusec.ir.sizes.dims import symbols_of
from fusec.ops import get
from fusec.ops.calls.checks import is_check
from fusec.ops.calls.library import size_limits
from fusec.ops.regions.cones import is_copied_whole
from fusec.ops.regions.parts_of_sizes import is_part_of_sizes, is_selection
from fusec.ops.regions.small_products import is_opened

# Elements of the largest array that kernels of an iteration read or compute, from which on a device
# is ahead of a CPU: where the host waits in each iteration, and where one kernel does all of them.
LARGE, ONE_KERNEL = 1 << 18, 1 << 14
_WAIT_US = 20  # of a device, for a number; a CPU has passed over `LARGE` elements then


def is_of_kernels(node: Node) -> bool:
    """Whether the node is a kernel's or will be a part of one, or a view of what lies in C order;
    not a copy or a call of NumPy's, nor a branch or loop."""
    if node.op == "Fused":
        return True
    if node.op == "Reshape":
        return all(t.is_static for t in (*node.types, *(v.type for v in node.inputs)))
    row = get(node.op)
    is_computed = row.lowering == "fused" or (row.kind == "source" and not row.is_given)
    return is_computed and not row.is_control and not is_copied_whole(node)


def is_control_of(node: Node, has_kernel: Callable[[Node], bool]) -> bool:
    """Whether it is a branch or loop of kernels, which its device runs."""
    return get(node.op).is_control and _is_inside(node, has_kernel, _given_symbols(node)) and (
        is_worth(node) and (_is_one(node) or not _has_sizes_of_run(node)))


def why_not_control(node: Node, has_kernel: Callable[[Node], bool]) -> str:
    """Why a branch or loop is not one of kernels, so that the CPU runs it; "": it is one."""
    if is_control_of(node, has_kernel):
        return ""
    calls = next((n for n in _all_inside(node) if not _is_of_one(n)), None)
    deciding = _deciding(node) or (calls if _has_sizes_of_run(node) else None)
    if deciding is not None:
        most = _most_of_run(node)
        if most < LARGE:
            us = -(-most * _WAIT_US // LARGE)
            return (f"it has arrays of sizes that the run decides, of up to {most:,} elements: a "
                    f"CPU is faster, which passes over them in some {us} us, where a device waits "
                    f"{_WAIT_US} us for each size, and launches")
        what = "decides, for which loops have no kernels" if deciding is not calls else (
            "has to know, a library's")
        return f"it has arrays of sizes that {deciding.op}{_at(deciding)} {what}"
    outer = _given_symbols(node)
    missing = next((n for n in _all_inside(node) if not _is_inside(n, has_kernel, outer)), None)
    if missing is not None and get(missing.op).is_control:
        return f"{missing.op} inside: {why_not_control(missing, has_kernel)}"
    if missing is not None:
        return f"{missing.op}{_at(missing)} inside has none"
    least = _least(node)
    return (f"it goes through elements one by one, beside arrays of fewer than {least:,}: a CPU "
            f"is faster, which takes some nanoseconds for each, a device some hundred")


def is_small_control(node: Node) -> bool:
    """Whether it is a branch or loop in each iteration of which a CPU is through before a device
    has been waited for."""
    return get(node.op).is_control and _most_points(node) < LARGE


def _at(node: Node) -> str:
    return f" at {node.loc}" if node.loc else ""


def is_worth(node: Node) -> bool:
    """Whether a device is no slower with a branch or loop than a CPU.

    One that reads or writes elements or parts at indices of the run is where the kernels beside
    them have large arrays: the CPU goes through elements one by one sooner than a device comes to
    the next barrier.  Below `LARGE` each loop inside has to have such kernels of its own.
    """
    least = _least(node)
    loops = [n for n in _all_inside(node) if get(n.op).is_control and n.op != "Cond"]
    return _most_points(node) >= LARGE or all(_has_work(n, least) for n in (node, *loops))


def _has_work(node: Node, least: int) -> bool:
    return _most_points(node) >= least or not any(
        get(n.op).picks or is_selection(n) for n in _of_iteration(node))


def _least(node: Node) -> int:
    """One kernel has no library calls, and needs no number on the host."""
    return ONE_KERNEL if _is_one(node) else LARGE


def _is_one(node: Node) -> bool:
    return all(map(_is_of_one, _all_inside(node)))


def _is_of_one(node: Node) -> bool:
    """Whether one kernel may have it beside others."""
    row = get(node.op)
    return is_of_kernels(node) or bool(row.picks) or row.is_control or row.is_of_sizes or (
        row.is_given or is_check(node) or is_opened(node) or is_part_of_sizes(node))


def _has_sizes_of_run(node: Node) -> bool:
    return not all(t.is_static for n in (node, *_all_inside(node)) for t in n.types)


def _deciding(node: Node) -> Node | None:
    """The first node that has sizes of the run, and is none that a kernel computes."""
    outer = _given_symbols(node)
    return next((n for n in (node, *_all_inside(node)) if not _has_known_sizes(n, outer)), None)


def _given_symbols(node: Node) -> Set[str]:
    """The sizes of a branch or loop that are known when it begins."""
    return symbols_of(tuple(v.shape for v in node.inputs if v.type.kind == "array"))


def _has_known_sizes(node: Node, outer: Set[str]) -> bool:
    """Whether a kernel may have its sizes: what a loop carries has those that it begins with, other
    arrays those that slices or selections decide."""
    unknown = symbols_of(tuple(t.shape for t in node.types)) - outer
    row = get(node.op)
    return not unknown or row.is_of_sizes or bool(row.picks) or row.is_given or (
        is_of_kernels(node) or is_opened(node) or is_part_of_sizes(node))


def _is_inside(
    node: Node, has_kernel: Callable[[Node], bool], outer: Set[str]
) -> bool:
    if not _has_known_sizes(node, outer):
        return False
    if get(node.op).is_control:
        return bool(node.graphs) and all(
            _is_inside(n, has_kernel, outer) for graph in node.graphs for n in graph.nodes)
    is_of_numbers = all(v.type.kind != "array" for v in node.inputs)
    is_part = bool(get(node.op).picks) or get(node.op).is_of_sizes or is_opened(node)
    return is_part or get(node.op).is_given or has_kernel(node) or is_part_of_sizes(node) or (
        is_check(node) and is_of_numbers)


def _all_inside(node: Node) -> Iterator[Node]:
    """The nodes of its graphs, and of those of branches and loops in them."""
    for graph in node.graphs:
        for inner in graph.nodes:
            yield inner
            yield from _all_inside(inner)


def _of_iteration(node: Node) -> Iterator[Node]:
    """The nodes of its graphs, and of those of branches in them."""
    for graph in node.graphs:
        for inner in graph.nodes:
            yield inner
            if inner.op == "Cond":
                yield from _of_iteration(inner)


def _most_points(node: Node) -> int:
    """Elements of the largest array of a kernel inside, or part that is written."""
    kernels = (n for n in _all_inside(node)
               if get(n.op).lowering == "fused" and not get(n.op).picks)
    parts = (n.inputs[1] for n in _all_inside(node) if get(n.op).picks == "write")
    return _most(_limits(node), (
        *(v for n in kernels for v in (*n.inputs, *n.outputs)), *parts))


def _most_of_run(node: Node) -> int:
    """Of the largest array whose size the run decides, or that a kernel inside reads or computes.
    """
    limits = _limits(node)
    values = [v for n in (node, *_all_inside(node)) for v in (*n.inputs, *n.outputs)]
    of_run = _most(limits, (v for v in values if not v.type.is_static))
    return max(of_run or _most(limits, values), _most_points(node))


def _limits(node: Node) -> dict[str, int]:
    """Upper bounds of the lengths of slices and selections inside."""
    limits: dict[str, int] = {}
    for inner in _all_inside(node):
        for name, limit in size_limits(inner):
            if symbols_of((limit,)) <= limits.keys():
                limits[name] = range_of(limit, limits)[1]
    return limits


def _most(limits: Mapping[str, int], values: Iterable[Value]) -> int:
    return max((range_of(math.prod(v.shape), limits)[1] for v in values
                if symbols_of(v.shape) <= limits.keys()), default=0)
