"""Which names are read on every path after a statement (very busy names, a backward analysis).

A branch that leaves such a name unbound on one side raises ``UnboundLocalError`` when that side is
taken.  For a name that only some paths read it does not: later branches often repeat its test.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .flow import FUNCTIONS, LOOPS, children
from .statement_facts import StatementFacts

_NOTHING: frozenset[str] = frozenset()
_DEFERRED = (*FUNCTIONS, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class CertainReads:
    """``after[node]``: names that every path from the statement reads before it binds them."""

    def __init__(self, body: Sequence[ast.stmt], facts: StatementFacts) -> None:
        self.facts = facts
        self.after: dict[ast.stmt, frozenset[str]] = {}
        self._block(body, _NOTHING)

    def _block(self, body: Sequence[ast.stmt], later: frozenset[str]) -> frozenset[str]:
        for node in reversed(body):
            self.after[node] = later
            later = self._statement(node, later)
        return later

    def _statement(self, node: ast.stmt, later: frozenset[str]) -> frozenset[str]:
        if isinstance(node, ast.If):
            sides = [self._block(b, later) for b in (node.body, node.orelse)]
            return (sides[0] & sides[1]) | _read(node.test)
        if isinstance(node, LOOPS):
            self._block(node.body, _NOTHING)
            self._block(node.orelse, _NOTHING)
            first = _read(node.test if isinstance(node, ast.While) else node.iter)
            if self.facts.exits([node]):
                return first
            return (later - set(self.facts.bound_names([node]))) | first
        if isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue | ast.Assert):
            return _read(node)
        if isinstance(node, ast.Try | ast.With | ast.Match) or type(node).__name__ == "TryStar":
            return _NOTHING
        return (later - set(self.facts.bound_names([node]))) | _read(node)


def _read(node: ast.AST | None) -> frozenset[str]:
    return frozenset(_reads(node)) if node is not None else _NOTHING


def _reads(node: ast.AST) -> Iterator[str]:
    """Names that evaluating ``node`` always reads; ``x += 1`` reads ``x``."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load):
            yield node.id
        return
    if isinstance(node, _DEFERRED):
        return
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
    if isinstance(node, ast.BoolOp):
        parts: Sequence[ast.AST] = node.values[:1]
    elif isinstance(node, ast.IfExp):
        parts = [node.test]
    elif isinstance(node, ast.Compare):
        parts = [node.left, node.comparators[0]]
    else:
        parts = children(node)
    for part in parts:
        yield from _reads(part)
