"""A failing program made short: statements, expressions, arguments and values taken away in turn.

Delta debugging: a change stays when NumPy still takes the program and fusec still fails in the same
way.  ``fails(program)`` gives the failure's text, or None.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .program import Program, Statement, crashes_numpy
from .values import Argument

Fails = Callable[[Program], str | None]


def shrink(program: Program, fails: Fails, seconds: float = 20.0) -> Program:
    """The shortest program found in that time that fails as ``program`` does."""
    first, end = fails(program), time.monotonic() + seconds
    if first is None:
        return program
    kind = kind_of(first)
    changed = True
    while changed:
        changed = False
        for candidate in _candidates(program):
            if time.monotonic() > end:
                return program
            if any(map(crashes_numpy, candidate.statements)):
                continue
            text = fails(candidate)
            if text is not None and kind_of(text) == kind:
                program, changed = candidate, True
                break
    return program


def kind_of(text: str) -> str:
    """The kind that makes two failures the same: the text without numbers, names and shapes."""
    plain = re.sub(r"\(.*?\)|\[.*?\]|[xt]\d+|result \d+|argument \d+.*?call", "", text)
    return " ".join(re.findall(r"[A-Za-z]{3,}", plain)[:6])


def _candidates(program: Program) -> Iterator[Program]:
    for number in reversed(range(len(program.statements))):
        rest = program.without(number)
        yield rest if rest.results else replace(rest, results=("x0",))
    yield from _without_copies(program)
    if len(program.results) > 1:
        for name in program.results:
            yield replace(program, results=(name,))
    yield from _fewer_arguments(program)
    if program.fp != "strict":
        yield replace(program, fp="strict")
    for number, statement in enumerate(program.statements):
        for simpler in _simpler_statements(statement):
            changed = (*program.statements[:number], simpler, *program.statements[number + 1:])
            yield replace(program, statements=changed)
    for number, argument in enumerate(program.arguments):
        for plain in _simpler_arguments(program, number, argument):
            changed = (*program.arguments[:number], plain, *program.arguments[number + 1:])
            yield replace(program, arguments=changed)


def _without_copies(program: Program) -> Iterator[Program]:
    """A statement that only names a variable again goes; its target is that variable."""
    for number, statement in enumerate(program.statements):
        if not re.fullmatch(r"[xt]\d+", statement.text) or not statement.target:
            continue

        def renamed(text: str, s: Statement = statement) -> str:
            return re.sub(rf"\b{s.target}\b", s.text, text)

        rest = program.statements[:number] + program.statements[number + 1:]
        yield replace(program, statements=tuple(replace(s, text=renamed(s.text)) for s in rest),
                      results=tuple(dict.fromkeys(map(renamed, program.results))))


# ------------------------------------------------------------------------------------ statements


def _simpler_statements(statement: Statement) -> Iterator[Statement]:
    """The statement less one argument of a call, or with a part in place of the whole."""
    tree = ast.parse(statement.text)
    for node in ast.walk(tree):
        for change, undo in _cuts(node):
            change()
            text = ast.unparse(tree)
            undo()
            if len(text) < len(statement.text):
                yield replace(statement, text=text)


def _cuts(node: ast.AST) -> Iterator[tuple[Callable[[], Any], Callable[[], Any]]]:
    for name, value in ast.iter_fields(node):
        if isinstance(value, list) and name in ("args", "keywords", "elts"):
            for i, item in enumerate(list(value)):
                yield (lambda v=value, i=i: v.pop(i)), (lambda v=value, i=i, x=item: v.insert(i, x))
        if isinstance(value, ast.expr) and isinstance(node, ast.Assign | ast.Expr | ast.AugAssign):
            for part in _parts(value):
                yield (lambda n=node, f=name, p=part: setattr(n, f, p)), (
                    lambda n=node, f=name, v=value: setattr(n, f, v))


def _parts(value: ast.expr) -> list[ast.expr]:
    return [part for part in ast.walk(value) if isinstance(part, ast.expr) and part is not value
            and not isinstance(part, ast.Attribute)
            and not (isinstance(part, ast.Constant) and isinstance(part.value, str))]


# ------------------------------------------------------------------------------------- arguments


def _fewer_arguments(program: Program) -> Iterator[Program]:
    """Without an argument that nothing reads; the later ones move up."""
    used = {n for s in program.statements for n in s.reads} | set(program.results)
    aliased = any(a.kind == "alias" for a in program.arguments)
    for i in range(len(program.arguments)):
        if f"x{i}" in used or (i == 0 and aliased) or len(program.arguments) == 1:
            continue

        def renamed(text: str, i: int = i) -> str:
            return re.sub(r"\bx(\d+)\b", lambda m: f"x{int(m[1]) - (int(m[1]) > i)}", text)

        statements = tuple(replace(s, text=renamed(s.text)) for s in program.statements)
        yield replace(program, arguments=program.arguments[:i] + program.arguments[i + 1:],
                      statements=statements, results=tuple(map(renamed, program.results)))


def _simpler_arguments(
    program: Program, number: int, argument: Argument
) -> Iterator[Argument]:
    if argument.kind != "array":
        return
    with np.errstate(all="ignore"):
        array = program.make()[number]
    if argument.view:
        yield _plain(array)
    for axis in range(array.ndim):
        if array.shape[axis] > 1:
            yield _plain(np.take(array, range(array.shape[axis] // 2), axis))
            yield _plain(np.take(array, range(array.shape[axis] - 1), axis))
    if array.ndim > 1 and array.shape[0]:
        yield _plain(array[0])
    values = list(argument.values)
    for i, value in enumerate(values[:24]):
        for other in (1, 2):
            if value not in (1, 2):
                yield replace(argument, values=(*values[:i], type(value)(other), *values[i + 1:]))


def _plain(array: np.ndarray) -> Argument:
    dtype = "?" if array.dtype == bool else array.dtype.str[1:]
    return Argument("array", dtype, tuple(array.ravel().tolist()), array.shape)
