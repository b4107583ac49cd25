"""Finds the syntax tree of a function, a method or a lambda from its code object.

Columns and lines of the tree are the user's.  A function is cut out of its file by indentation and
parsed alone, so the cost does not grow with the file; where that fails it is looked up in the tree
of the whole file.  The tree is then compiled and compared with the code object, instruction by
instruction: source that was edited after the import is refused, not silently used.
"""

from __future__ import annotations
import __future__

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_
from types import CodeType, ModuleType
from typing import Any

from fusec.core.records import dataclass

from .decompiler.expressions import CannotDecompile
from .decompiler.regions import decompiled
from .errors import SourceUnavailable
from .lambdas import lambdas_in, lambdas_of_text
from .pytest_asserts import is_rewritten, rewritten
from .same_code import same_code
from .texts import texts_of

FunctionNode = ast.FunctionDef | ast.Lambda
HOOKS_NAME = "__fusec__"

_FACTORY = "__fusec_factory__"
_LEVELS = (-1, 0 if sys.flags.optimize else 1)  # of optimization: this process's, and the other
_FUTURES = (getattr(__future__, name) for name in __future__.all_feature_names)
_FUTURE_FLAGS = reduce(or_, (feature.compiler_flag for feature in _FUTURES))


@dataclass(slots=True)
class Source:
    """``node`` is the function's tree, ``lines`` its whole file, ``class_name`` the class whose
    private names (``__x``) it uses, or "" outside a class; ``optimize`` the level it was compiled
    at, as `compile` takes it."""

    node: FunctionNode
    code: CodeType
    lines: list[str]
    class_name: str
    optimize: int = -1

    @property
    def drops_asserts(self) -> bool:
        """Whether it was compiled without assertions, as by ``python -O``."""
        return (sys.flags.optimize if self.optimize < 0 else self.optimize) > 0

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        """The short qualified name: ``Model.step``, ``inner``."""
        return self.code.co_qualname.rpartition("<locals>.")[2]


def find_source(code: CodeType, module_globals: dict[str, Any] | None = None) -> Source:
    """The tree of the function that ``code`` was compiled from.

    Raises ``SourceUnavailable`` naming the reason.
    """
    names = module_globals or {}
    source = written_source(code, names) or _decompiled(code, names)
    if source is None:
        raise _no_source(code, names)
    return source


def written_source(code: CodeType, module_globals: dict[str, Any]) -> Source | None:
    """The source as it was written; None where no text compiles to ``code``."""
    for lines in texts_of(code, module_globals):
        for node in _candidates(lines, code):
            for level in _LEVELS:
                source = Source(node, code, lines, class_of(code.co_qualname), level)
                if is_current(source, module_globals):
                    return source
    return None


def _decompiled(code: CodeType, module_globals: dict[str, Any]) -> Source | None:
    """The source read from the bytecode; None where it does not compile to ``code`` again."""
    for joins in (True, False):
        try:
            node = decompiled(code, joins)
            source = Source(node, code, [], class_of(code.co_qualname))
            if is_current(source, module_globals):
                return source
        except (CannotDecompile, SyntaxError):  # no tree, or none that compiles
            continue
    return None


_READ = ("its bytecode has something that fusec reads from source only: match, a class, a way out "
         "of finally, or control flow that the compiler folded together",)
_EAGER = ', or run it uncompiled: fusec.jit(fallback="eager")'


def _no_source(code: CodeType, module_globals: dict[str, Any]) -> SourceUnavailable:
    name, file = code.co_qualname, code.co_filename
    if any(texts_of(code, module_globals)) and not file.startswith("<"):
        return SourceUnavailable(
            f"the source of {name!r} at {file}:{code.co_firstlineno} is not what was compiled: the "
            f"file has changed since it was imported, or an import hook rewrote it",
            cure=f"reload the module or restart Python{_EAGER}", notes=_READ,
        )
    if file.startswith("<"):
        return SourceUnavailable(
            f"{name!r} has no source: its code was compiled from text ({file}), as by exec(), "
            f"standard input or a code generator",
            cure=f"put the function in a file or in a notebook's cell{_EAGER}", notes=_READ,
        )
    return SourceUnavailable(
        f"{name!r} has no source: the file {file!r} cannot be read",
        cure=f"keep the .py file beside the compiled one{_EAGER}", notes=_READ,
    )


def _candidates(lines: list[str], code: CodeType) -> Iterator[FunctionNode]:
    """The functions in a text that ``code`` may have been compiled from: first the one at its line,
    then all others of its name, as lines may have been added above."""
    is_lambda = code.co_name == "<lambda>"
    first, last = code.co_firstlineno, _last_line(code)
    if is_lambda:
        cut = _parse_lines(lines, first, last)
        near: Iterable[FunctionNode] = _lambdas_of(lambdas_in(cut), code) if cut else []
    else:
        cut = _parse_lines(lines, first, _end_of_block(lines, code))
        near = _defs_of(cut, code, first) if cut else []
    yield from near
    if is_lambda:
        of_text = lambdas_of_text(lines, _parse_file)
        yield from _lambdas_of(of_text.starting_at(first), code)
        yield from of_text.all()
    elif (tree := _parse_file(lines)) is not None:
        yield from _defs_of(tree, code, first)
        yield from _defs_of(tree, code)


# -- def ------------------------------------------------------------------------------------------


def _defs_of(tree: ast.Module, code: CodeType, first: int = 0) -> Iterator[ast.FunctionDef]:
    """Functions with the name of ``code``; only that at line ``first``, unless it is 0."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            start = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            if first in (0, start):
                yield node


def _end_of_block(lines: list[str], code: CodeType) -> int:
    """The last line (from 1) of a def: the last one of its code, then all that is indented deeper.

    Statements that the compiler dropped have no positions, but they decide which names are local.
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
    """Lines ``first``…``last`` parsed with their positions; None if they are no whole statements.

    Blank lines in front keep the line numbers, ``if 1:`` the columns of an indented block.
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


def _lambdas_of(nodes: Iterable[ast.Lambda], code: CodeType) -> list[ast.Lambda]:
    """The lambdas that ``code`` may have been compiled from: one, unless its columns are missing
    (``-X no_debug_ranges``; in Python 3.12 also a lambda that returns a constant)."""
    spans = list(_instruction_spans(code))
    same = [
        node for node in nodes
        if node.lineno == code.co_firstlineno
        and _argument_names(node.args) == _code_arguments(code)
        and all(_start(node.body) <= start and end <= _end(node.body) for start, end in spans)
    ]
    if not spans or len(same) < 2:
        return same
    return [max(same, key=lambda node: _start(node.body))]  # the innermost one


def _instruction_spans(code: CodeType) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """(line, column) of the begin and end of each instruction that has columns."""
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
    return _function_code(_module(source, extra), source)


def _function_code(module: ast.Module, source: Source) -> CodeType:
    flags = source.code.co_flags & _FUTURE_FLAGS
    compiled = compile(module, source.file, "exec", flags, dont_inherit=True,
                       optimize=source.optimize)
    return _nested_code(compiled, 3 if source.class_name else 2)


def _module(source: Source, extra: tuple[str, ...]) -> ast.Module:
    code, node = source.code, source.node
    free = [n for n in code.co_freevars if n != "__class__" or not source.class_name]
    free += [n for n in extra if n not in free]
    body: list[ast.stmt] = [node] if isinstance(node, ast.FunctionDef) else [_expr(node)]
    bound = node.name if isinstance(node, ast.FunctionDef) else ""
    if source.class_name:
        body = [_class(source.class_name, body, node)]
        bound = source.class_name
    if bound and bound not in free:  # else the definition would be local and hide that global
        body.insert(0, _at(ast.Global(names=[bound]), node))
    return ast.Module(body=[_factory(free, body, node)], type_ignores=[])


def _nested_code(module: CodeType, levels: int) -> CodeType:
    """The function's code, nested ``levels`` deep in the module's.

    At each level it is the last one: code in decorators and defaults comes before it.
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
    node = ast.ClassDef(name=name, bases=[], keywords=[], body=body, decorator_list=[])
    node.type_params = []  # type: ignore[attr-defined,unused-ignore]  # a field from Python 3.12 on
    return _at(node, like)


def _factory(free: list[str], body: list[ast.stmt], like: ast.AST) -> ast.stmt:
    args = ast.arguments(
        posonlyargs=[], args=[_at(ast.arg(arg=n), like) for n in free], kwonlyargs=[],
        kw_defaults=[], defaults=[],
    )
    node = ast.FunctionDef(name=_FACTORY, args=args, body=body, decorator_list=[])
    node.type_params = []  # type: ignore[attr-defined,unused-ignore]  # a field from Python 3.12 on
    return _at(node, like)


# -- comparison with what runs --------------------------------------------------------------------

def is_current(source: Source, module_globals: dict[str, Any]) -> bool:
    """Whether the tree compiles to the code object that runs."""
    code = source.code
    if _code_arguments(code) != _argument_names(source.node.args):
        return False
    module = _module(source, ())
    # The compiler calls functions of imported modules in another way.  With the imports in front
    # the two codes are mostly identical, byte by byte, which is ten times as fast to check.
    imports = [_at(ast.Import([_at(ast.alias(name), source.node)]), source.node)
               for name in code.co_names if type(module_globals.get(name)) is ModuleType]
    module.body[:0] = imports
    try:
        if same_code(_function_code(module, source), code):
            return True
    except SyntaxError:  # of another function of the name, whose nonlocal ones this has not
        return False
    return is_rewritten(code) and same_code(_function_code(rewritten(module), source), code)
