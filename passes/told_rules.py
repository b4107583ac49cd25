"""The changes of single nodes by passes, told for people: rules of `simplify`, purposes of the
others, and which node stands where one stood."""

from __future__ import annotations

from fusec.ir import Graph, Node, Value

from .rules.simplify import rules_used

# The purpose of a change by each pass; passes that are not here are told by their name.
OF_PASSES = {
    "twins": "a loop or branch that another one extends is that one",
    "given_derivatives": "the rule of a derivative is not needed any more",
    "prune": "nothing reads it",
    "place_bodies": "the body of a call is put in its place",
    "complex_calls": "operations on complex values that no kernel has are library calls",
    "unchecked_indices": "indices are not checked: check_indices=False",
    "constant_folding": "its operands are constants, so it is one",
    "cse": "another node computes the same",
    "decompose": "it is written in simpler operations, which fuse",
    "contracted_axes": "a contraction is a product of matrices, or a sum of products",
    "outer_products": "a product over one element is a product of elements",
    "powers": "a small power is written as products",
    "repeated_calls": "the body of a call whose products are joined is put in its place",
    "fma": "a product and its sum are one operation, rounded once",
    "padded_slices": "a slice of a padded sum is a sum of slices",
    "short_axes": "a sum over a short axis is written out",
    "estimates": "fp='fast' lets the device estimate it",
    "subgraphs": "the passes of its body changed it",
    "separate_results": "two results that would share memory have memory of their own",
    "kernel_checks": "a check is made in the kernel that reads the element",
    "device_constraints": "it is given a device that can run it",
    "kernel_products": "a product for which a GPU has no library is a sum of products",
    "folded_totals": "the sum of short rows is one of their sums",
    "narrow_products": "a product of few columns is a sum of products, which fuses on a GPU",
    "batched_products": "matrices of a stack are written where a GPU's library takes them",
    "size_order": "sizes are computed before what needs them",
    "open_products": "a product with a vector is a sum of products, which fuses",
    "element_kernels": "an element of an array of the device is read by a kernel",
    "reshaped_views": "a view that this device cannot have is a copy",
    "strided_additions": "additions at strides are made in place",
    "shared_reciprocals": "divisions by one number share its reciprocal",
    "scalar_factors": "one number stands for several factors",
    "contracted_additions": "a product is added where the sum is",
    "sums_in_parts": "a long sum is made in parts",
}


def told(name: str, before: Graph, after: Graph) -> dict[str, list[str]]:
    """For each node that a pass changed, by its name before, the rules that it applied."""
    if name == "simplify":
        return rules_used(before)
    rest = {node.name: node for node in after.nodes}
    kernels = {inner.name: node.name for node in after.nodes if node.op == "Fused"
               for inner in node.attrs["body"].nodes if inner.op != "Input"}
    instead = _replacements(before, rest)
    found = {node.name: _text(name, node, rest.get(node.name), kernels, instead)
             for node in before.nodes}
    return {node: [text] for node, text in found.items() if text}


def _text(
    name: str, node: Node, now: Node | None, kernels: dict[str, str], instead: dict[str, str]
) -> str:
    """Of one node; empty where it is as it was."""
    if now is node:
        return ""
    if now is not None and _is_as_before(node, now):
        pairs = [(_name(a), _name(b)) for a, b in zip(node.inputs, now.inputs, strict=True)]
        read = ", ".join(dict.fromkeys(f"{b} instead of {a}" for a, b in pairs if a != b))
        return f"{name}: reads {read}" if read else ""
    if name == "fusion":
        return f"fusion: in the kernel {kernels[node.name]}" if node.name in kernels else (
            "fusion: the kernels that read it compute it")
    purpose = OF_PASSES.get(name, "")
    text = f"{name}: {purpose}" if purpose else name
    return f"{text} ({node.name} -> {instead[node.name]})" if node.name in instead else text


def _is_as_before(node: Node, now: Node) -> bool:
    """But for its operands."""
    return (now.op, now.device, now.types, now.attrs) == (
        node.op, node.device, node.types, node.attrs) and len(now.inputs) == len(node.inputs)


def _replacements(before: Graph, rest: dict[str, Node]) -> dict[str, str]:
    """For nodes that are gone what their readers read instead."""
    found: dict[str, str] = {}
    for node in before.nodes:
        now = rest.get(node.name)
        if now is None or now.op != node.op or len(now.inputs) != len(node.inputs):
            continue
        for old, new in zip(node.inputs, now.inputs, strict=True):
            if old.node.name not in rest:
                found.setdefault(old.node.name, _name(new))
    return found


def _name(value: Value) -> str:
    return value.node.name if not value.index else f"{value.node.name}:{value.index}"
