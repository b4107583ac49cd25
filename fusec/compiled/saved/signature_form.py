"""One signature of a function as JSON: its graph, arguments, results, and what it reads besides."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fusec.compiled.concrete_function import ConcreteFunction
from fusec.compiled.sizes.dynamic_function import OpenFunction
from fusec.compiled.tracing_compiler import TracingCompiler
from fusec.errors import FusecError, UnsupportedError, unsupported
from fusec.ir.graph import Graph, Node
from fusec.ir.sizes.computed_forms import NoFormError, computed_form
from fusec.ir.sizes.dims import Dim
from fusec.ir.sizes.dynamic_sizes import Assumption, open_sizes, unbound_sizes
from fusec.ir.sizes.size_questions import Computed, Succeeds
from fusec.ir.text.json_form import graph_form
from fusec.ops.calls.checks import SAVED_ERROR, is_known_error
from fusec.trace.boundary.results import ResultLeaf
from fusec.trace.facts.layout import like_order
from fusec.trace.tracer import Traced

from .plain_values import NotPlainError, plain_form
from .portable_graph import portable
from .structures import Leaf, SavedStructureError, structure_form
from .tensors import SavedArrays

Concrete = ConcreteFunction | OpenFunction


class SignatureForm(NamedTuple):
    """The JSON of a signature, and of its graph."""

    form: dict[str, Any]
    graph: dict[str, Any]


def compiler_of(concrete: Concrete) -> TracingCompiler:
    """The compiler that made it; raises ``UnsupportedError`` for one compiled from stages."""
    owner: Any = getattr(concrete, "compiler", None) or getattr(
        getattr(concrete, "flatten", None), "__self__", None)
    if not isinstance(owner, TracingCompiler):
        raise unsupported(f"saving {concrete!r}, which was compiled from stages",
                          cure="save f.concrete(...)")
    return owner


def signature_form(
    concrete: Concrete, arrays: SavedArrays, *, is_wrapped: bool = False
) -> SignatureForm:
    """See the module; ``is_wrapped``: made by `wrap_function`, which keeps its Variables.

    Raises ``UnsupportedError`` for what a folder cannot hold.
    """
    try:
        return _form(concrete, arrays, is_wrapped)
    except NoFormError as error:
        raise _refused(concrete, f"with {error}", "save it for specs whose sizes are "
                       "known") from None


def _form(concrete: Concrete, arrays: SavedArrays, is_wrapped: bool) -> SignatureForm:
    traced = concrete.build.traced
    _check_saveable(concrete, traced, is_wrapped)
    lost = unbound_sizes(traced.graph) if open_sizes(traced.graph) else ""
    if lost:
        raise _refused(concrete, f"of which no argument has the size {lost}",
                       "save it for specs whose sizes are known")
    _check_calls(concrete, traced.graph.made)
    graph = graph_form(portable(traced.graph.made), with_open_sizes=True)
    for node in _nodes(graph):
        if node["op"] == "Check":
            node["attrs"]["error"] = _portable(node["attrs"]["error"])
    return SignatureForm({
        "inputs": _structure(concrete, concrete.build.call.treespec),
        "leaves": [*_leaves(concrete)],
        "outside": [*_outside(concrete, traced, arrays)],
        "result": _structure(concrete, traced.treespec),
        "outputs": [_output(concrete, output) for output in traced.outputs],
        "orders": [like_order(strides) for strides in traced.output_strides],
        "assumed": [*_assumed(concrete, traced.graph.assumed)],
    }, graph)


def _assumed(concrete: Concrete, assumed: tuple[Assumption, ...]) -> Iterator[Any]:
    """The questions about open sizes.  That NumPy gives a library call's results the same types
    need not be asked: admission infers them for the sizes of each call."""
    for question, known in assumed:
        asked = question.expression
        if isinstance(asked, (Dim, Computed, Succeeds)):
            row = Computed(asked.fn, asked.args) if isinstance(asked, Succeeds) else asked
            yield {"asked": computed_form(row), "succeeds": isinstance(asked, Succeeds),
                   "answer": computed_form(question.answer), "known": known}


def _refused(concrete: Concrete, what: str, cure: str) -> FusecError:
    return UnsupportedError(f"{concrete.name} cannot be saved: it is a function {what}", cure=cure,
                            values=[("signature", concrete.signature)] + (
                                [("at", concrete.line)] if concrete.line else []))


def _check_saveable(concrete: Concrete, traced: Traced, is_wrapped: bool) -> None:
    """Raise for what a call does beyond computing results and writing arrays."""
    concrete.check_alive()
    if not is_wrapped and not all(guard.holds() for guard in concrete.guards):
        raise _refused(concrete, "of whose trace something has changed since",
                       "call it, or f.concrete(...), and save what that gives")
    if concrete.narrowed:
        raise _refused(concrete, f"whose sizes were to be open, and are not: {concrete.narrowed}",
                       "save it for arguments of the sizes that it is to answer, a list of these")
    if traced.assignments or traced.created:
        what = str(traced.assignments[0][0]) if traced.assignments else "creates Variables"
        raise _refused(concrete, f"which {what}", "keep state in a fusec.Variable that is made "
                       "before the function is called, or return it")
    spec = concrete.executable.spec
    if concrete.build.call.separate is not None or any(
            leaf.alias_of >= 0 for leaf in spec.leaves):
        raise _refused(concrete, "whose arguments overlap", "save it for arguments that do not")
    for leaf, path in zip(spec.leaves, spec.paths, strict=True):
        if leaf.generator is not None:
            raise _refused(concrete, f"whose argument {path} is a random generator",
                           "draw with fusec.random, or pass the numbers")


def _check_calls(concrete: Concrete, graph: Graph) -> None:
    """Raise for calls of generators, of prints, and of compiled functions of numbers."""
    for node in graph.nodes:
        for value in node.attrs.values():
            if isinstance(value, str) and type(value) is not str:
                raise UnsupportedError(
                    f"{concrete.name} cannot be saved: it calls {_object_of(node)}, which only "
                    "this program has", loc=node.loc, values=[("signature", concrete.signature)],
                    cure="draw with fusec.random, print after the call, and write functions of "
                    "elements with NumPy's")
        for inner in node.graphs:
            _check_calls(concrete, inner)


_GENERATOR = "a random generator"
_OBJECTS = {"draw": _GENERATOR, "change": _GENERATOR, "make": _GENERATOR, "print": "fusec.print",
            "warn": "warnings.warn"}


def _object_of(node: Node) -> str:
    """The words for what a node calls."""
    if node.op == "ScalarCall":
        return "a function of fusec.vectorize"
    if node.op != "HostCall":
        return node.op
    called = f"{node.attrs['target']}.{node.attrs['method']}"
    kind = _OBJECTS.get(node.attrs["action"], called)
    return f"{kind} ({called})" if kind is _GENERATOR else kind


def _nodes(form: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The nodes of a graph's form, those of graphs in it too."""
    for node in form["nodes"]:
        yield node
        for value in node.get("attrs", {}).values():
            if type(value) is dict and "graph" in value:
                yield from _nodes(value["graph"])


def _portable(error: list[Any]) -> list[Any]:
    """An exception that every process can make."""
    name, arguments, *rest = error
    cause = rest[1] if rest else None
    if cause is not None:
        cause = _portable(cause)
    if not is_known_error(error):
        name, arguments = SAVED_ERROR, [name, *arguments]
    return [name, arguments, [], cause] if cause is not None else [name, arguments]


def _structure(concrete: Concrete, treespec: Any) -> Any:
    leaves = [Leaf(number) for number in range(treespec.num_leaves)]
    try:
        return structure_form(treespec.unflatten(leaves))
    except SavedStructureError as error:
        why = str(error)
    except Exception as error:  # a class of the user's that checks its parts
        why = f"of which no structure can be made: {type(error).__name__}: {error}"
    raise _refused(concrete, f"of whose arguments or results {why}",
                   "pass and return tuples, lists, dicts, named tuples and dataclasses")


def _leaves(concrete: Concrete) -> Iterator[Any]:
    spec = concrete.executable.spec
    for leaf, path in zip(spec.leaves, spec.paths, strict=True):
        if leaf.input >= 0:
            traced = concrete.build.traced
            order = like_order(traced.input_strides[leaf.input])
            in_c = list(order) == [*range(len(order))]
            flag = traced.asked_flags.get(leaf.input)
            if flag is None or (flag and leaf.input in traced.updates):  # writing asks for itself
                flags = dict[str, Any]()
            else:
                flags = {"writeable": flag}
            yield {"input": leaf.input} | ({} if in_c else {"order": list(order)}) | flags
            continue
        try:
            yield {"value": plain_form(leaf.object)}
        except NotPlainError:
            raise _refused(
                concrete, f"whose argument {path} is a {type(leaf.object).__name__}",
                "pass the arrays and numbers in it; a dataclass that optree knows "
                "(optree.register_pytree_node) is a structure of its fields") from None


def _outside(concrete: Concrete, traced: Traced, arrays: SavedArrays) -> Iterator[Any]:
    """Variables, and what else the graph reads from outside, as it is now."""
    first = len(traced.graph.inputs) - len(traced.captured)
    variables = {met.input: met.reference() for met in traced.variables}
    for number, source in enumerate(traced.captured, first):
        path = traced.graph.inputs[number].node.attrs["path"]
        variable = variables.get(number)
        if variable is not None:
            yield {"variable": arrays.of_variable(variable, path)}
            continue
        value = _read(concrete, source, path)
        if isinstance(value, np.ndarray):
            yield {"constant": arrays.of_constant(value, number in traced.updates)}
        elif isinstance(value, Computed):  # an array that follows from the sizes
            yield {"computed": computed_form(value)}
        else:
            yield {"value": plain_form(value)}


def _read(concrete: Concrete, source: Any, path: str) -> Any:
    if isinstance(source, (np.ndarray, Computed)):
        return source
    if callable(source):
        value = source()
        if isinstance(value, (np.ndarray, np.generic, int, float, complex)):
            return value
    raise _refused(concrete, f"which reads {path} from outside", "pass it as an argument")


def _output(concrete: Concrete, output: ResultLeaf) -> dict[str, Any]:
    form: dict[str, Any] = {"kind": output.kind}
    if output.kind in ("graph", "input"):
        form["index"] = output.index
        if output.steps:
            form["steps"] = [[step.op, [[k, plain_form(v)] for k, v in step.attrs],
                              plain_form(step.strides), len(step.operands)]
                             for step in output.steps]
            form["indices"] = list(output.indices)
        return form
    try:
        if isinstance(output.value, (Dim, Computed)):
            return form | {"computed": computed_form(output.value)}
        if isinstance(output.value, np.ndarray):
            return form | {"array": [str(output.value.dtype), plain_form(output.value.tolist())]}
        return form | {"value": plain_form(output.value)}
    except (NotPlainError, UnsupportedError):
        raise _refused(concrete, f"which returns a {type(output.value).__name__}",
                       "return arrays, numbers and texts") from None


def parameters_form(compiler: TracingCompiler) -> list[list[Any]]:
    """The parameters of a function: names, kinds, and defaults that are plain data."""
    rows: list[list[Any]] = []
    parameters: inspect.Signature = compiler.binder.signature.parameters
    for parameter in parameters.parameters.values():
        row: list[Any] = [parameter.name, parameter.kind.name]
        if parameter.default is not parameter.empty:
            row += _default(parameter.default)
        rows.append(row)
    by_position = [row for row in rows if row[1].startswith("POSITIONAL")]
    last = max((k for k, row in enumerate(by_position) if len(row) == 2), default=-1)
    for row in by_position[:last]:  # none of those before one that must be given
        del row[2:]
    return rows


def _default(value: Any) -> list[Any]:
    try:
        return [plain_form(value)]
    except NotPlainError:  # it must be given at each call
        return []


__all__ = ["SignatureForm", "compiler_of", "parameters_form", "signature_form"]
