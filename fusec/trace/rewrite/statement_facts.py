"""Facts about statements: their exits, the names they bind, and which must stay Python's."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from .flow import COMPREHENSIONS, LOOPS, SCOPES, blocks, children
from .transformer import looks_at_frame

_EXITS = {ast.Return: "return", ast.Break: "break", ast.Continue: "continue"}
_NOTHING: frozenset[str] = frozenset()


class StatementFacts:
    """Facts about statements before they are rewritten, computed once for each: they are needed at
    every level of nesting, and a chain of ``elif`` is as deep as it is long."""

    def __init__(self) -> None:
        self._exits: dict[ast.stmt, frozenset[str]] = {}
        self._leaves: dict[ast.If, bool] = {}
        self._python: dict[ast.stmt, bool] = {}
        self._bound: dict[ast.stmt, dict[str, None]] = {}

    # -- exits ------------------------------------------------------------------------------------

    def exits(self, body: Iterable[ast.stmt]) -> frozenset[str]:
        """How control may leave these statements early: ``return``, ``break``, ``continue``."""
        return _NOTHING.union(*map(self._exits_of, body))

    def _exits_of(self, node: ast.stmt) -> frozenset[str]:
        if node not in self._exits:
            self._exits[node] = self._compute_exits(node)
        return self._exits[node]

    def _compute_exits(self, node: ast.stmt) -> frozenset[str]:
        if type(node) in _EXITS:
            return frozenset([_EXITS[type(node)]])
        if isinstance(node, LOOPS):
            return (self.exits(node.body) & {"return"}) | self.exits(node.orelse)
        return _NOTHING.union(*map(self.exits, blocks(node)))

    def always_exits(self, body: Sequence[ast.stmt]) -> bool:
        """Whether control never falls off the end of these statements."""
        return any(map(self._always_leaves, body))

    def _always_leaves(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.Return | ast.Break | ast.Continue | ast.Raise):
            return True
        if not isinstance(node, ast.If):
            return self.is_endless(node)
        if node not in self._leaves:
            self._leaves[node] = self.always_exits(node.body) and self.always_exits(node.orelse)
        return self._leaves[node]

    def is_endless(self, node: ast.stmt) -> bool:
        """``while True`` that only a ``return`` or an exception leaves."""
        return isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and (
            bool(node.test.value) and "break" not in self.exits(node.body))

    # -- Python's own -----------------------------------------------------------------------------

    def stays_python(self, node: ast.stmt) -> bool:
        """Whether a branch or loop must run as it is: an exit leaves a ``finally``, a call looks at
        its frame, there is a ``yield``, or a name is declared global or nonlocal."""
        if node not in self._python:
            self._python[node] = self._must_stay(node)
        return self._python[node]

    def _must_stay(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.Global | ast.Nonlocal) or type(node).__name__ == "TryStar":
            return True
        if isinstance(node, ast.Try) and self.exits(node.finalbody):
            return True
        return not isinstance(node, SCOPES) and any(
            map(self._holds_what_stays, ast.iter_child_nodes(node)))

    def _holds_what_stays(self, node: ast.AST) -> bool:
        if isinstance(node, ast.stmt):
            return self.stays_python(node)
        if isinstance(node, ast.Yield | ast.YieldFrom) or looks_at_frame(node):
            return True
        return not isinstance(node, SCOPES) and any(
            map(self._holds_what_stays, ast.iter_child_nodes(node)))

    # -- names ------------------------------------------------------------------------------------

    def bound_names(self, nodes: Iterable[ast.AST]) -> dict[str, None]:
        """Names that these statements bind or delete in their own scope, in order."""
        names: dict[str, None] = {}
        for node in nodes:
            self._add_names(node, names, comprehension=False)
        return names

    def variables(self, node: ast.FunctionDef) -> set[str]:
        """The parameters of a function, and the names that it binds."""
        args = node.args
        named = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        return {a.arg for a in named if a is not None} | {*self.bound_names(node.body)}

    def _add_names(self, node: ast.AST, names: dict[str, None], comprehension: bool) -> None:
        if not isinstance(node, ast.stmt):
            self._add_names_inside(node, names, comprehension)
            return
        if node not in self._bound:
            bound: dict[str, None] = {}
            self._add_names_inside(node, bound, comprehension=False)
            self._bound[node] = bound
        names.update(self._bound[node])

    def _add_names_inside(self, node: ast.AST, names: dict[str, None], comprehension: bool) -> None:
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load) and not comprehension:
                names[node.id] = None
            return
        if isinstance(node, SCOPES):
            if not isinstance(node, ast.Lambda):
                names[node.name] = None
            return
        if isinstance(node, ast.NamedExpr):  # binds outside a comprehension
            names[node.target.id] = None
            self._add_names(node.value, names, comprehension)
            return
        if isinstance(node, ast.ExceptHandler) and node.name:
            names[node.name] = None
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.update((a.asname or a.name.partition(".")[0], None) for a in node.names)
        if isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            names[node.name] = None
        if isinstance(node, ast.MatchMapping) and node.rest:
            names[node.rest] = None
        inner = comprehension or isinstance(node, COMPREHENSIONS)
        for child in children(node):
            self._add_names(child, names, inner)
