"""A function at a point, in a trace: its result, and derivatives there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fusec.core.display.amounts import count_text
from fusec.core.records import dataclass
from fusec.errors import user_error
from fusec.ir import Value
from fusec.ops.derivatives import DIFFERENTIABLE, Term, full
from fusec.passes.gradient import pull, push
from fusec.state.variable import Variable
from fusec.trace.facts.trees import flattened
from fusec.trace.hooks.absence import bound
from fusec.trace.objects.tracing_hooks import TracingHooks
from fusec.trace.operands.operands import as_traced, cast, spread
from fusec.trace.values.array import TracedArray, from_value
from fusec.trace.values.differentiation import Differentiated
from fusec.trace.values.trace import Trace

from .independent_variables import Independent, check_apart, independent
from .paths import by_path

Tree = Any


@dataclass
class DerivativeTree:
    """A tree's structure, of whose leaves those that are None are not there for a derivative."""

    structure: Any
    is_there: tuple[bool, ...]

    def unflatten(self, values: Iterable[Any]) -> Tree:
        """The tree with these values, and None in the other places."""
        given = iter(values)
        return self.structure.unflatten([next(given) if x else None for x in self.is_there])

    def flatten_up_to(self, tree: Tree) -> list[Any]:
        """The parts of a tree in the places of the values."""
        parts = self.structure.flatten_up_to(tree)
        return [part for part, x in zip(parts, self.is_there, strict=True) if x]


@dataclass
class DerivativePoint:
    """``result`` of a call whose variables are ``variables``, leaves of ``structure``."""

    trace: Trace
    name: str  # of the function, in messages
    variables: list[Independent]
    structure: DerivativeTree
    result: Any

    def pulled(self, results: Sequence[tuple[Value, Term]]) -> Tree:
        """The gradients by all variables, for these cotangents of results."""
        given: dict[Value, Term] = {}
        for value, ct in results:
            given[value] = given[value] + ct if value in given else ct
        with self.trace.part(Differentiated).making():
            cotangents = pull(self.trace.builder, given, [v.value for v in self.variables])
        return self.structure.unflatten([
            variable.derivative(ct)
            for variable, ct in zip(self.variables, cotangents, strict=True)])

    def pushed(self, tangents: Sequence[Term], results: Sequence[Value]) -> list[Term | None]:
        """The tangents of results, for these tangents of the variables."""
        pairs = zip(self.variables, tangents, strict=True)
        with self.trace.part(Differentiated).making():
            return push(self.trace.builder, {v.value: t for v, t in pairs}, results)


def call_at(
    trace: Trace, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    argnums: int | tuple[int, ...], wrt: Tree, name: str,
) -> DerivativePoint:
    """Call ``f`` with variables in the place of the arguments ``argnums``; or, where ``wrt`` is
    not None, of Variables and arrays that objects hold."""
    if wrt is not None:
        _check_variables(trace, wrt, name)
        variables, structure = _named(trace, wrt, f, args, kwargs, name)
    else:
        chosen = _chosen(trace, argnums, args, name)
        given: Any = args[chosen[0]] if isinstance(argnums, int) else tuple(
            args[n] for n in chosen)
        path = f"argument {chosen[0]}" if isinstance(argnums, int) else "arguments"
        variables, structure, taken = _separated(trace, given, path, name)
        parts = [taken] if isinstance(argnums, int) else taken
        new = list(args)
        for number, part in zip(chosen, parts, strict=True):
            new[number] = part
        args = tuple(new)
    for variable in variables:
        variable.watch()
    try:
        with trace.part(Differentiated).more(1):
            result = called(trace, f, args, kwargs)
    finally:
        for variable in variables:
            variable.unwatch()
    check_apart(variables)
    for variable in variables:
        variable.returned()
    return DerivativePoint(trace, name, variables, structure, result)


def _check_variables(trace: Trace, wrt: Tree, name: str) -> None:
    """Raise ``TypeError`` for leaves of ``wrt`` that are no Variable and no path."""
    wrong = [type(x).__name__ for x in flattened(wrt)[0] if not isinstance(x, (Variable, str))]
    if wrong:
        raise user_error(
            TypeError, f"{name}: wrt is no Variable", trace.loc,
            "give a Variable, a path (\"model.w\"), or a list, tuple or dict of these; by "
            "arguments differentiate with argnums", values=[("wrt", wrong[0])])


def called(
    trace: Trace, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The result of a function that is traced with the program around it; a variable that it may
    not have bound raises where it has not."""
    hooks = trace.hooks
    assert isinstance(hooks, TracingHooks)
    return bound(hooks, hooks.where, hooks.call(hooks.where, f, *args, **kwargs))


def _named(
    trace: Trace, wrt: Tree, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    name: str,
) -> tuple[list[Independent], Any]:
    """Variables that are not passed: those of fusec, and paths to arrays that objects hold."""
    leaves, structure = flattened(wrt)
    return [by_path(trace, leaf, f, args, kwargs, name) if isinstance(leaf, str) else
            independent(trace, leaf, f"wrt{_place(place)}", name)
            for leaf, place in zip(leaves, structure.paths(), strict=True)], structure


def _separated(
    trace: Trace, tree: Tree, path: str, name: str
) -> tuple[list[Independent], DerivativeTree, Tree]:
    """The variables that a tree's leaves are, its structure, and the tree for the function."""
    leaves, structure = flattened(tree)
    places = DerivativeTree(structure, tuple(leaf is not None or leaf is tree for leaf in leaves))
    variables = [independent(trace, leaf, f"{path}{_place(place)}", name)
                 for leaf, place, is_there in zip(
                     leaves, structure.paths(), places.is_there, strict=True) if is_there]
    return variables, places, places.unflatten([v.inside for v in variables])


def _place(path: Sequence[Any]) -> str:
    return "".join(f"[{step!r}]" for step in path)


def _chosen(
    trace: Trace, argnums: int | tuple[int, ...], args: tuple[Any, ...], name: str
) -> list[int]:
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    wrong = [n for n in numbers if not -len(args) <= n < len(args)]
    if wrong or not numbers:
        raise user_error(
            TypeError, f"{name} by argument {wrong[0] if wrong else '()'} of a call with "
            f"{count_text(len(args), 'positional argument')}", trace.loc,
            "argnums counts positional arguments from 0; keyword arguments are constants")
    positions = [n % len(args) for n in numbers]
    if len(set(positions)) < len(positions):
        raise user_error(
            TypeError, f"{name} by one argument twice", trace.loc, "name each argument once",
            values=[("argnums", argnums), ("arguments", len(args))])
    return positions


def real_number(point: DerivativePoint, y: Any) -> TracedArray:
    """The result whose gradient is asked for; raises ``TypeError`` unless it is one float."""
    leaves = flattened(y)[0]
    is_one = len(leaves) == 1 and leaves[0] is y and not isinstance(y, (str, type(None)))
    number = as_traced(point.trace, y) if is_one else None
    if number is None or number.shape or number.dtype.kind != "f":
        raise user_error(
            TypeError, f"{point.name} of a function whose result is not one float",
            point.trace.loc, _cure(y), values=[("result", _described(y, number, len(leaves)))])
    return number


def _cure(y: Any) -> str:
    if y is None:
        return "return the number"
    if isinstance(y, tuple) and len(y) == 2:
        return ("return the first alone; or with has_aux=True the function may return it with "
                "something else")
    return ("sum it (y.sum()), or take fusec.jacobian or fusec.vjp; of a complex number take the "
            "real part or the absolute value")


def _described(y: Any, number: TracedArray | None, count: int) -> str:
    """A function's result, for a message: the type of a number, or the kind of object."""
    if number is not None:
        kind = number.dtype.type(0).item() if number.type.is_weak else None
        return str(number.type) if kind is None else f"a Python {type(kind).__name__}"
    if y is None or isinstance(y, str):
        return "None" if y is None else "a text"
    return f"a {type(y).__name__} of {count}"


def ones(trace: Trace, value: Value) -> Term:
    """The cotangent of a result that is differentiated."""
    return full(trace.builder, value.dtype.type(1), value)


def result_leaves(point: DerivativePoint) -> tuple[list[TracedArray], Any]:
    """The result's leaves as traced values, and its structure.  Raises for texts and the like."""
    leaves, structure = flattened(point.result)
    for leaf in leaves:
        if leaf is None or isinstance(leaf, str):
            raise user_error(TypeError, f"{point.name} of a function that returns "
                             f"{type(leaf).__name__}", point.trace.loc,
                             "return arrays and numbers, and others with has_aux=True")
    return [as_traced(point.trace, leaf) for leaf in leaves], structure


def directions(
    trace: Trace, name: str, tree: Tree, structure: Any, likes: Sequence[TracedArray], what: str
) -> list[Term]:
    """The leaves of tangents or cotangents, each with the dtype and shape of the value whose it is.

    Raises ``ValueError`` for another structure or shape, ``TypeError`` for a complex one of a real
    value.
    """
    leaves, given = flattened(tree)
    if isinstance(structure, DerivativeTree):
        if given == structure.structure:
            leaves = structure.flatten_up_to(tree)
        structure = structure.structure
    if given != structure and not (len(leaves) == len(likes) == 1):
        raise user_error(
            ValueError, f"{name}: the {what} have another structure than the values", trace.loc,
            f"give {what} in the tuples, lists and dicts of the values, an array for each *",
            values=[("values", drawn(structure)), (what, drawn(given))])
    return [direction(trace, name, leaf, like, what)
            for leaf, like in zip(leaves, likes, strict=True)]


class _Leaf:
    """A value in the picture of a structure."""

    def __repr__(self) -> str:
        return "*"


def drawn(structure: Any) -> str:
    """The structure as tuples, lists and dicts of stars."""
    return repr(structure.unflatten([_Leaf()] * structure.num_leaves))


def direction(trace: Trace, name: str, leaf: Any, like: TracedArray, what: str) -> Term:
    """A leaf of tangents or cotangents with the dtype and shape of the value whose it is."""
    given = as_traced(trace, leaf)
    if given.shape != like.shape:
        raise user_error(ValueError, f"{name}: {what} of another shape", trace.loc,
                         values=[("value", like.type), ("given", given.type)])
    if like.dtype.kind not in DIFFERENTIABLE:
        return Term(trace.builder, given.value)
    if given.dtype.kind == "c" and like.dtype.kind != "c":
        raise user_error(TypeError, f"{name}: complex {what} of a real value", trace.loc,
                         values=[("value", like.type), ("given", given.type)])
    value = cast(trace, given.value, like.dtype)
    return Term(trace.builder, spread(trace, value, like.shape) if like.is_array else value)


def as_result(trace: Trace, like: TracedArray, term: Term | None) -> TracedArray:
    """A tangent as a value of the program, of the kind of the value whose it is."""
    if term is None:
        term = full(trace.builder, like.dtype.type(0), like.value)
    return from_value(trace, spread(trace, term.value, like.shape) if like.is_array
                      else term.value)
