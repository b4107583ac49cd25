"""Rewrites ``match`` over values into ``if``, which can become a branch of the graph."""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator
from typing import Any

SUBJECT = "_fusec_subject_"


class Matches(ast.NodeTransformer):
    """Rewrites every ``match`` whose patterns are values, ``_``, classes of which no attribute is
    asked, or alternatives of these.

    Patterns that unpack the subject stay, but for the classes in them.
    """

    def __init__(self) -> None:
        self.count = 0

    def visit_Match(self, node: ast.Match) -> Any:
        self.generic_visit(node)
        if not all(_is_of_values(case.pattern) for case in node.cases):
            return self._unpacked(node)
        self.count += 1
        name = f"{SUBJECT}{self.count}"
        store = ast.copy_location(ast.Name(name, ast.Store()), node.subject)
        subject = ast.copy_location(ast.Assign([store], node.subject), node)
        return [subject, *_chain(name, node.cases)]

    def _unpacked(self, node: ast.Match) -> list[ast.stmt]:
        """The statement, its cases without classes, after what its flags are at first."""
        cases, first = [], list[ast.stmt]()
        for case in node.cases:
            alternatives = list(_without_alternatives(case))
            flag = None
            if case.guard is not None and len(alternatives) > 1:
                flag = f"{SUBJECT}taken_{self.count + 1}"  # no name that a pattern binds
                first.append(_set_to_false(flag, node.subject))
            for each in alternatives:
                self.count += 1
                _ClassesAsked(f"{SUBJECT}{self.count}_", flag).change(each)
            cases += alternatives
        node.cases = cases
        return [*first, node]


def _set_to_false(name: str, like: ast.expr) -> ast.Assign:
    store, value = ast.Name(name, ast.Store()), ast.Constant(value=False)
    return ast.copy_location(ast.Assign(
        [ast.copy_location(store, like)], ast.copy_location(value, like)), like)


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


class _ClassesAsked(ast.NodeTransformer):
    """Patterns that unpack, whose classes the guard asks for: ``case (C(), y)`` is
    ``case (a, b) if isinstance(a, C) and [y := b]``.

    Python's own ``match`` does not know what stands for a number from an array, and a class such as
    ``Iterable`` looks for methods.  Names are bound where all of it matches.
    """

    def __init__(self, prefix: str, flag: str | None) -> None:
        self.prefix = prefix
        self.flag = flag  # of alternatives of one case: whether one has been taken
        self.tests: list[ast.expr] = []
        self.names: dict[str, str] = {}  # what Python's match binds, by the program's name

    def change(self, case: ast.match_case) -> None:
        if _asks_classes(case.pattern):
            case.pattern = self.visit(case.pattern)
        is_first, taken = [], list[ast.expr]()
        if self.flag is not None:
            is_first = [ast.UnaryOp(ast.Not(), ast.Name(self.flag, ast.Load()))]
            taken = [ast.NamedExpr(ast.Name(self.flag, ast.Store()), ast.Constant(True))]
        binds = [ast.NamedExpr(ast.Name(name, ast.Store()), ast.Name(bound, ast.Load()))
                 for name, bound in self.names.items()]
        bound = [ast.List(list[ast.expr](binds), ast.Load())] if binds else []
        guard = [] if case.guard is None else [case.guard]
        every = [*is_first, *self.tests, *bound, *taken, *guard]
        if not every:
            return
        case.guard = every[0] if len(every) == 1 else ast.BoolOp(ast.And(), every)
        for node in ast.walk(case.guard):
            if isinstance(node, ast.expr) and not hasattr(node, "lineno"):
                ast.copy_location(node, case.pattern)

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.MatchOr | ast.MatchClass) and _is_of_values(node):
            return self._captured(node) if _asks_classes(node) else node
        return super().visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> ast.MatchAs:
        self.generic_visit(node)
        node.name = self._renamed(node.name)
        return node

    def visit_MatchStar(self, node: ast.MatchStar) -> ast.MatchStar:
        node.name = self._renamed(node.name)
        return node

    def visit_MatchMapping(self, node: ast.MatchMapping) -> ast.MatchMapping:
        self.generic_visit(node)
        node.rest = self._renamed(node.rest)
        return node

    def _captured(self, node: ast.pattern) -> ast.MatchAs:
        name = f"{self.prefix}{len(self.tests)}"
        self.tests.append(_pattern_test(name, node) or ast.Constant(True))
        return ast.copy_location(ast.MatchAs(None, name), node)

    def _renamed(self, name: str | None) -> str | None:
        if name is None:
            return None
        return self.names.setdefault(name, f"{self.prefix}{name}")


def _without_alternatives(case: ast.match_case) -> Iterator[ast.match_case]:
    """A case for each of the alternatives that unpack and ask for classes, in their order."""
    found = next((node for node in ast.walk(case.pattern) if isinstance(node, ast.MatchOr)
                  and not _is_of_values(node) and _asks_classes(node)), None)
    for alternative in found.patterns if found is not None else ():
        chosen = copy.deepcopy(case, {id(found): copy.deepcopy(alternative)})
        yield from _without_alternatives(chosen)
    if found is None:
        yield case


def _asks_classes(pattern: ast.pattern) -> bool:
    """Whether the pattern has a class of which nothing is asked and that is not of ``builtins``."""
    return any(
        isinstance(node, ast.MatchClass) and not node.patterns and not node.kwd_patterns and not (
            isinstance(node.cls, ast.Name) and node.cls.id in vars(builtins))
        for node in ast.walk(pattern))
