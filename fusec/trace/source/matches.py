"""Rewrites ``match`` over values into ``if``, which can become a branch of the graph."""

from __future__ import annotations

import ast
from typing import Any

SUBJECT = "_fusec_subject_"


class Matches(ast.NodeTransformer):
    """Rewrites every ``match`` whose patterns are values, ``_``, classes of which no attribute is
    asked, or alternatives of these.

    Patterns that unpack the subject stay as they are.
    """

    def __init__(self) -> None:
        self.count = 0

    def visit_Match(self, node: ast.Match) -> Any:
        self.generic_visit(node)
        if not all(_is_of_values(case.pattern) for case in node.cases):
            return node
        self.count += 1
        name = f"{SUBJECT}{self.count}"
        store = ast.copy_location(ast.Name(name, ast.Store()), node.subject)
        subject = ast.copy_location(ast.Assign([store], node.subject), node)
        return [subject, *_chain(name, node.cases)]


def _is_of_values(pattern: ast.pattern) -> bool:
    if isinstance(pattern, ast.MatchOr):
        return all(map(_is_of_values, pattern.patterns))
    if isinstance(pattern, ast.MatchClass):
        return not pattern.patterns and not pattern.kwd_patterns
    return isinstance(pattern, ast.MatchValue | ast.MatchSingleton) or (
        isinstance(pattern, ast.MatchAs) and pattern.name is None)


def _chain(name: str, cases: list[ast.match_case]) -> list[ast.stmt]:
    """``if first: … else: (the rest)``."""
    if not cases:
        return []
    case, *rest = cases
    tests = [t for t in (_pattern_test(name, case.pattern), case.guard) if t is not None]
    if not tests:
        return case.body
    test = tests[0] if len(tests) == 1 else ast.copy_location(
        ast.BoolOp(ast.And(), tests), tests[0])
    return [ast.copy_location(ast.If(test, case.body, _chain(name, rest)), test)]


def _pattern_test(name: str, pattern: ast.pattern) -> ast.expr | None:
    """The test whether the subject matches; None for a pattern that always does."""
    if isinstance(pattern, ast.MatchOr):
        tests = [_pattern_test(name, each) for each in pattern.patterns]
        refutable = [t for t in tests if t is not None]
        either: ast.expr = ast.BoolOp(ast.Or(), refutable)
        return None if len(refutable) < len(tests) else ast.copy_location(either, pattern)
    if isinstance(pattern, ast.MatchValue):
        return _comparison(name, ast.Eq(), pattern.value, pattern)
    if isinstance(pattern, ast.MatchClass):
        asked = [ast.Name("isinstance", ast.Load()), ast.Name(name, ast.Load())]
        function, subject = (ast.copy_location(x, pattern) for x in asked)
        return ast.copy_location(ast.Call(function, [subject, pattern.cls], []), pattern)
    if isinstance(pattern, ast.MatchSingleton):
        value = ast.copy_location(ast.Constant(pattern.value), pattern)
        return _comparison(name, ast.Is(), value, pattern)
    return None


def _comparison(name: str, op: ast.cmpop, value: ast.expr, like: ast.pattern) -> ast.expr:
    subject = ast.copy_location(ast.Name(name, ast.Load()), like)
    return ast.copy_location(ast.Compare(subject, [op], [value]), like)
