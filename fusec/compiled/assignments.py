"""The program's assignments to attributes, names and items, done after a call: one function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusec.trace.guards.places import Attribute


def assigner(
    assignments: Sequence[tuple[Any, Any]], first: int
) -> Callable[[Sequence[Any]], None]:
    """A function of a call's leaves that does the assignments, of (place, tree) pairs.

    Their leaves begin at ``first``.  It is made as a text: a loop over places takes 1 µs for each.
    """
    names: dict[str, Any] = {}

    def bind(value: Any) -> str:
        name = f"n{len(names)}"
        names[name] = value
        return name

    lines, at = ["def assign(leaves):"], first
    for place, tree in assignments:
        end = at + tree.num_leaves
        value = f"leaves[{at}]" if tree.is_leaf() else (
            f"{bind(tree.unflatten)}(leaves[{at}:{end}])")
        if type(place) is Attribute:  # of an object that may be gone
            lines += [f"    owner = {bind(place.scope)}()",
                      f"    if owner is not None: setattr(owner, {place.name!r}, {value})"]
        else:
            lines.append(f"    {bind(place.apply)}({value})")
        at = end
    exec(compile("\n".join(lines), "<assignments>", "exec"), names)
    assign: Callable[[Sequence[Any]], None] = names["assign"]
    return assign


__all__ = ["assigner"]
