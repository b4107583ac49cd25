"""The function that is rewritten: its variables, which its parts share, and flags of its exits."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..source.source import FunctionNode, Source
from . import flow
from .certain_reads import CertainReads
from .conditions import Conditions
from .statement_facts import StatementFacts
from .transformer import LOAD, STORE, constant, without_definition_time

RETURNED = "_fusec_returned"
RESULT = "_fusec_result"
SETTER = "_fusec_set_"  # the start of the names of functions that bind the rest of the name


@dataclass
class Loop:
    """The innermost loop that is rewritten: its flags."""

    broke: str
    skipped: str


@dataclass
class Function:
    """The function being rewritten."""

    unshared: set[str]  # names declared global
    outer: set[str]  # names declared nonlocal: bound further out
    liveness: flow.Liveness
    reads: CertainReads
    shared: dict[str, None]
    returns: bool = False  # whether the flag RETURNED is used
    setters: dict[str, ast.expr] = field(default_factory=dict)  # names bound within expressions


class Functions(Conditions):
    """Definitions whose branches and loops are functions of their own that share the variables."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.numbers = 0
        self.current: Function | None = None
        self.loop: Loop | None = None
        self.guarded: set[str] = set()
        self.in_lambda = False
        self.sets_flags = False  # whether exits of what is visited set flags

    def convert(self, node: FunctionNode) -> FunctionNode:
        if isinstance(node, ast.Lambda):
            return super().convert(node)
        made = without_definition_time(node)
        made.body = self.function_body(node)
        return made

    def function_body(self, node: ast.FunctionDef) -> list[ast.stmt]:
        """The statements of a function; a loop or function around it is another world."""
        saved = self.current, self.loop, self.guarded, self.in_lambda
        self.current, self.loop, self.guarded = _facts(node.body, self.facts), None, set()
        self.in_lambda = False
        shared = _shared_with_inner(node, self.facts)
        body = self.tail(node.body)
        start = [self._declaration(name, node) for name in self.current.shared]
        if self.current.returns:
            start.append(self._set(RETURNED, False, node.body[0]))
        start += [self._setter(name, like) for name, like in self.current.setters.items()]
        if shared:
            start.insert(0, self._expr(self.hook("frame", node.body[0], self._thunk(
                ast.copy_location(ast.Tuple([self.name(n, LOAD, node) for n in shared], LOAD),
                                  node), node)), node.body[0]))
        self.current, self.loop, self.guarded, self.in_lambda = saved
        return [*start, *body]

    def tail(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements after which the function returns; see `ControlFlow`."""
        raise NotImplementedError

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        saved, self.in_lambda = self.in_lambda, True
        made = super().visit_Lambda(node)
        self.in_lambda = saved
        return made

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        node.decorator_list = self.decorators(node)
        self.defaults(node.args)
        saved = self.function, self.walrus, self.in_class_body
        self.function, self.walrus, self.in_class_body = node.name, True, False
        node.body = self.function_body(node)
        self.function, self.walrus, self.in_class_body = saved
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> object:
        """An annotation alone has made its name local already, where that matters."""
        if self.in_class_body or node.value is not None or self.current is None:
            return super().visit_AnnAssign(node)
        if isinstance(node.target, ast.Name) and node.target.id not in self.current.unshared:
            self.current.shared[node.target.id] = None
        return ast.copy_location(ast.Pass(), node)

    # -- names bound within expressions -----------------------------------------------------------

    @property
    def has_setters(self) -> bool:
        return self.current is not None and not self.in_lambda and not self.in_class_body

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        """``name := value`` in a test runs in a function of its own: one that binds the name is
        called for it."""
        if not self.has_setters:
            return self.generic_visit(node)  # type: ignore[return-value]
        assert self.current is not None
        name = node.target.id
        self.current.setters.setdefault(name, node)
        self._bound({name: None})
        setter = self.name(SETTER + name, LOAD, node)
        return ast.copy_location(ast.Call(setter, [self.visit(node.value)], []), node)

    def _setter(self, name: str, like: ast.expr) -> ast.stmt:
        """``def setter(value): nonlocal name; name = value; return value``"""
        assert self.current is not None
        value = self.name("_fusec_value", LOAD, like)
        names = {} if name in self.current.unshared else {name: None}
        assign = ast.copy_location(ast.Assign([self.name(name, STORE, like)], value), like)
        back = ast.copy_location(ast.Return(value), like)
        statement: ast.stmt = ast.copy_location(ast.Expr(like), like)
        made = self._function("set", [assign, back], names, statement, "_fusec_value")
        made.name = SETTER + name
        return made

    # -- parts ------------------------------------------------------------------------------------

    def _declaration(self, name: str, like: ast.stmt) -> ast.stmt:
        """Makes the name local to the function: its parts bind it as ``nonlocal``."""
        made = ast.AnnAssign(self.name(name, STORE, like), constant(None, like), None, 1)
        return ast.copy_location(made, like)

    def _function(
        self, stem: str, body: list[ast.stmt], names: dict[str, None], like: ast.stmt,
        argument: str = "",
    ) -> ast.FunctionDef:
        """A local function that binds ``names`` in the user's function."""
        self.numbers += 1
        start: list[ast.stmt] = []
        assert self.current is not None
        unshared = self.current.unshared
        bound = StatementFacts().bound_names(body) if unshared else ()
        declared = [name for name in bound if name in unshared]
        if declared:
            start.append(ast.copy_location(ast.Global(declared), like))
        if names:
            start.append(ast.copy_location(ast.Nonlocal(list(names)), like))
        args = ast.arguments(
            posonlyargs=[], kwonlyargs=[], kw_defaults=[], defaults=[],
            args=[ast.copy_location(ast.arg(argument), like)] if argument else [],
        )
        made = ast.FunctionDef(
            name=f"_fusec_{stem}_{self.numbers}", args=args, decorator_list=[],
            body=[*start, *body] or [ast.copy_location(ast.Pass(), like)],
        )
        made.type_params = []  # type: ignore[attr-defined,unused-ignore]
        return ast.copy_location(made, like)

    def _strings(self, names: Sequence[str], like: ast.stmt) -> ast.expr:
        return constant(tuple(names), like)

    def _names(self, body: Sequence[ast.stmt]) -> dict[str, None]:
        """Names bound by the statements, as variables of the whole function."""
        assert self.current is not None
        names = [n for n in self.facts.bound_names(body) if n not in self.current.unshared]
        self.current.shared.update((n, None) for n in names if n not in self.current.outer)
        found = self.facts.exits(body)
        flags = self._flags(found) if found else []
        if "return" in found:
            self._use_returned()
            flags.append(RESULT)
        return dict.fromkeys([*names, *flags])

    def _bound(self, names: dict[str, None]) -> dict[str, None]:
        assert self.current is not None
        own = {n: None for n in names if n not in self.current.unshared}
        self.current.shared.update((n, None) for n in own if n not in self.current.outer)
        return own

    def _flags(self, found: frozenset[str]) -> list[str]:
        names = {"return": RETURNED}
        if self.loop is not None:
            names |= {"break": self.loop.broke, "continue": self.loop.skipped}
        return [names[kind] for kind in ("return", "break", "continue") if kind in found]

    def _use_returned(self) -> None:
        assert self.current is not None
        self.current.returns = True
        self.current.shared.update({RETURNED: None, RESULT: None})

    def _set(self, name: str, value: bool, like: ast.stmt) -> ast.stmt:
        return self._assign(self.name(name, STORE, like), constant(value, like), like)


def _facts(body: list[ast.stmt], facts: StatementFacts) -> Function:
    unshared, outer = set(), set()
    for statement in body:
        for node in flow.inside(statement):
            if isinstance(node, ast.Global):
                unshared.update(node.names)
            if isinstance(node, ast.Nonlocal):
                outer.update(node.names)
    return Function(unshared, outer, flow.Liveness(body, facts), CertainReads(body, facts), {})


def _shared_with_inner(node: ast.FunctionDef, facts: StatementFacts) -> list[str]:
    """The function's variables that functions inside it assign."""
    inner = {name for n in ast.walk(node) if isinstance(n, ast.Nonlocal) for name in n.names}
    if not inner:
        return []
    args = node.args
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    own = {a.arg for a in named if a is not None} | {*facts.bound_names(node.body)}
    return sorted((own & inner) - _declared(node.body))


def _declared(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that a function itself, and none inside it, declares global or nonlocal."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Global | ast.Nonlocal):
            found.update(node.names)
        elif not isinstance(node, flow.FUNCTIONS):
            found |= _declared(ast.iter_child_nodes(node))
    return found
