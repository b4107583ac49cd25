"""Which axis of each leaf of a tree counts lanes: ``in_axes`` and ``out_axes``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

from fusec.core.records import dataclass
from fusec.errors import user_error
from fusec.ir import Loc
from fusec.trace.facts.trees import flattened

Axes = Any  # an int, None, or a container of these as the tree, or its upper part, is one


@dataclass(frozen=True)
class AxisLeaf:
    """A leaf of a tree with its path, and the axis that counts lanes; None: it has no lanes.
    ``is_unit``: it is the identity, whose lanes are unit vectors."""

    path: str
    leaf: Any
    axis: int | None
    is_unit: bool = False


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
    """The leaves of a call's arguments; of keyword arguments the first axis counts lanes."""
    if isinstance(in_axes, list | tuple):
        if len(in_axes) != len(args):
            raise user_error(
                ValueError, f"{name}: in_axes has another length than the positional arguments",
                loc, "give an axis or None for each argument, or one int for all",
                values=[("in_axes", repr(in_axes)), ("arguments", len(args))])
        each = list(in_axes)
    else:
        each = [in_axes] * len(args)
    names = _names(f, len(args))
    found = [leaf for title, arg, axes in zip(names, args, each, strict=True)
             for leaf in with_axes(name, "in_axes", title, arg, axes, loc)]
    for title, arg in kwargs.items():
        found += with_axes(name, "in_axes", title, arg, 0, loc)
    return found


def _names(f: Any, count: int) -> list[str]:
    """Of the parameters that positional arguments are for."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):  # a function in C that says nothing
        parameters = []
    names = [p.name for p in parameters
             if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:count]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "argument ")
    more = range(count - len(names))
    return names + [f"{rest}[{k}]" if rest != "argument " else f"argument {len(names) + k}"
                    for k in more]


def with_axes(
    name: str, what: str, path: str, tree: Any, axes: Axes, loc: Loc | None
) -> Iterator[AxisLeaf]:
    """The leaves of a tree, in order, each with its axis."""
    if isinstance(axes, int | None):
        leaves, structure = flattened(tree)
        for leaf, steps in zip(leaves, structure.paths(), strict=True):
            where = path + "".join(f"[{step!r}]" for step in steps)
            yield AxisLeaf(where, leaf, axes)
        return
    if isinstance(axes, dict) and isinstance(tree, dict) and axes.keys() == tree.keys():
        for key in tree:
            yield from with_axes(name, what, f"{path}[{key!r}]", tree[key], axes[key], loc)
        return
    is_sequence = isinstance(axes, list | tuple) and isinstance(tree, list | tuple)
    if not is_sequence or len(axes) != len(tree):
        raise user_error(
            ValueError, f"{name}: {what} has another structure than {path}", loc,
            "give one axis for all of it, or the same tuples, lists and dicts",
            values=[(what, repr(axes)), (path, _drawn(tree))])
    for number, (part, axis) in enumerate(zip(tree, axes, strict=True)):
        yield from with_axes(name, what, f"{path}[{number}]", part, axis, loc)


def _drawn(tree: Any) -> str:
    if isinstance(tree, dict):
        return f"a dict of {list(tree)}"
    if isinstance(tree, list | tuple):
        return f"a {type(tree).__name__} of {len(tree)}"
    return type(tree).__name__
