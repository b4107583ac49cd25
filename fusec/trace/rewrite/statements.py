"""Rewrites the statements of a user's function: stores, loops, tests, nested definitions."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

from ..source.source import HOOKS_NAME, FunctionNode, Source
from .statement_facts import StatementFacts
from .transformer import DEL, LOAD, OPERATOR_NAMES, STORE, Expressions, constant
from .transformer import without_definition_time as bare

FRAME = "_fusec_frame"


def is_plain_target(node: ast.expr) -> bool:
    """Whether assigning to ``node`` binds names and nothing else."""
    if isinstance(node, ast.Tuple | ast.List):
        return all(is_plain_target(e) for e in node.elts)
    return isinstance(node.value if isinstance(node, ast.Starred) else node, ast.Name)


class Statements(Expressions):
    """Rewrites statements; see `Expressions` for the invariants."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.facts = StatementFacts()

    def convert(self, node: FunctionNode) -> FunctionNode:
        node = bare(node)
        if isinstance(node, ast.Lambda):
            node.body = self.framed(node.body)
        else:
            node.body = [self.frame(node), *self.block(node.body)]
        return node

    def frame(self, node: ast.FunctionDef, assigned: Sequence[str] = ()) -> ast.stmt:
        """``_fusec_frame = `` the call that announces the function's variables, see `frame_of`."""
        first = node.body[0]
        names = self.facts.variables(node) | {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        return self._assign(
            self.name(FRAME, STORE, first), self.frame_of(names, assigned, first), first)

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """A statement list; one statement may become several."""
        out: list[ast.stmt] = []
        for statement in body:
            converted = self.visit(statement)
            out.extend(converted if isinstance(converted, list) else [converted])
        return out

    def _expr(self, value: ast.expr, like: ast.stmt) -> ast.stmt:
        return ast.copy_location(ast.Expr(value), like)

    def _assign(self, target: ast.expr, value: ast.expr, like: ast.stmt) -> ast.stmt:
        return ast.copy_location(ast.Assign([target], value), like)

    def _del(self, names: list[str], like: ast.stmt) -> ast.stmt:
        """``del`` of temporaries, so that ``locals()`` and class bodies never show them."""
        return ast.copy_location(ast.Delete([self.name(n, DEL, like) for n in names]), like)

    # -- assignment -------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        value = self.visit(node.value)
        if len(node.targets) == 1:
            return self.store(node.targets[0], value, node)
        name = self.temporary()
        out = [self._assign(self.name(name, STORE, node), value, node)]
        for target in node.targets:
            out += self.store(target, self.name(name, LOAD, node), node)
        return [*out, self._del([name], node)]

    def store(self, target: ast.expr, value: ast.expr, node: Any) -> list[ast.stmt]:
        """``target = value``.  Hooks take their arguments in the order Python evaluates them:
        the value, then the object, then the key."""
        if isinstance(target, ast.Attribute):
            owner, name = self.visit(target.value), self.attribute_name(target)
            return [self._expr(self.hook("setattr", node, value, owner, name), node)]
        if isinstance(target, ast.Subscript):
            owner, key = self.visit(target.value), self.key(target.slice)
            return [self._expr(self.hook("setitem", node, value, owner, key), node)]
        if isinstance(target, ast.Tuple | ast.List):
            return self._unpack(target, value, node)
        return [self._assign(target, value, node)]

    def _unpack(
        self, target: ast.Tuple | ast.List, value: ast.expr, node: ast.stmt
    ) -> list[ast.stmt]:
        if not isinstance(value, ast.Tuple | ast.List):
            is_open = any(isinstance(e, ast.Starred) for e in target.elts)
            count = constant(None if is_open else len(target.elts), node)
            value = self.hook("unpack", node, value, count)
        if is_plain_target(target):
            return [self._assign(target, value, node)]
        names = [self.temporary() for _ in target.elts]
        pairs = list(zip(names, target.elts, strict=True))
        parts = [self._temporary_target(name, element) for name, element in pairs]
        unpacked = ast.copy_location(ast.Tuple(parts, STORE), target)
        out = [self._assign(unpacked, value, node)]
        for name, element in pairs:
            element = element.value if isinstance(element, ast.Starred) else element
            out += self.store(element, self.name(name, LOAD, element), node)
        return [*out, self._del(names, node)]

    def _temporary_target(self, name: str, element: ast.expr) -> ast.expr:
        part: ast.expr = self.name(name, STORE, element)
        if isinstance(element, ast.Starred):
            part = ast.copy_location(ast.Starred(part, STORE), element)
        return part

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """In a function annotations are never evaluated; in a class they are data."""
        if self.in_class_body:
            node.value = node.value and self.visit(node.value)
            return node
        if node.value is not None:
            return self.store(node.target, self.visit(node.value), node)
        if isinstance(node.target, ast.Name):  # still makes the name local
            node.annotation = constant(None, node)
            return node
        return ast.copy_location(ast.Pass(), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        """Object and key are evaluated once, before the right-hand side."""
        target = node.target
        if isinstance(target, ast.Name):
            old: ast.expr = self.name(target.id, LOAD, target)
            return [self._assign(target, self._in_place(node, old), node)]
        owner = self.temporary()
        out = [self._assign(self.name(owner, STORE, target), self.visit(target.value), node)]
        if isinstance(target, ast.Attribute):
            old = self.hook(
                "getattr", target, self.name(owner, LOAD, target), self.attribute_name(target)
            )
            return [*out, *self._store_back(node, "setattr", old, owner, None)]
        key = self.temporary()
        out.append(self._assign(self.name(key, STORE, target), self.key(target.slice), node))
        old = self.hook(
            "getitem", target, self.name(owner, LOAD, target), self.name(key, LOAD, target)
        )
        return [*out, *self._store_back(node, "setitem", old, owner, key)]

    def _in_place(self, node: ast.AugAssign, old: ast.expr) -> ast.expr:
        op = constant(OPERATOR_NAMES[type(node.op)], node)
        return self.hook("iop", node, op, old, self.visit(node.value))

    def _store_back(
        self, node: ast.AugAssign, hook: str, old: ast.expr, owner: str, key: str | None
    ) -> list[ast.stmt]:
        target = node.target
        where = self.name(key, LOAD, node) if key else self.attribute_name(target)  # type: ignore[arg-type]
        new = self._in_place(node, old)
        call = self.hook(hook, node, new, self.name(owner, LOAD, target), where)
        return [self._expr(call, node), self._del([owner, key] if key else [owner], node)]

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        node.exc = self.raised(node.exc) if node.exc else None
        node.cause = self.visit(node.cause) if node.cause else None
        return node

    def raised(self, node: ast.expr) -> ast.expr:
        """The expression of a raised exception, or of its text."""
        outer, self.raising = self.raising, True
        converted: ast.expr = self.visit(node)
        self.raising = outer
        return converted

    def visit_Delete(self, node: ast.Delete) -> list[ast.stmt]:
        return [part for target in node.targets for part in self._delete(target, node)]

    def _delete(self, target: ast.expr, node: ast.Delete) -> list[ast.stmt]:
        if isinstance(target, ast.Tuple | ast.List):
            return [part for element in target.elts for part in self._delete(element, node)]
        if isinstance(target, ast.Attribute):
            owner, name = self.visit(target.value), self.attribute_name(target)
            return [self._expr(self.hook("delattr", target, owner, name), node)]
        if isinstance(target, ast.Subscript):
            owner, key = self.visit(target.value), self.key(target.slice)
            return [self._expr(self.hook("delitem", target, owner, key), node)]
        return [ast.copy_location(ast.Delete([target]), node)]

    # -- control flow, where it stays Python's ----------------------------------------------------

    def visit_If(self, node: ast.If) -> Any:
        node.test = self.test(node.test)
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return node

    def visit_While(self, node: ast.While) -> Any:
        node.test = self.test(node.test)
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return node

    def visit_For(self, node: ast.For) -> Any:
        node.iter = self.hook("iterate", node.iter, self.visit(node.iter))
        start: list[ast.stmt] = []
        if not is_plain_target(node.target):
            name = self.temporary()
            start = self.store(node.target, self.name(name, LOAD, node.target), node)
            start.append(self._del([name], node))
            node.target = self.name(name, STORE, node.target)
        node.body = [*start, *self.block(node.body)]
        node.orelse = self.block(node.orelse)
        return node

    def nested(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements inside ``with``, ``try`` or ``match``."""
        return self.block(body)

    def visit_With(self, node: ast.With) -> ast.With:
        for item in node.items:
            self.generic_visit(item)
            item.context_expr = self.hook("manager", item.context_expr, item.context_expr)
        node.body = self.nested(node.body)
        return node

    def visit_Try(self, node: ast.Try) -> ast.Try:
        """The hook ``trying`` gets the classes of the handlers; errors of fusec's own pass all."""
        if node.finalbody and self.facts.exits(node.finalbody):
            return self._try_left_in_finally(node)
        exits = self.facts.exits(node.body)
        node.body, orelse = self.nested(node.body), self.after_body(node, exits)
        for handler in node.handlers:
            handler.type = handler.type and self.visit(handler.type)
            handler.body = self.nested(handler.body)
        node.orelse, node.finalbody = orelse, self.nested(node.finalbody)
        if not node.handlers:
            return node
        kinds = [handler.type for handler in node.handlers]
        caught: ast.expr = constant(None, node)
        if None not in kinds:
            caught = self._classes_thunk([copy.deepcopy(k) for k in kinds if k is not None])
        node.body = self._trying(node.body, caught, node)
        refusals = ast.Attribute(self.name(HOOKS_NAME, LOAD, node), "refusals", LOAD)
        first = ast.ExceptHandler(refusals, None, [ast.Raise()])
        node.handlers.insert(0, ast.copy_location(first, node.handlers[0]))
        ast.fix_missing_locations(node)
        return node

    def _trying(self, body: list[ast.stmt], caught: ast.expr, node: ast.Try) -> list[ast.stmt]:
        """Statements whose exceptions of these classes are caught."""
        manager = ast.withitem(self.hook("trying", node, caught))
        return [ast.copy_location(ast.With([manager], body), node)]

    def _try_left_in_finally(self, node: ast.Try) -> ast.Try:
        """Its ``return``, ``break`` or ``continue`` ends every exception of the rest."""
        if node.handlers:
            inner = ast.Try(node.body, node.handlers, node.orelse, [])
            node.body, node.handlers, node.orelse = [ast.copy_location(inner, node)], [], []
        node.body = self._trying(self.nested(node.body), constant(None, node), node)
        node.finalbody = self.nested(node.finalbody)
        ast.fix_missing_locations(node)
        return node

    def after_body(self, node: ast.Try, exits: frozenset[str]) -> list[ast.stmt]:
        """The ``else`` of a ``try`` whose body has these exits."""
        return self.nested(node.orelse)

    def _classes_thunk(self, kinds: list[ast.expr]) -> ast.expr:
        """A thunk of the tuple of exception classes."""
        flat = [k.elts if isinstance(k, ast.Tuple) else [k] for k in kinds]
        classes = ast.Tuple([kind for group in flat for kind in group], LOAD)
        return self.thunk(classes, kinds[0])

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        if self.source.drops_asserts:
            return node
        node.test = self.test(node.test)
        node.msg = node.msg and self.visit(node.msg)
        return node

    def visit_Match(self, node: ast.Match) -> Any:
        """Python itself matches the patterns; the hook checks that it can match this subject."""
        self.generic_visit(node)
        node.subject = self.hook("matched", node, node.subject)
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        """Patterns are no expressions and stay."""
        node.guard = node.guard and self.test(node.guard)
        node.body = self.nested(node.body)
        return node

    # -- definitions inside -----------------------------------------------------------------------

    in_class_body = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        node.decorator_list = self.decorators(node)
        self.defaults(node.args)
        saved = self.function, self.walrus, self.in_class_body
        self.function, self.walrus, self.in_class_body = node.name, True, False
        node.body = self.function_body(node)
        self.function, self.walrus, self.in_class_body = saved
        return node

    def function_body(self, node: ast.FunctionDef) -> list[ast.stmt]:
        return [self.frame(node), *self.block(node.body)]

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        node.decorator_list = self.visit_all(node.decorator_list)
        node.bases = self.visit_all(node.bases)
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        saved = self.class_name, self.function, self.walrus, self.in_class_body
        self.class_name, self.function, self.walrus, self.in_class_body = (
            node.name, node.name, False, True,
        )
        node.body = self.block(node.body)
        self.class_name, self.function, self.walrus, self.in_class_body = saved
        return node
