"""Rewrites the expressions of a user's function into hook calls: ``a + b`` becomes
``__fusec__.binop(where, "add", a, b)``.

Kept are the order of evaluation, short circuits, scopes, and all positions, so that tracebacks and
``frame.f_lineno`` name the user's line.  The first argument of every hook, ``where``, is a constant
``(file, line, column, function, end column)``, which costs one LOAD_CONST.  Columns count UTF-8
bytes, as CPython's do; the end is -1 when it is on another line.

`Expressions` is the expression half, `fusec.trace.rewrite.statements.Statements` the other one.
Control flow on data belongs in a subclass of the latter that overrides ``visit_If``,
``visit_While`` and ``visit_For``; tests all go through `Expressions.test`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..source.source import HOOKS_NAME, Source

Where = tuple[str, int, int, str, int]
Span = tuple[int, int, int, int]

LOAD, STORE, DEL = ast.Load(), ast.Store(), ast.Del()

OPERATOR_NAMES: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.MatMult: "matmul", ast.LShift: "lshift",
    ast.RShift: "rshift", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert",
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
    ast.Is: "is", ast.IsNot: "is not",
}

# Builtins that look at their caller's frame, which would be the hook's.
FRAME_CALLS = frozenset({"super", "globals", "eval", "exec"})
LISTING_CALLS = frozenset({"locals", "vars", "dir"})


def looks_at_frame(node: ast.AST) -> bool:
    """Whether it is a call that must stay in the function's own frame."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    name = node.func.id
    return name in FRAME_CALLS | LISTING_CALLS and not (name == "super" and bool(node.args))


def constant(value: Any, like: ast.expr | ast.stmt) -> ast.Constant:
    return ast.Constant(  # much faster than ast.copy_location
        value, lineno=like.lineno, col_offset=like.col_offset,
        end_lineno=like.end_lineno, end_col_offset=like.end_col_offset,
    )


def is_constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant)


def span_of(node: Any) -> Span:
    """Where an error in ``node`` is shown: as in Python, a chain of methods over several lines is
    shown at the line of the method."""
    line, col, end = node.lineno, node.col_offset, node.end_lineno or node.lineno
    attribute = node.func if isinstance(node, ast.Call) else node
    if isinstance(attribute, ast.Attribute) and attribute.end_lineno != line:
        line = attribute.end_lineno or line
        col = max((attribute.end_col_offset or 0) - len(attribute.attr), 0)
    return line, col, end, node.end_col_offset if node.end_col_offset is not None else col


class Expressions(ast.NodeTransformer):
    """Rewrites expressions; see the module's docstring."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.class_name = source.class_name
        self.function = source.function
        self.walrus = True  # whether a temporary may be bound inside an expression here
        self.raising = False  # whether the expression is that of an exception, or in its text
        self.temporaries = 0
        self.in_class_body = False

    # -- building blocks --------------------------------------------------------------------------

    def where(self, span: Span) -> Where:
        line, col, end_line, end_col = span
        return self.source.file, line, col, self.function, end_col if end_line == line else -1

    def hook(
        self, name: str, node: ast.expr | ast.stmt, *args: ast.expr,
        keywords: Sequence[ast.keyword] = (),
    ) -> ast.Call:
        """``__fusec__.name(where, *args)`` in the place of ``node``."""
        span = span_of(node)
        line, col, end_line, end_col = span
        # Empty and on the first line: Python shows a method call at the line where its name ends.
        at: Any = {"lineno": line, "col_offset": col, "end_lineno": line, "end_col_offset": col}
        func = ast.Attribute(ast.Name(HOOKS_NAME, LOAD, **at), name, LOAD, **at)
        where: Any = self.where(span)  # the compiler takes tuples, the stubs do not know
        return ast.Call(
            func, [ast.Constant(where, **at), *args], list(keywords),
            lineno=line, col_offset=col, end_lineno=end_line, end_col_offset=end_col,
        )

    def temporary(self) -> str:
        self.temporaries += 1
        return f"_fusec_{self.temporaries}"

    def name(self, identifier: str, ctx: ast.expr_context, like: ast.expr | ast.stmt) -> ast.Name:
        return ast.copy_location(ast.Name(identifier, ctx), like)

    def attribute_name(self, node: ast.Attribute) -> ast.Constant:
        """The attribute as a string, private names (``__x``) mangled as the compiler would."""
        name, owner = node.attr, self.class_name.lstrip("_")
        if owner and name.startswith("__") and not name.endswith("__"):
            name = f"_{owner}{name}"
        return constant(name, node)

    def visit_all(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        return [self.visit(node) for node in nodes]

    # -- names, attributes, items -----------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Names load as they are."""
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        node.value = self.visit(node.value)
        if not isinstance(node.ctx, ast.Load):
            return node
        return self.hook("getattr", node, node.value, self.attribute_name(node))

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)  # type: ignore[return-value]
        return self.hook("getitem", node, self.visit(node.value), self.key(node.slice))

    def key(self, node: ast.expr) -> ast.expr:
        """The index between brackets, as an ordinary expression."""
        if isinstance(node, ast.Slice):
            return self._slice(node)
        if isinstance(node, ast.Tuple):
            return ast.copy_location(ast.Tuple([self.key(e) for e in node.elts], LOAD), node)
        return self.visit(node)

    def _slice(self, node: ast.Slice) -> ast.expr:
        parts = (node.lower, node.upper, node.step)
        args = [constant(None, node) if p is None else self.visit(p) for p in parts]
        call = self.hook("slice", node, *args)
        call.args.pop(0)  # it has no ``where``: it neither raises nor makes nodes
        return call

    # -- calls ------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> ast.expr:
        plain = self._frame_call(node)
        if plain is not None:
            return plain
        func, args = self.visit(node.func), self.visit_all(node.args)
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        if all(keyword.arg is not None for keyword in node.keywords):
            return self.hook("call", node, func, *args, keywords=node.keywords)
        pairs: list[ast.expr] = [ast.Tuple([ast.Constant(k.arg), k.value], LOAD)
                                 for k in node.keywords]
        parts = (ast.Tuple(args, LOAD), ast.Tuple(pairs, LOAD))
        return ast.fix_missing_locations(self.hook("call_with", node, func, *parts))

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        if isinstance(node.ctx, ast.Load):
            node.value = self.hook("starred", node, self.visit(node.value))
        return node

    def _frame_call(self, node: ast.Call) -> ast.expr | None:
        """``super()``, ``locals()``, ``eval(…)`` stay in the user's frame; None for other calls."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in FRAME_CALLS:
            return self.generic_visit(node)  # type: ignore[return-value]
        if name in LISTING_CALLS and not node.args and not node.keywords:
            return self.hook("hide", node, node)
        return None

    # -- operators --------------------------------------------------------------------------------

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        node.left, node.right = self.visit(node.left), self.visit(node.right)
        if is_constant(node.left) and is_constant(node.right):
            return node
        op = constant(OPERATOR_NAMES[type(node.op)], node)
        return self.hook("binop", node, op, node.left, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        node.operand = self.visit(node.operand)
        if is_constant(node.operand):
            return node
        if isinstance(node.op, ast.Not):
            return self.hook("not_", node, node.operand)
        op = constant(OPERATOR_NAMES[type(node.op)], node)
        return self.hook("unop", node, op, node.operand)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        links = self._links(node)
        if links is None:
            return self.generic_visit(node)  # type: ignore[return-value]
        if len(links) == 1:
            return links[0]
        return self._conjunction("operand", links, len(links) - 1, node)

    def _conjunction(
        self, hook: str, links: list[ast.expr], tested: int, node: ast.expr
    ) -> ast.expr:
        """``links[0] and links[1] and …`` where the first ``tested`` go through ``hook``."""
        values = [self.hook(hook, node, v) if i < tested else v for i, v in enumerate(links)]
        return ast.copy_location(ast.BoolOp(ast.And(), values), node)

    def _links(self, node: ast.Compare) -> list[ast.expr] | None:
        """The comparisons of a chain, operands in the middle kept in temporaries; None where Python
        allows no temporary (`walrus`): that chain stays as it is."""
        middle = node.comparators[:-1]
        if not self.walrus and not all(isinstance(n, ast.Name | ast.Constant) for n in middle):
            return None
        links, left = [], self.visit(node.left)
        for op, right in zip(node.ops, node.comparators, strict=True):
            value, again = self._value_and_reread(right, right is not node.comparators[-1])
            links.append(self._comparison(node, op, left, value))
            left = again
        return links

    def _value_and_reread(self, node: ast.expr, keep: bool) -> tuple[ast.expr, ast.expr]:
        """An operand, and an expression that reads it again without evaluating it twice."""
        value = self.visit(node)
        if not keep or isinstance(value, ast.Name | ast.Constant):
            return value, value
        name = self.temporary()
        bound = ast.NamedExpr(self.name(name, STORE, node), value)
        return ast.copy_location(bound, node), self.name(name, LOAD, node)

    def _comparison(
        self, node: ast.Compare, op: ast.cmpop, left: ast.expr, right: ast.expr
    ) -> ast.expr:
        if isinstance(op, ast.In):
            return self.hook("contains", node, left, right)
        if isinstance(op, ast.NotIn):
            return self.hook("not_", node, self.hook("contains", node, left, right))
        return self.hook("compare", node, constant(OPERATOR_NAMES[type(op)], node), left, right)

    # -- truth ------------------------------------------------------------------------------------

    def test(self, node: ast.expr) -> ast.expr:
        """``node`` where only its truth counts: ``if``, ``while``, ``assert``, ``x if … else y``.

        Each operand of ``and``, ``or``, ``not`` is tested on its own, once, as Python does.
        """
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand = self.test(node.operand)
            return node
        return self._tested("test", self.test, node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """``a and b`` as a value: Python itself tests the hook's result."""
        *tested, last = node.values
        node.values = [self.operand(v) for v in tested]
        node.values.append(self.visit(last))
        return node

    def operand(self, node: ast.expr) -> ast.expr:
        """``node`` where both its truth and its value count.  A nested ``and`` gets a hook for each
        operand and none for the whole: Python tests each once, and jumps past the outer test."""
        return self._tested("operand", self.operand, node)

    def _tested(
        self, hook: str, convert: Callable[[ast.expr], ast.expr], node: ast.expr
    ) -> ast.expr:
        if isinstance(node, ast.BoolOp):
            node.values = [convert(v) for v in node.values]
            return node
        links = self._links(node) if isinstance(node, ast.Compare) and len(node.ops) > 1 else None
        if links is not None:
            return self._conjunction(hook, links, len(links), node)
        return self.hook(hook, node, self.visit(node))

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        node.test = self.test(node.test)
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    # -- f-strings --------------------------------------------------------------------------------

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        spec = self.visit(node.format_spec) if node.format_spec else constant("", node)
        conversion = constant(node.conversion, node)
        source = constant(ast.unparse(node.value) if self.raising else "", node)
        text = self.hook("format_value", node, self.visit(node.value), conversion, spec, source)
        return ast.copy_location(ast.FormattedValue(text, -1, None), node)

    # -- comprehensions and lambdas ---------------------------------------------------------------

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        allowed, self.walrus = self.walrus, False  # PEP 572: not in a comprehension's iterable
        node.iter = self.hook("iterate", node.iter, self.visit(node.iter))
        self.walrus = allowed
        node.target = self.visit(node.target)
        node.ifs = [self.test(condition) for condition in node.ifs]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        self.defaults(node.args)
        outer, self.function = self.function, "<lambda>"
        names, body = _names_in(node.body), self.framed(node.body)
        if names and HOOKS_NAME not in _names_in(body):  # by which functions of the trace are known
            body = self._with_frame(names, body, body)
        node.body = body
        self.function = outer
        return node

    def visit_ListComp(self, node: Any) -> ast.expr:
        for part in {"elt", "key", "value"} & set(node._fields):
            setattr(node, part, self.framed(getattr(node, part)))
        node.generators = [self.visit(part) for part in node.generators]
        return node  # type: ignore[no-any-return,unused-ignore]

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def framed(
        self, node: ast.expr, visit: Callable[[ast.expr], ast.expr] | None = None
    ) -> ast.expr:
        """A lambda's body, or an element; where it calls others as ``(frame, value)[1]``."""
        names = _names_in(node)
        calls = any(isinstance(n, ast.Call) for n in ast.walk(node))
        value = (visit or self.visit)(node)
        return self._with_frame(names, value, node) if calls else value

    def _with_frame(self, names: set[str], value: ast.expr, like: ast.expr) -> ast.expr:
        pair = ast.copy_location(ast.Tuple([self.frame_of(names, (), like), value], LOAD), like)
        return ast.copy_location(ast.Subscript(pair, constant(1, like), LOAD), like)

    def frame_of(
        self, names: Iterable[str], assigned: Iterable[str], like: ast.expr | ast.stmt
    ) -> ast.expr:
        """``__fusec__.frame(where, lambda: (x, y, ...), assigned)``: the cells of the lambda are
        variables, for as long as it is kept.  Global ones are no cells; it is never called."""
        loads: list[ast.expr] = [self.name(n, LOAD, like) for n in sorted(names)]
        variables = self.thunk(ast.copy_location(ast.Tuple(loads, LOAD), like), like)
        return self.hook("frame", like, variables, constant(tuple(assigned), like))

    def thunk(self, value: ast.expr, like: ast.AST) -> ast.expr:
        args = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return ast.copy_location(ast.Lambda(args, value), like)

    def decorators(self, node: ast.FunctionDef) -> list[ast.expr]:
        """They are called through the hooks, except in a class."""
        nodes: list[ast.expr] = self.visit_all(node.decorator_list)
        return nodes if self.in_class_body else [self.hook("decorator", d, d) for d in nodes]

    def defaults(self, args: ast.arguments) -> None:
        """Hooks for the defaults; annotations stay as they are."""
        args.defaults = self.visit_all(args.defaults)
        args.kw_defaults = [d and self.visit(d) for d in args.kw_defaults]


def _names_in(node: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def without_definition_time(node: ast.FunctionDef | ast.Lambda) -> ast.FunctionDef | ast.Lambda:
    """A shallow copy without code that ran at the definition: defaults, decorators, annotations.
    The function keeps its default values: evaluating them again could have effects."""
    bare = copy.copy(node)
    bare.args = copy.copy(node.args)
    bare.args.defaults, bare.args.kw_defaults = [], [None] * len(node.args.kw_defaults)
    if isinstance(bare, ast.FunctionDef):
        bare.decorator_list, bare.returns = [], None
        if hasattr(bare, "type_params"):
            bare.type_params = []
        _strip_annotations(bare.args)
    return bare


def _strip_annotations(args: ast.arguments) -> None:
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if arg is not None:
            arg.annotation = None
