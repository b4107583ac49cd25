"""Control flow of syntax trees: blocks of statements, names read, and liveness."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (*FUNCTIONS, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.While)
# Fields of syntax trees that hold contexts, operators or no nodes.
_NO_NODES = frozenset({"ctx", "op", "ops", "id", "attr", "type_comment", "conversion", "level"})


def blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    """The statement lists directly inside a statement (none for definitions)."""
    if isinstance(node, SCOPES):
        return []
    bodies = [getattr(node, field, []) for field in ("body", "orelse", "finalbody")]
    parts = [*getattr(node, "handlers", []), *getattr(node, "cases", [])]
    return [b for b in [*bodies, *(part.body for part in parts)] if b]


def children(node: ast.AST) -> list[ast.AST]:
    """The children of a node but contexts and operators, which are half of a tree: half of
    the time of `ast.iter_child_nodes`."""
    found: list[ast.AST] = []
    for field in node._fields:
        if field not in _NO_NODES:
            value = getattr(node, field, None)
            if isinstance(value, ast.AST):
                found.append(value)
            elif type(value) is list:
                found += [x for x in value if isinstance(x, ast.AST)]
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """The node and all `children`, theirs, and so on."""
    found = [node]
    for current in found:
        found += children(current)
    return found


def walk_scope(node: ast.AST) -> Iterator[ast.AST]:
    """The node and its descendants in the same scope."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if not isinstance(current, SCOPES) or current is node:
            stack += children(current)


# ----------------------------------------------------------------------------------------- names


def loaded_names(node: ast.AST | None) -> set[str]:
    """Every name read below a node, nested scopes included; ``x += 1`` reads ``x``."""
    if node is None:
        return set()
    nodes = walk(node)
    names = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store)}
    return names | {n.target.id for n in nodes if isinstance(n, ast.AugAssign)
                    and isinstance(n.target, ast.Name)}


def captured_names(body: Iterable[ast.stmt]) -> set[str]:
    """Names that functions defined in the statements read; live everywhere."""
    names: set[str] = set()
    for statement in body:
        for node in walk(statement):
            if isinstance(node, (*SCOPES, ast.GeneratorExp)):
                names |= loaded_names(node)
    return names


# -------------------------------------------------------------------------------------- liveness


class BoundNames(Protocol):
    """`StatementFacts`, as far as liveness needs it."""

    def bound_names(self, nodes: Iterable[ast.AST]) -> dict[str, None]: ...


class Liveness:
    """Live names, by backward analysis.

    ``after[node]``: names live after the statement.  ``elsewhere[node]``: those live where a
    ``break`` or ``continue`` in its place would lead.
    """

    def __init__(self, body: Sequence[ast.stmt], facts: BoundNames) -> None:
        self.facts = facts
        self.after: dict[ast.stmt, set[str]] = {}
        self.elsewhere: dict[ast.stmt, set[str]] = {}
        self._always = captured_names(body)
        self._block(body, set(), set(), set())

    def _block(
        self, body: Sequence[ast.stmt], live: set[str], on_break: set[str], on_continue: set[str]
    ) -> set[str]:
        for node in reversed(body):
            live = self._statement(node, live, on_break, on_continue)
        return live

    def _statement(
        self, node: ast.stmt, live: set[str], on_break: set[str], on_continue: set[str]
    ) -> set[str]:
        self._note(node, live)
        self.elsewhere[node] = self.elsewhere.get(node, set()) | on_break | on_continue
        if isinstance(node, ast.Return):
            return loaded_names(node)
        if isinstance(node, ast.Break | ast.Continue):
            return on_break if isinstance(node, ast.Break) else on_continue
        if isinstance(node, ast.If):
            parts = [self._block(b, live, on_break, on_continue) for b in (node.body, node.orelse)]
            return parts[0] | parts[1] | loaded_names(node.test)
        if isinstance(node, LOOPS):
            return self._loop(node, live, on_break, on_continue)
        if blocks(node):
            return self._compound(node, live, on_break, on_continue)
        return (live - set(self._only_bound(node))) | loaded_names(node)

    def _note(self, node: ast.stmt, live: set[str]) -> None:
        self.after[node] = self.after.get(node, set()) | live | self._always

    def _loop(
        self, node: ast.For | ast.While, live: set[str], on_break: set[str],
        on_continue: set[str],
    ) -> set[str]:
        after = self._block(node.orelse, live, on_break, on_continue)
        self._note(node, live | after)
        start = loaded_names(node.test) if isinstance(node, ast.While) else set()
        head = after | start
        for _ in range(2):  # the second time with what the next iteration reads
            start = self._block(node.body, head, live, head)
            if isinstance(node, ast.For):
                bound = self.facts.bound_names([node.target])
                start = start - set(bound) | loaded_names(node.target)
            head = head | start
        return head | (loaded_names(node.iter) if isinstance(node, ast.For) else set())

    def _compound(
        self, node: ast.stmt, live: set[str], on_break: set[str], on_continue: set[str]
    ) -> set[str]:
        """``try``, ``with``, ``match``: any block may run, in part."""
        needed = live | loaded_names(node)
        for block in blocks(node):
            needed |= self._block(block, needed, on_break, on_continue)
        return needed

    def _only_bound(self, node: ast.stmt) -> dict[str, None]:
        """Names a simple statement binds without reading them."""
        if isinstance(node, ast.AugAssign):
            return {}
        return self.facts.bound_names([node])
