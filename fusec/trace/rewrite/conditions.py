"""Rewrites tests and logic so that their operands can be branches of the graph.

``a and b`` becomes a hook call with ``b`` as a thunk, called where Python would evaluate ``b``;
comparison chains and conditional expressions likewise.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

from . import whole_lists
from .statements import Statements
from .transformer import OPERATOR_NAMES, constant, looks_at_frame

_REDUCING = frozenset({"sum", "max", "min"})  # with a condition, too
_QUANTIFYING = frozenset({"any", "all"})
_TAKING_ALL = frozenset({"sum", "max", "min", "list", "tuple", "sorted"})


class Conditions(Statements):
    """`Statements` whose tests and logic call hooks with functions."""

    def condition(self, node: ast.expr) -> ast.expr:
        """``node`` as an operand of a hook that takes its truth."""
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.hook("not_", node, self.condition(node.operand))
        if isinstance(node, ast.BoolOp):
            return self._logic(node, "test")
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            return self._chain(node, "test")
        return self.visit(node)

    def test(self, node: ast.expr) -> ast.expr:
        if self._keeps_tests(node):
            return super().test(node)
        if isinstance(node, ast.Constant):
            return node
        return self.hook("test", node, self.condition(node))

    def _keeps_tests(self, node: ast.AST) -> bool:
        """Whether the expression binds names, which it could not do from a thunk."""
        return self.in_class_body or (not self.has_setters and any(
            isinstance(n, ast.NamedExpr) for n in ast.walk(node)))

    @property
    def has_setters(self) -> bool:
        """Whether ``name := value`` becomes a call that binds the name."""
        return False

    def _operand(self, node: ast.expr) -> ast.expr:
        """``node`` where both its truth and its value count."""
        if isinstance(node, ast.BoolOp):
            return self._logic(node, "operand")
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            return self._chain(node, "operand")
        return self.visit(node)

    def _logic(self, node: ast.BoolOp, role: str) -> ast.expr:
        """``and`` and ``or``; inside another one the truth is not tested again (`Hooks.and_`)."""
        *tested, last = node.values
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        operand = self.condition if role == "test" else self._operand
        values = [(v, operand(v)) for v in tested]
        values.append((last, self.visit(last) if role == "value" else operand(last)))
        thunks = [self.thunk(value, like) for like, value in values[1:]]
        return self.hook(name, node, constant(role, node), values[0][1], *thunks)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        if self._keeps_tests(node):
            return super().visit_BoolOp(node)
        return self._logic(node, "value")

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1 or self._keeps_tests(node):
            return super().visit_Compare(node)
        return self._chain(node, "value")

    def _chain(self, node: ast.Compare, role: str) -> ast.expr:
        """``a < b < c``: each operand once, the later ones as thunks."""
        special = {ast.In: "in", ast.NotIn: "not in"}
        ops = tuple(special.get(type(op)) or OPERATOR_NAMES[type(op)] for op in node.ops)
        first, second, *rest = [node.left, *node.comparators]
        thunks = [self.thunk(self.visit(value), value) for value in rest]
        return self.hook("chain", node, constant(role, node),
                         constant(ops, node),
                         self.visit(first), self.visit(second), *thunks)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        if self._keeps_tests(node):
            return super().visit_IfExp(node)
        test = self.condition(node.test)
        thunks = [self.thunk(self.visit(value), value) for value in (node.body, node.orelse)]
        return self.hook("if_expression", node, test, *thunks)

    # -- comprehensions -------------------------------------------------------------------------

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        """``[element for a, b in items]``, which can become a loop of the graph."""
        if self.in_class_body or not _is_simple(node):
            return super().visit_ListComp(node)
        (part,) = node.generators
        items = ast.copy_location(ast.Name("_fusec_items", ast.Load()), part.iter)
        plain = copy.deepcopy(node)
        plain.generators[0].iter = items
        function = self._items_function(items, super().visit_ListComp(plain))
        names, count = _targets(part)
        is_read_whole = whole_lists.is_marked(node)
        if is_read_whole and isinstance(node.elt, ast.ListComp):
            whole_lists.mark(node.elt)
        element = self._element_function(names, node.elt, node)
        return self.hook("list_of", node, self.visit(part.iter), element, constant(count, node),
                         function, *[constant(True, node)] * is_read_whole)

    def visit_List(self, node: ast.List) -> ast.expr:
        """``[]`` that a loop fills."""
        if whole_lists.is_marked(node):
            return self.hook("list_to_fill", node)
        return self.generic_visit(node)  # type: ignore[return-value]

    def _element_function(
        self, names: list[str], value: ast.expr, like: ast.expr,
        visit: Callable[[ast.expr], ast.expr] | None = None,
    ) -> ast.expr:
        """``lambda *names: value``"""
        return ast.copy_location(
            ast.Lambda(_arguments(names, like), self.framed(value, visit)), like)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """``sum(… for …)``: for functions that consume all items a list does as well."""
        if isinstance(node.func, ast.Name) and node.args and (
                node.func.id in _TAKING_ALL | _QUANTIFYING):
            first = node.args[0]
            if isinstance(first, ast.GeneratorExp) and self._is_quantified(node, first):
                return self._quantified(node, first)
            if isinstance(first, ast.GeneratorExp) and self._is_reduced_where(node, first):
                return self._reduced_where(node, first)
            if isinstance(first, ast.GeneratorExp) and node.func.id in _TAKING_ALL:
                node.args[0] = ast.copy_location(
                    ast.ListComp(first.elt, first.generators), first)
        if _fills_an_array(node):
            items = node.args[0]
            assert isinstance(items, ast.GeneratorExp)
            node.args[0] = ast.copy_location(ast.ListComp(items.elt, items.generators), items)
        if node.args and isinstance(node.args[0], ast.ListComp):
            whole_lists.mark(node.args[0])
        return super().visit_Call(node)

    def _is_reduced_where(self, node: ast.Call, items: ast.GeneratorExp) -> bool:
        """``sum(element for target in items if condition)``, and nothing else; the condition may
        be missing."""
        assert isinstance(node.func, ast.Name)
        plain = copy.copy(items.generators[0])
        plain.ifs = []
        return node.func.id in _REDUCING and not (
            self.in_class_body or len(node.args) > 1 or node.keywords) and _is_simple(
            ast.ListComp(ast.Tuple([items.elt, *items.generators[0].ifs]), [
                plain, *items.generators[1:]]))

    def _reduced_where(self, node: ast.Call, items: ast.GeneratorExp) -> ast.expr:
        """As a hook: where data decides the condition, the loop can be one of the graph."""
        (part,) = items.generators
        name = ast.copy_location(ast.Name("_fusec_items", ast.Load()), part.iter)
        over_name = copy.deepcopy(part)
        over_name.iter = name
        listed = ast.ListComp(copy.deepcopy(items.elt), [over_name])
        plain = ast.Call(copy.deepcopy(node.func), [ast.copy_location(listed, items)], [])
        in_python = self._items_function(name, super().visit_Call(ast.copy_location(plain, node)))
        names, count = _targets(part)
        test = part.ifs[0] if len(part.ifs) == 1 else part.ifs and ast.copy_location(
            ast.BoolOp(ast.And(), part.ifs), part.ifs[0])
        element = self._element_function(names, items.elt, node)
        condition = self._element_function(names, test, node) if isinstance(test, ast.expr) else (
            constant(None, node))
        return self.hook("reduced_where", node, self.visit(node.func), self.visit(part.iter),
                         element, condition, constant(count, node), in_python)

    def _is_quantified(self, node: ast.Call, items: ast.GeneratorExp) -> bool:
        """``any`` or ``all`` of one generator expression, which can be functions."""
        assert isinstance(node.func, ast.Name)
        return node.func.id in _QUANTIFYING and not (
            self.in_class_body or len(node.args) > 1 or node.keywords) and all(
            not part.is_async and _distinct(part) for part in items.generators) and not any(
            (isinstance(n, ast.NamedExpr) and not self.has_setters) or _cannot_move(n)
            for n in ast.walk(items))

    def _quantified(self, node: ast.Call, items: ast.GeneratorExp) -> ast.expr:
        """``any(element for a in items if condition for b in others)`` as a hook that is given
        ``condition and any(element for b in others)``, with Python's own part of the items."""
        assert isinstance(node.func, ast.Name)
        (part, *rest), is_any = items.generators, node.func.id == "any"
        name = ast.copy_location(ast.Name("_fusec_items", ast.Load()), part.iter)
        plain = copy.deepcopy(node)
        assert isinstance(plain.args[0], ast.GeneratorExp)
        plain.args[0].generators[0].iter = name
        in_python = self._items_function(name, super().visit_Call(plain))
        element = items.elt
        if rest:
            inner = ast.copy_location(ast.GeneratorExp(items.elt, rest), items)
            element = ast.copy_location(ast.Call(copy.deepcopy(node.func), [inner], []), node)
        for test in reversed(part.ifs):
            values = [test if is_any else ast.copy_location(
                ast.UnaryOp(ast.Not(), test), test), element]
            element = ast.copy_location(ast.BoolOp(ast.And() if is_any else ast.Or(), values), test)
        names, count = _targets(part)
        function = self._element_function(
            names, element, node, self.condition if part.ifs else self.visit)
        return self.hook("reduced_where", node, self.visit(node.func), self.visit(part.iter),
                         function, constant(None, node), constant(count, node), in_python)

    def _items_function(self, items: ast.Name, value: ast.expr) -> ast.expr:
        return ast.copy_location(ast.Lambda(_arguments([items.id], items), value), items)


def _targets(part: ast.comprehension) -> tuple[list[str], int | None]:
    """The target names, and their number where an item is unpacked, else None."""
    several = isinstance(part.target, ast.Tuple)
    targets = part.target.elts if isinstance(part.target, ast.Tuple) else [part.target]
    names = [n.id for n in targets if isinstance(n, ast.Name)]
    return names, len(names) if several else None


def _arguments(names: list[str], like: ast.expr) -> ast.arguments:
    return ast.arguments(
        posonlyargs=[], kwonlyargs=[], kw_defaults=[], defaults=[],
        args=[ast.copy_location(ast.arg(name), like) for name in names])


def _is_simple(node: ast.ListComp) -> bool:
    """Whether it is one loop over distinct names, without conditions, and can be a function."""
    (first, *rest) = node.generators
    if rest or first.ifs or first.is_async or not _distinct(first):
        return False
    return not any(isinstance(n, ast.NamedExpr) or _cannot_move(n) for n in ast.walk(node))


def _distinct(part: ast.comprehension) -> bool:
    """Whether the targets are distinct names."""
    target = part.target.elts if isinstance(part.target, ast.Tuple) else [part.target]
    names = [n.id for n in target if isinstance(n, ast.Name)]
    return len(set(names)) == len(target)


def _cannot_move(node: ast.AST) -> bool:
    """Whether an expression with this in it means something else in a function."""
    return isinstance(node, ast.Await | ast.Yield | ast.YieldFrom) or looks_at_frame(node)


def _fills_an_array(node: ast.Call) -> bool:
    """``np.fromiter(… for …)`` that takes all items: without a count, or with that of the items."""
    if not (isinstance(node.func, ast.Attribute) and node.func.attr == "fromiter" and node.args
            and isinstance(node.args[0], ast.GeneratorExp)):
        return False
    counts = [*node.args[2:3], *(k.value for k in node.keywords if k.arg == "count")]
    return not counts or _is_length(counts[0], node.args[0].generators)


def _is_length(count: ast.expr, generators: list[ast.comprehension]) -> bool:
    """Whether it says how many items there are: ``len(x)`` of ``x``, ``n`` of ``range(n)``."""
    if len(generators) > 1 or generators[0].ifs:
        return False
    over = ast.dump(generators[0].iter)
    name = ast.Name("len", ast.Load()), ast.Name("range", ast.Load())
    of_range = ast.dump(ast.Call(name[1], [count], []))
    is_len = isinstance(count, ast.Call) and len(count.args) == 1 and (
        ast.dump(count.func) == ast.dump(name[0]))
    return over == of_range or (
        isinstance(count, ast.Call) and is_len and over == ast.dump(count.args[0]))
