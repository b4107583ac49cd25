"""Arguments and results of a traced function as specs, in the structure that they have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusec.ir import TensorType
from fusec.ir.sizes.dims import Dim
from fusec.ops import get
from fusec.runtime.call_spec import CallSpec
from fusec.signature.specs import TensorSpec
from fusec.trace.boundary.results import ResultLeaf

from .compiled_trace import Build


def inputs_of(build: Build, spec: CallSpec) -> Any:
    """``(args, kwargs)``: specs of the leaves that are inputs, values of the static ones."""
    leaves = [_spec(spec.input_types[leaf.input], path) if leaf.input >= 0 else leaf.object
              for leaf, path in zip(spec.leaves, spec.paths, strict=True)]
    return build.call.treespec.unflatten(leaves)


def outputs_of(build: Build) -> Any:
    """The structure of the result, which comes first among the outputs."""
    tree, traced = build.traced.treespec, build.traced
    return tree.unflatten([
        _output(o, [v.type for v in (traced.graph.inputs if o.kind == "input" else
                                     traced.graph.outputs)])
        for o in traced.outputs[: tree.num_leaves]])


def _output(output: ResultLeaf, types: Sequence[TensorType]) -> Any:
    if output.kind not in ("graph", "input"):
        return output.value
    type_ = types[output.index]
    for step in output.steps:
        if step.op == "Windows":  # no op of the graph
            return TensorSpec(None, type_.dtype)
        if step.op != "ReadOnly":
            type_ = get(step.op).infer([type_], dict(step.attrs))[0]
    return _spec(type_, None)


def _spec(type_: TensorType, name: str | None) -> TensorSpec:
    return TensorSpec(tuple(None if isinstance(s, Dim) else s for s in type_.shape), type_.dtype,
                      name)
