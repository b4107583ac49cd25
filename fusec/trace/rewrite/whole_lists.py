"""Lists of which all that a function's text does is to fill them, in one comprehension or one loop,
and to give them to calls as the first argument, or to go over them in a comprehension.

`lists.whole_lists` says why.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from .flow import COMPREHENSIONS, SCOPES
from .transformer import looks_at_frame

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)


def mark(node: ast.ListComp | ast.List) -> None:
    """The list is read as a whole only."""
    node._fusec_is_read_whole = True  # type: ignore[union-attr]


def is_marked(node: ast.expr) -> bool:
    return getattr(node, "_fusec_is_read_whole", False)


def mark_lists(function: ast.FunctionDef) -> None:
    """Mark the values of the function's variables that are such lists."""
    made = dict(_made(function.body))
    if not made or any(map(looks_at_frame, ast.walk(function))):
        return
    uses = Counter(_names(function))
    taken = Counter(name for statement in function.body for name in _taken(statement))
    appended = [Counter(_appended(loop)) for loop in function.body if isinstance(loop, ast.For)]
    filled = Counter(name for names in appended for name in names)
    appends = sum(appended, Counter[str]())
    for name, value in made.items():
        is_filled_once = filled[name] == isinstance(value, ast.List)
        if is_filled_once and uses[name] == 1 + taken[name] + appends[name]:
            mark(value)


def _made(body: list[ast.stmt]) -> Iterator[tuple[str, ast.ListComp | ast.List]]:
    for statement in body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
            is_list = isinstance(value, ast.ListComp) or (
                isinstance(value, ast.List) and not value.elts)
            if isinstance(target, ast.Name) and is_list:
                assert isinstance(value, ast.ListComp | ast.List)
                yield target.id, value


def _names(function: ast.FunctionDef) -> Iterator[str]:
    """Each mention of a name, as a parameter and in a declaration too."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Global | ast.Nonlocal):
            yield from node.names


def _taken(statement: ast.stmt) -> Iterator[str]:
    """Names that are the first argument of a call, or the iterable of a comprehension."""
    if isinstance(statement, ast.For) and isinstance(statement.iter, ast.Name):
        yield statement.iter.id
    for node in _outside_scopes(statement) if isinstance(statement, _SIMPLE) else ():
        first: ast.expr | None = None
        if isinstance(node, ast.Call) and node.args:
            first = node.args[0]
        elif isinstance(node, ast.ListComp):
            first = node.generators[0].iter if len(node.generators) == 1 and (
                not node.generators[0].ifs) else None
        if isinstance(first, ast.Name):
            yield first.id


def _appended(loop: ast.For) -> Iterator[str]:
    """Names of lists that the loop's body appends to."""
    for node in _outside_scopes(loop):
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and (
                call.func.attr == "append" and isinstance(call.func.value, ast.Name)):
            yield call.func.value.id


def _outside_scopes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that are run as often as the statement is, in its own scope."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, SCOPES):
            continue
        if not isinstance(child, COMPREHENSIONS):
            yield from _outside_scopes(child)
            continue
        yield child
        yield from _outside_scopes(child.generators[0].iter)
