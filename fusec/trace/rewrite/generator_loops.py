"""Rewrites ``for v in (f(t) for t in x if test)`` into the loop over ``x``, which can be a loop of
the graph: an item is computed when the loop asks for it, so the order of all steps is Python's."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from .flow import COMPREHENSIONS, LOOPS, SCOPES, blocks, walk, walk_scope


class GeneratorLoops(ast.NodeTransformer):
    """Rewrites every such loop of a function, whose tree is ``root``.

    The variables of a generator are its own: they get other names where the function has them too.
    """

    def __init__(self, root: ast.AST) -> None:
        super().__init__()
        self.root = root
        self.in_class_bodies: set[ast.AST] = set()  # whose names a generator does not see

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.in_class_bodies.update(n for n in walk_scope(node) if isinstance(n, ast.For))
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        items = node.iter
        if not isinstance(items, ast.GeneratorExp) or node in self.in_class_bodies:
            return node
        if not _is_plain(items) or (len(items.generators) > 1 and _breaks(node.body)) or (
                not self._has_own_names(items)):
            return node
        head, *others = items.generators
        body: list[ast.stmt] = [
            ast.copy_location(ast.Assign([node.target], items.elt), items.elt), *node.body]
        for clause in reversed(others):
            loop = ast.For(clause.target, clause.iter, _tested(clause, body), [])
            body = [ast.copy_location(loop, clause.iter)]
        node.target, node.iter, node.body = head.target, head.iter, _tested(head, body)
        return node

    def _has_own_names(self, items: ast.GeneratorExp) -> bool:
        """Whether the generator's variables have names that nothing else in the function has, or
        could be given such."""
        inside = _inside(items)
        of_generator = set(map(id, inside))
        own = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        taken = _names(n for n in walk(self.root) if id(n) not in of_generator)
        if own & taken and any(isinstance(n, (*SCOPES, *COMPREHENSIONS)) for n in inside):
            return False
        new = {name: _free(name, taken | own) for name in own & taken}
        for n in inside:
            if isinstance(n, ast.Name):
                n.id = new.get(n.id, n.id)
        return True


def _inside(items: ast.GeneratorExp) -> list[ast.AST]:
    """The nodes of the generator's own scope: all but its first iterable."""
    first, *others = items.generators
    parts = [items.elt, first.target, *first.ifs, *others]
    return [n for part in parts for n in walk(part)]


def _is_plain(items: ast.GeneratorExp) -> bool:
    """Whether it awaits nothing, binds no name of the function, and cannot end by a ``next`` of its
    own, which Python makes a RuntimeError."""
    return not any(clause.is_async for clause in items.generators) and not any(
        isinstance(n, (ast.NamedExpr, ast.Await)) or (isinstance(n, ast.Name) and n.id == "next")
        for n in _inside(items))


def _breaks(body: Iterable[ast.stmt]) -> bool:
    """Whether a ``break`` in these statements leaves the loop around them."""
    for node in body:
        if isinstance(node, ast.Break):
            return True
        inner = [node.orelse] if isinstance(node, LOOPS) else blocks(node)
        if any(map(_breaks, inner)):
            return True
    return False


def _tested(clause: ast.comprehension, body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements where the conditions of the clause hold."""
    for test in reversed(clause.ifs):
        body = [ast.copy_location(ast.If(test, body, []), test)]
    return body


def _names(nodes: Iterable[Any]) -> set[str]:
    """Every name that the nodes bind, read or declare."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            found.update(node.names)
        elif isinstance(node, _NAMED):
            name = getattr(node, "asname", None) or getattr(node, "name", None) or ""
            found.add(name.partition(".")[0])
    return found


_NAMED = (*SCOPES, ast.ExceptHandler, ast.alias, ast.MatchAs, ast.MatchStar)


def _free(name: str, taken: set[str]) -> str:
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    taken.add(f"{name}_{number}")
    return f"{name}_{number}"
