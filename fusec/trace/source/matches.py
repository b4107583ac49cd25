"""``match`` over values as ``if``: what data decides can then be a branch of the graph."""

from __future__ import annotations

import ast
from typing import Any

SUBJECT = "_fusec_subject_"


class Matches(ast.NodeTransformer):
    """Rewrites every ``match`` whose patterns are values, alternatives of values, or ``_``.

    Others take apart what they are given, and stay.
    """

    def __init__(self) -> None:
        self.count = 0

    def visit_Match(self, node: ast.Match) -> Any:
        self.generic_visit(node)
        if not all(_is_plain(case.pattern) for case in node.cases):
            return node
        self.count += 1
        name = f"{SUBJECT}{self.count}"
        store = ast.copy_location(ast.Name(name, ast.Store()), node.subject)
        subject = ast.copy_location(ast.Assign([store], node.subject), node)
        return [subject, *_chain(name, node.cases)]


def _is_plain(pattern: ast.pattern) -> bool:
    if isinstance(pattern, ast.MatchOr):
        return all(map(_is_plain, pattern.patterns))
    return isinstance(pattern, ast.MatchValue | ast.MatchSingleton) or (
        isinstance(pattern, ast.MatchAs) and pattern.name is None)


def _chain(name: str, cases: list[ast.match_case]) -> list[ast.stmt]:
    """The first case whose test holds, or the rest."""
    if not cases:
        return []
    case, *rest = cases
    tests = [t for t in (_test(name, case.pattern), case.guard) if t is not None]
    if not tests:
        return case.body
    test = tests[0] if len(tests) == 1 else ast.copy_location(
        ast.BoolOp(ast.And(), tests), tests[0])
    return [ast.copy_location(ast.If(test, case.body, _chain(name, rest)), test)]


def _test(name: str, pattern: ast.pattern) -> ast.expr | None:
    """Whether the subject matches; None where everything does."""
    if isinstance(pattern, ast.MatchOr):
        tests = [_test(name, each) for each in pattern.patterns]
        found = [t for t in tests if t is not None]
        made: ast.expr = ast.BoolOp(ast.Or(), found)
        return None if len(found) < len(tests) else ast.copy_location(made, pattern)
    if isinstance(pattern, ast.MatchValue):
        return _compared(name, ast.Eq(), pattern.value, pattern)
    if isinstance(pattern, ast.MatchSingleton):
        value = ast.copy_location(ast.Constant(pattern.value), pattern)
        return _compared(name, ast.Is(), value, pattern)
    return None


def _compared(name: str, op: ast.cmpop, value: ast.expr, like: ast.pattern) -> ast.expr:
    subject = ast.copy_location(ast.Name(name, ast.Load()), like)
    return ast.copy_location(ast.Compare(subject, [op], [value]), like)


__all__ = ["Matches"]
