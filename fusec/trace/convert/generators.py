"""Generator functions whose items are taken all at once: as functions that make the list, the loops
of which can be loops of the graph."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import weakref
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from ..rewrite.control_flow import convert_tree
from ..source.errors import SourceUnavailable
from ..source.source import HOOKS_NAME, compile_function, find_source
from .cache import Bound, note_code, with_code

_ITEMS = "_fusec_items_yielded"
# Codes of two files may be equal.
_lists: weakref.WeakKeyDictionary[CodeType, tuple[str, CodeType | None]] = (
    weakref.WeakKeyDictionary())


class Generators(dict[int, tuple[Any, Callable[[], Any]]]):
    """Of a trace: generators that the program made, and how to make the lists of their items."""

    def note(
        self, generator: Any, fn: FunctionType, call: Callable[[Any], Any], hooks: Bound
    ) -> None:
        """One that a function of the program's gave."""
        self[id(generator)] = generator, lambda: _listed(fn, call, hooks)

    def listed(self, generator: Any) -> list[Any] | None:
        """All items of one that nobody has taken from; None where Python must go over it."""
        entry = self.get(id(generator))
        if entry is None or inspect.getgeneratorstate(generator) != inspect.GEN_CREATED:
            return None
        items: list[Any] | None = entry[1]()
        if items is not None:
            generator.close()
        return items


def _listed(fn: FunctionType, call: Callable[[Any], Any], hooks: Bound) -> Any:
    code = fn.__code__
    file, listing = _lists.get(code, ("", None))
    if file != code.co_filename:
        listing = _list_code(code, fn.__globals__)
        _lists[code] = code.co_filename, listing
    return None if listing is None else call(with_code(fn, listing, hooks))


def _list_code(code: CodeType, module_globals: dict[str, Any]) -> CodeType | None:
    """The code of a function that returns the generator's items."""
    try:
        source = find_source(code, module_globals)
    except SourceUnavailable:
        return None
    tree: Any = copy.deepcopy(source.node)
    if not isinstance(tree, ast.FunctionDef) or not _is_plain(tree):
        return None
    first = tree.body[0]
    tree.body = [ast.copy_location(ast.Assign([ast.Name(_ITEMS, ast.Store())],
                                              ast.List([], ast.Load())), first),
                 *(_Appending().visit(statement) for statement in tree.body),
                 ast.copy_location(ast.Return(ast.Name(_ITEMS, ast.Load())), tree.body[-1])]
    ast.fix_missing_locations(tree)
    converted = compile_function(dataclasses.replace(source, node=convert_tree(
        dataclasses.replace(source, node=tree), structured=True)), (HOOKS_NAME,))
    note_code(converted)
    return converted


def _is_plain(tree: ast.FunctionDef) -> bool:
    """Whether each ``yield`` is a statement of the function's own, and nothing is caught."""
    nodes = [*ast.walk(tree)]
    statements = {id(n.value) for n in nodes if isinstance(n, ast.Expr)}
    return not tree.decorator_list and not any(
        isinstance(n, ast.YieldFrom | ast.Try | ast.With | ast.Global | ast.Nonlocal)
        or (isinstance(n, ast.FunctionDef | ast.Lambda | ast.ClassDef) and n is not tree)
        or (isinstance(n, ast.Return) and n.value is not None)
        or (isinstance(n, ast.Yield) and id(n) not in statements) for n in nodes)


class _Appending(ast.NodeTransformer):
    """``yield x`` as ``items.append(x)``."""

    def visit_Yield(self, node: ast.Yield) -> ast.expr:
        method = ast.Attribute(ast.Name(_ITEMS, ast.Load()), "append", ast.Load())
        return ast.copy_location(
            ast.Call(method, [node.value or ast.Constant(None)], []), node)

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        return ast.copy_location(ast.Return(ast.Name(_ITEMS, ast.Load())), node)
