"""Rewrites ``if test: def f... else: def f...`` and what follows it: each side gets its own copy
of the rest of the function.  Where data decide the test, each copy then has one function to call,
where the rest would have one of two."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence

from .flow import loaded_names, walk

MOST_NODES = 400  # of syntax in all copies of the rest together


class DefinedInSides(ast.NodeTransformer):
    """Rewrites every such branch in the body of a function, in loops and other branches of it."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        _rewrite(node.body)
        return node


def _rewrite(block: list[ast.stmt]) -> None:
    for number, statement in enumerate(block):
        rest = block[number + 1:]
        if isinstance(statement, ast.If) and _has_choice(statement, rest):
            block[number + 1:] = []
            _continue(statement, rest)
        if isinstance(statement, ast.If):
            for side in _sides(statement):
                _rewrite(side)
        elif isinstance(statement, ast.For | ast.While):
            _rewrite(statement.body)


def _has_choice(branch: ast.If, rest: Sequence[ast.stmt]) -> bool:
    """Whether the rest reads a function that several sides define, and is short."""
    sides = [*_sides(branch)]
    defined = [name for side in sides for name in _defined(side)]
    several = {name for name in defined if defined.count(name) > 1}
    if not several or not any(several & loaded_names(x) for x in rest):
        return False
    nodes = [n for x in rest for n in walk(x)]
    return len(nodes) * len(sides) <= MOST_NODES and not any(
        isinstance(n, (ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Nonlocal, ast.Global))
        for n in nodes)


def _defined(block: Sequence[ast.stmt]) -> Iterator[str]:
    """Functions that a block defines, each once, those of branches in it among them."""
    inner = [name for x in block if isinstance(x, ast.If) for side in _sides(x)
             for name in _defined(side)]
    yield from dict.fromkeys([*(x.name for x in block if isinstance(x, ast.FunctionDef)), *inner])


def _sides(branch: ast.If) -> Iterator[list[ast.stmt]]:
    """Those of a chain of ``elif``, an ``else`` that is not there included."""
    yield branch.body
    match branch.orelse:
        case [ast.If() as other]:
            yield from _sides(other)
        case orelse:
            yield orelse


def _continue(branch: ast.If, rest: Sequence[ast.stmt]) -> None:
    branch.body += copy.deepcopy(rest)
    match branch.orelse:
        case [ast.If() as other]:
            _continue(other, rest)
        case _:
            branch.orelse += copy.deepcopy(rest)
