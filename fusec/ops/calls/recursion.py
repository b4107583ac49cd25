"""Functions of a graph that call themselves.

``Call(*operands)`` runs ``body``: the first ``own`` operands are the arguments, the others values
that the function reads from around it.  ``Recursion(*arguments)`` in the body, or in graphs inside
it, runs the body of the innermost `Call` of that name again, with the same others.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fusec.errors import InternalError
from fusec.ir import Graph, Node, TensorType

from ..admission.admission import GRAPH, INT, TEXT, TYPES, Admission, Kind, require
from ..graphs import evaluate
from ..registry import Op, register

RECURSIONS = ("Recursion", "CheckedRecursion")
FP = Kind("strict, contract or fast", lambda x: x in ("strict", "contract", "fast"))
TOO_DEEP = "maximum recursion depth exceeded"  # Python's words
_state = threading.local()


def recursions(graph: Graph, name: str) -> Iterator[Node]:
    """The nodes that run the function of that name again."""
    if graph.ops.isdisjoint(RECURSIONS):  # bodies may share graphs: a walk would meet them often
        return
    for node in graph.nodes:
        if node.op in RECURSIONS and node.attrs["function"] == name:
            yield node
        elif not (node.op == "Call" and node.attrs["function"] == name):
            for inner in node.graphs:
                yield from recursions(inner, name)


@contextmanager
def running(name: str, function: Any) -> Iterator[None]:
    """The function of that name runs in this thread."""
    stack = _stack(name)
    stack.append(function)
    try:
        yield
    finally:
        stack.pop()


def innermost(name: str) -> Any:
    """The function of that name that was called last."""
    stack = _stack(name)
    if not stack:
        raise InternalError(f"a graph runs {name!r} again, which does not run")
    return stack[-1]


def _stack(name: str) -> list[Any]:
    stacks: dict[str, list[Any]] = _state.__dict__.setdefault("by_name", {})
    return stacks.setdefault(name, [])


def is_repeated(node: Node) -> bool:
    """Whether it is one of many calls of a function that ends by itself, which rounds as the code
    around it does: run by itself or in the place of the call, its values are the same."""
    return node.op == "Call" and "fp" not in node.attrs and (
        node.attrs["body"].ops.isdisjoint(RECURSIONS))


def infer_call(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    body, own = attrs["body"], attrs["own"]
    if not 0 <= own <= len(types) or tuple(types) != tuple(v.type for v in body.inputs):
        raise TypeError(f"a function of {[str(v.type) for v in body.inputs]} is called with "
                        f"{[str(t) for t in types]}")
    results = tuple(v.type for v in body.outputs)
    for node in recursions(body, attrs["function"]):
        given = tuple(v.type for v in node.inputs)
        if given != tuple(types[:own]) or node.types != results:
            raise TypeError(f"{node.name} calls {attrs['function']!r} with other types than it has")
    if body.updates:
        raise TypeError("a function that is called updates no argument")
    return results


def call_reference(
    *operands: Any, body: Graph, own: int, function: str, sizes: Mapping[str, int], fp: str = "",
) -> Any:
    def run(*arguments: Any) -> tuple[Any, ...]:
        outputs = evaluate.evaluate_all(body, (*arguments, *operands[own:]), dict(sizes))[0]
        return tuple(outputs)

    with running(function, run):
        return run(*operands[:own])


def infer_recursion(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    return tuple(attrs["results"])


def recursion_reference(
    *arguments: Any, function: str, results: Any, sizes: Mapping[str, int]
) -> Any:
    return innermost(function)(*arguments)


def _admitted(node: Node) -> None:
    require(not any(t.shape and not t.is_static for t in node.types), "its results have any size")


register(Op(
    name="Call", kind="call", infer=infer_call, reference=call_reference, is_control=True,
    repeats=True, may_raise=True, raises="often",
    admits=Admission({"body": GRAPH, "own": INT, "function": TEXT}, {"fp": FP},
                     rule=_admitted),
    doc="A function that calls itself, or rounds in its own way. attrs: body: its graph over all "
        "operands; own: how many of these are arguments, the others are the same in every call; "
        "function: its name; fp: how it rounds, if not as what is around it.",
))
for _name in RECURSIONS:
    register(Op(
        name=_name, kind="call", infer=infer_recursion, reference=recursion_reference,
        is_control=True, may_raise=True, raises="often", stateful=_name != "Recursion",
        admits=Admission({"function": TEXT, "results": TYPES}, rule=_admitted),
        doc="Runs the function of the innermost Call of that name again; of one that raises it is "
            "CheckedRecursion. attrs: function, results: their types.",
    ))
