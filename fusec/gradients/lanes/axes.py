"""Which axis of each leaf of a tree counts lanes: ``in_axes`` and ``out_axes``."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from fusec.core.records import dataclass, replace
from fusec.errors import user_error
from fusec.ir import Loc
from fusec.trace.call.foreign_arrays import is_sparse_class
from fusec.trace.facts.trees import flattened
from fusec.trace.values.array import TracedArray

Axes = Any  # an int, None, or a container of these as the tree, or its upper part, is one


@dataclass(frozen=True)
class AxisLeaf:
    """A leaf of a tree with its path, and the axis that counts lanes; None: it has no lanes.
    ``is_unit``: it is the identity, whose lanes are unit vectors."""

    path: str
    leaf: Any
    axis: int | None
    is_unit: bool = False
    is_named: bool = False  # passed by keyword, for which `in_axes` has no place


def check_axes(name: str, what: str, axes: Axes) -> None:
    """Raise ``TypeError`` where a leaf of ``axes`` is no int and not None."""
    for leaf in flattened(axes)[0]:
        if isinstance(leaf, bool) or not isinstance(leaf, int | None):
            raise user_error(
                TypeError, f"{name}: {what} is a {type(leaf).__name__}", None,
                f"give an axis, None, or a tuple, list or dict of these: {what}=(0, None)",
                values=[(what, repr(axes))])


def of_arguments(
    name: str, f: Any, args: Sequence[Any], kwargs: dict[str, Any], in_axes: Axes, loc: Loc | None
) -> list[AxisLeaf]:
    """The leaves of a call's arguments; of keyword arguments the first axis counts lanes, or that
    which a tuple has for their parameters."""
    names, given = _names(f, len(args)), len(args)
    by_name = dict.fromkeys(kwargs, 0)
    if isinstance(in_axes, list | tuple):
        named = _next_by_keyword(f, given, kwargs) if len(in_axes) > given else []
        if len(in_axes) not in (given, given + len(named)):
            raise user_error(
                ValueError, f"{name}: in_axes has another length than the positional arguments",
                loc, "give an axis or None for each argument, those by keyword among them, or one "
                "int for all",
                values=[("in_axes", repr(in_axes)), ("arguments", given)])
        by_name.update(zip(named, in_axes[given:], strict=False))
        each = list(in_axes[:given])
    else:
        each = [in_axes] * given
    found = [leaf for title, arg, axes in zip(names, args, each, strict=True)
             for leaf in with_axes(name, "in_axes", title, arg, axes, loc)]
    for title, arg in kwargs.items():
        found += [replace(leaf, is_named=True)
                  for leaf in with_axes(name, "in_axes", title, arg, by_name[title], loc)]
    return found


def _next_by_keyword(f: Any, given: int, kwargs: dict[str, Any]) -> list[str]:
    """The parameters after those of positional arguments, as far as they are passed by keyword."""
    rest = _positional(f)[given:]
    return list(itertools.takewhile(kwargs.__contains__, (
        p.name for p in rest if p.kind is p.POSITIONAL_OR_KEYWORD)))


def check_keywords(
    name: str, parameters: inspect.Signature, kwargs: dict[str, Any], in_axes: Axes
) -> None:
    """Raise ``ValueError`` for an argument that is passed by keyword where ``in_axes``, which is
    for all arguments, would give it another axis than keyword arguments have."""
    for title in kwargs:
        parameter = parameters.parameters.get(title)
        if parameter is not None and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            raise user_error(
                ValueError, f"{name}: {title} is passed by keyword, and in_axes is no tuple", None,
                "pass it by position, or give a tuple with an axis for each parameter",
                values=[("in_axes", repr(in_axes))])


def _names(f: Any, count: int) -> list[str]:
    """Of the parameters that positional arguments are for."""
    names = [p.name for p in _positional(f)][:count]
    rest = next((p.name for p in _parameters(f) if p.kind is p.VAR_POSITIONAL), "argument ")
    more = range(count - len(names))
    return names + [f"{rest}[{k}]" if rest != "argument " else f"argument {len(names) + k}"
                    for k in more]


def _parameters(f: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):  # a function in C that says nothing
        return []


def _positional(f: Any) -> list[inspect.Parameter]:
    return [p for p in _parameters(f) if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def with_axes(
    name: str, what: str, path: str, tree: Any, axes: Axes, loc: Loc | None
) -> Iterator[AxisLeaf]:
    """The leaves of a tree, in order, each with its axis."""
    if isinstance(axes, int):
        _check_dense(name, path, tree, loc)
    if isinstance(axes, int | None):
        leaves, structure = flattened(tree)
        for leaf, steps in zip(leaves, structure.paths(), strict=True):
            yield AxisLeaf(_place(path, steps), leaf, axes)
        return
    if isinstance(axes, dict) and isinstance(tree, dict) and axes.keys() == tree.keys():
        for key in tree:
            yield from with_axes(name, what, f"{path}[{key!r}]", tree[key], axes[key], loc)
        return
    is_sequence = isinstance(axes, list | tuple) and isinstance(tree, list | tuple)
    if not is_sequence or len(axes) != len(tree):
        by_names = what == "in_axes" and isinstance(axes, dict) and not isinstance(tree, dict)
        raise user_error(
            ValueError, f"{name}: {what} has another structure than {path}", loc,
            "give a tuple with an axis or None for each argument, in their order; a dict is for "
            "the items of an argument that is a dict" if by_names else
            "give one axis for all of it, or the same tuples, lists and dicts",
            values=[(what, repr(axes)), (path, _drawn(tree))])
    for number, (part, axis) in enumerate(zip(tree, axes, strict=True)):
        yield from with_axes(name, what, f"{path}[{number}]", part, axis, loc)


def _place(path: str, steps: Sequence[Any]) -> str:
    return path + "".join(f"[{step!r}]" for step in steps)


def _check_dense(name: str, path: str, tree: Any, loc: Loc | None) -> None:
    """Raise ``ValueError`` for lanes of a sparse array."""
    leaves, structure = flattened(tree, is_sparse)
    for x, steps in zip(leaves, structure.paths(), strict=True):
        if is_sparse(x):
            raise user_error(
                ValueError, f"{name}: lanes of a sparse array, whose arrays are not one for each "
                "lane", loc, "give None in in_axes: the same array in each lane; or pass and "
                "return A.toarray()", values=[(_place(path, steps), f"{x.format}, {x.shape}")])


def is_sparse(x: Any) -> bool:
    return type(x) is not TracedArray and is_sparse_class(x.__class__)


def _drawn(tree: Any) -> str:
    if type(tree) is TracedArray:
        return str(tree.type)
    if isinstance(tree, dict):
        return f"a dict of {list(tree)}"
    if isinstance(tree, list | tuple):
        return f"a {type(tree).__name__} of {len(tree)}"
    return type(tree).__name__
