"""Changes of a program's syntax tree: statements taken out, parts put in place of the whole.

Every change is made on a fresh parse and gives new source, or None where nothing is left to do.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

Change = Callable[[], None]
_BLOCKS = ("body", "orelse")


def without_line(source: str, line: int) -> str | None:
    """The source less the innermost statement on a line; None when there is none."""
    tree = ast.parse(source)
    found = [place for place in _places(tree) if _covers(place, line)]
    if not found:
        return None
    _drop(*found[-1])
    return ast.unparse(tree)


def _covers(place: tuple[list[ast.stmt], int], line: int) -> bool:
    statement = place[0][place[1]]
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return False
    last = statement.body[0].lineno - 1 if isinstance(
        statement, ast.If | ast.For | ast.While) else statement.end_lineno or statement.lineno
    final = isinstance(statement, ast.Return) and len(place[0]) - 1 == place[1] and (
        statement.col_offset == 4)
    return statement.lineno <= line <= max(last, statement.lineno) and not final


def _places(tree: ast.AST) -> Iterator[tuple[list[ast.stmt], int]]:
    """Every statement as (block, position), outer ones first."""
    for node in ast.walk(tree):
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield from ((block, i) for i in range(len(block)))


def _drop(block: list[ast.stmt], position: int) -> None:
    block[position:position + 1] = [] if len(block) > 1 else [ast.Pass()]


def simpler(source: str) -> Iterator[str]:
    """Sources that are one step shorter, the largest steps first."""
    count = sum(1 for _ in _changes(ast.parse(source)))
    for number in range(count):
        tree = ast.parse(source)
        for i, change in enumerate(_changes(tree)):
            if i == number:
                change()
                break
        text = ast.unparse(ast.fix_missing_locations(tree))
        if len(text) < len(source):
            yield text


def _changes(tree: ast.AST) -> Iterator[Change]:
    for block, i in _places(tree):
        statement = block[i]
        if isinstance(statement, ast.FunctionDef | ast.Pass):
            continue
        yield lambda b=block, i=i: _drop(b, i)
        for inner in _insides(statement):
            yield lambda b=block, i=i, new=inner: b.__setitem__(slice(i, i + 1), new)
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.For | ast.While) and node.orelse:
            yield lambda n=node: n.orelse.clear()
        yield from _expression_changes(node)


def _insides(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(statement, ast.If | ast.While):
        yield statement.body
    if isinstance(statement, ast.If) and statement.orelse:
        yield statement.orelse
    if isinstance(statement, ast.For):
        first = ast.Assign([statement.target], ast.Call(
            ast.Name("next", ast.Load()), [ast.Call(
                ast.Name("iter", ast.Load()), [statement.iter], [])], []))
        yield [first, *statement.body]
        yield statement.body


def _expression_changes(node: ast.AST) -> Iterator[Change]:
    """An operand in place of an operation, 1 in place of any other number expression."""
    for name, value in ast.iter_fields(node):
        parts = value if isinstance(value, list) else [value]
        for position, part in enumerate(parts):
            if not isinstance(part, ast.expr) or name in ("targets", "target", "func"):
                continue
            for new in (*_operands(part), *_constants(part)):
                if isinstance(value, list):
                    yield lambda v=value, p=position, new=new: v.__setitem__(p, new)
                else:
                    yield lambda n=node, f=name, new=new: setattr(n, f, new)


def _operands(part: ast.expr) -> list[ast.expr]:
    if isinstance(part, ast.BinOp):
        return [part.left, part.right]
    if isinstance(part, ast.IfExp):
        return [part.body, part.orelse, part.test]
    if isinstance(part, ast.BoolOp):
        return part.values
    if isinstance(part, ast.UnaryOp):
        return [part.operand]
    if isinstance(part, ast.Call):
        return list(part.args)
    if isinstance(part, ast.Tuple) and isinstance(part.ctx, ast.Load) and len(part.elts) > 1:
        return [ast.Tuple(part.elts[:i] + part.elts[i + 1:], ast.Load())
                for i in range(len(part.elts))]
    return []


def _constants(part: ast.expr) -> list[ast.expr]:
    if isinstance(part, ast.Subscript | ast.BinOp | ast.Call):
        return [ast.Constant(1.0), ast.Constant(1)]
    if isinstance(part, ast.Compare | ast.BoolOp):
        return [ast.Constant(True), ast.Constant(False)]
    return []
