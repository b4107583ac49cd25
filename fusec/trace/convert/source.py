"""Finds the syntax tree of a function, a method or a lambda from its code object.

Columns and lines of the tree are the user's.  A function is cut out of its file by indentation and
parsed alone, so the cost does not grow with the file; what cannot be cut out is looked up in the
tree of the whole file.  The tree is then compiled as it stands and compared with the code object:
source that was edited after the import is refused, not silently used.
"""

from __future__ import annotations
import __future__

import ast
import dis
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_
from types import CodeType
from typing import Any

from .errors import SourceUnavailable

FunctionNode = ast.FunctionDef | ast.Lambda
HOOKS_NAME = "__fusec__"

_FACTORY = "__fusec_factory__"
_FUTURES = (getattr(__future__, name) for name in __future__.all_feature_names)
_FUTURE_FLAGS = reduce(or_, (feature.compiler_flag for feature in _FUTURES))


@dataclass(slots=True)
class Source:
    """``node`` is the function's tree, ``lines`` its whole file, ``class_name`` the class whose
    private names (``__x``) it uses, or "" outside a class."""

    node: FunctionNode
    code: CodeType
    lines: list[str]
    class_name: str

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        """The short qualified name: ``Model.step``, ``inner``."""
        return self.code.co_qualname.rpartition("<locals>.")[2]


def find_source(code: CodeType, module_globals: dict[str, Any] | None = None) -> Source:
    """The tree of the function that ``code`` was compiled from.

    ``module_globals`` let `linecache` ask the module's loader (zip files).  Raises
    ``SourceUnavailable`` naming the reason.
    """
    for _ in range(2):
        source = _find(code, module_globals)
        if source is not None and is_current(source):
            return source
        linecache.checkcache(code.co_filename)  # its copy may be older than the import
    raise SourceUnavailable(
        f"the source of {code.co_qualname!r} at {code.co_filename}:{code.co_firstlineno} is not "
        f"what was compiled: the file has changed since it was imported, or an import hook "
        f"rewrote it",
        cure="reload the module or restart Python",
    )


def _find(code: CodeType, module_globals: dict[str, Any] | None) -> Source | None:
    lines = linecache.getlines(code.co_filename, module_globals)
    if not lines:
        raise _missing(code)
    name = code.co_name
    node = _find_lambda(lines, code) if name == "<lambda>" else _find_def(lines, code)
    return None if node is None else Source(node, code, lines, class_of(code.co_qualname))


def _missing(code: CodeType) -> SourceUnavailable:
    name, file = code.co_qualname, code.co_filename
    if file.startswith("<"):
        return SourceUnavailable(
            f"{name!r} has no source: its code was compiled from text ({file}), as by exec(), "
            f"`python -c`, standard input or a code generator",
            cure="put the function in a file",
        )
    return SourceUnavailable(
        f"{name!r} has no source: the file {file!r} cannot be read",
        cure="keep the .py file beside the compiled one",
    )


# -- def ------------------------------------------------------------------------------------------


def _find_def(lines: list[str], code: CodeType) -> ast.FunctionDef | None:
    first = code.co_firstlineno
    tree = _parse_lines(lines, first, _end_of_block(lines, code)) or _parse_file(lines)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            start = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            if start == first:
                return node
    return None


def _end_of_block(lines: list[str], code: CodeType) -> int:
    """The last line (from 1) of a def: what its code reaches, then all that is indented deeper.

    Code the compiler dropped has no positions but still decides which names are local.
    """
    base = _indent(lines[code.co_firstlineno - 1]) if code.co_firstlineno <= len(lines) else 0
    end = min(_last_line(code), len(lines))
    while end < len(lines):
        text = lines[end].strip()
        if text and not text.startswith("#") and _indent(lines[end]) <= base:
            break
        end += 1
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _last_line(code: CodeType) -> int:
    ends = (end or start or 0 for start, end, _, _ in code.co_positions())
    nested = (_last_line(c) for c in code.co_consts if isinstance(c, CodeType))
    return max(code.co_firstlineno, *ends, *nested)


def _parse_lines(lines: list[str], first: int, last: int) -> ast.Module | None:
    """Lines ``first``…``last`` parsed at their own place; ``None`` if they do not stand alone.

    Blank lines in front keep the line numbers; ``if 1:`` lets an indented block keep its columns.
    """
    block = lines[first - 1 : last]
    if block and _indent(block[0]):
        if first == 1:
            return None
        return _parse("\n" * (first - 2) + "if 1:\n" + "".join(block))
    return _parse("\n" * (first - 1) + "".join(block))


def _parse_file(lines: list[str]) -> ast.Module | None:
    return _parse("".join(lines))


def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except SyntaxError:  # not a whole statement: the caller looks further
        return None


# -- lambda ---------------------------------------------------------------------------------------


def _find_lambda(lines: list[str], code: CodeType) -> ast.Lambda | None:
    first, last = code.co_firstlineno, _last_line(code)
    tree = _parse_lines(lines, first, last)
    found = _lambdas_of(tree, code) if tree else []
    if not found:
        tree = _parse_file(lines)
        found = _lambdas_of(tree, code) if tree else []
    if len(found) > 1:  # no columns; lambdas that compile alike mean the same
        qualname = class_of(code.co_qualname)
        found = [n for n in found if is_current(Source(n, code, lines, qualname))]
    return found[0] if found else None


def _lambdas_of(tree: ast.Module, code: CodeType) -> list[ast.Lambda]:
    """The lambdas that may have become ``code``: one, unless columns are missing (``-X
    no_debug_ranges``; Python 3.12 has none for a lambda that returns a constant)."""
    spans = list(_spans(code))
    same = [
        node for node in ast.walk(tree)
        if isinstance(node, ast.Lambda)
        and node.lineno == code.co_firstlineno
        and _argument_names(node.args) == _code_arguments(code)
        and all(_start(node.body) <= start and end <= _end(node.body) for start, end in spans)
    ]
    if not spans or len(same) < 2:
        return same
    return [max(same, key=lambda node: _start(node.body))]  # the innermost one


def _spans(code: CodeType) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """(line, column) where each instruction begins and ends, those without columns left out."""
    for line, end_line, col, end_col in code.co_positions():
        if line is None or end_line is None or col is None or end_col is None:
            continue
        if (line, col) != (end_line, end_col):  # RESUME and the like sit at column 0, empty
            yield (line, col), (end_line, end_col)


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _argument_names(args: ast.arguments) -> list[str]:
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    rest = [a for a in (args.vararg, args.kwarg) if a]
    return [a.arg for a in (*named, *rest)]


def _code_arguments(code: CodeType) -> list[str]:
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)  # *args, **kwargs
    return list(code.co_varnames[:count])


# -- compiling a function on its own --------------------------------------------------------------


def class_of(qualname: str) -> str:
    """The innermost class of a qualified name: ``"A"`` for ``f.<locals>.A.step.<locals>.g``."""
    parts = qualname.split(".")
    for i in range(len(parts) - 2, -1, -1):
        if parts[i] != "<locals>" and parts[i + 1] != "<locals>":
            return parts[i]
    return ""


def compile_function(source: Source, extra: tuple[str, ...] = ()) -> CodeType:
    """The code of ``source.node`` with the free variables of ``source.code`` and ``extra`` ones.

    The function is compiled inside a factory whose parameters are its free variables, and inside a
    class of the right name for ``__private`` names and ``__class__``.  The factory never runs.
    """
    code, node = source.code, source.node
    free = [n for n in code.co_freevars if n != "__class__" or not source.class_name]
    free += [n for n in extra if n not in free]
    body: list[ast.stmt] = [node] if isinstance(node, ast.FunctionDef) else [_expr(node)]
    bound = node.name if isinstance(node, ast.FunctionDef) else ""
    if source.class_name:
        body = [_class(source.class_name, body, node)]
        bound = source.class_name
    if bound and bound not in free:  # else the definition would hide a global of that name
        body.insert(0, _at(ast.Global(names=[bound]), node))
    module = ast.Module(body=[_factory(free, body, node)], type_ignores=[])
    flags = code.co_flags & _FUTURE_FLAGS
    compiled = compile(module, source.file, "exec", flags, dont_inherit=True)
    return _dig(compiled, 3 if source.class_name else 2)


def _dig(module: CodeType, levels: int) -> CodeType:
    """The function's code ``levels`` below the module's.

    At each level it is the last one: those of decorators and defaults come before it.
    """
    code = module
    while levels or code.co_name.startswith("<generic parameters"):  # PEP 695's extra level
        levels -= not code.co_name.startswith("<generic parameters")
        code = [c for c in code.co_consts if isinstance(c, CodeType)][-1]
    return code


def _at(node: Any, like: ast.AST) -> Any:
    return ast.copy_location(node, like)


def _expr(node: ast.Lambda) -> ast.stmt:
    return _at(ast.Expr(value=node), node)


def _class(name: str, body: list[ast.stmt], like: ast.AST) -> ast.stmt:
    made = ast.ClassDef(name=name, bases=[], keywords=[], body=body, decorator_list=[])
    made.type_params = []  # type: ignore[attr-defined,unused-ignore]  # a field from Python 3.12 on
    return _at(made, like)


def _factory(free: list[str], body: list[ast.stmt], like: ast.AST) -> ast.stmt:
    args = ast.arguments(
        posonlyargs=[], args=[_at(ast.arg(arg=n), like) for n in free], kwonlyargs=[],
        kw_defaults=[], defaults=[],
    )
    made = ast.FunctionDef(name=_FACTORY, args=args, body=body, decorator_list=[])
    made.type_params = []  # type: ignore[attr-defined,unused-ignore]  # a field from Python 3.12 on
    return _at(made, like)


# -- is it the source of what runs? ---------------------------------------------------------------

# How a module-level import is called (``np.sin(x)``) depends on the rest of its module, and with
# it the jumps over it; all that is left out of the comparison, names are compared on their own.
_NOISE = {*dis.hasjrel, *dis.hasjabs, *dis.hasname} | {
    dis.opmap[name] for name in ("CACHE", "PUSH_NULL", "PRECALL", "CALL", "EXTENDED_ARG", "NOP")
    if name in dis.opmap
}


def is_current(source: Source) -> bool:
    """Whether the tree compiles to the code it was found for.

    A function with ``assert`` need not: pytest rewrites those in test files.
    """
    plain = compile_function(source)
    if plain.replace(co_flags=source.code.co_flags) == source.code or _same(plain, source.code):
        return True
    return _code_arguments(plain) == _code_arguments(source.code) and any(
        isinstance(n, ast.Assert) for n in ast.walk(source.node)
    )


def _same(a: CodeType, b: CodeType) -> bool:
    """Whether two codes do the same with the same names and constants."""
    tables = ("co_names", "co_varnames", "co_freevars", "co_cellvars")
    if any(getattr(a, t) != getattr(b, t) for t in tables) or _steps(a) != _steps(b):
        return False
    if len(a.co_consts) != len(b.co_consts):
        return False
    return all(map(_same_constant, a.co_consts, b.co_consts))


def _same_constant(a: Any, b: Any) -> bool:
    if isinstance(a, CodeType) and isinstance(b, CodeType):
        return _same(a, b)
    return type(a) is type(b) and (a == b or repr(a) == repr(b))


def _steps(code: CodeType) -> list[tuple[int, int]]:
    """(operation, argument) of each instruction, less the noise."""
    raw = code.co_code
    pairs = zip(raw[::2], raw[1::2], strict=True)
    return [(op, arg) for op, arg in pairs if op not in _NOISE]
