"""The function being rewritten: its variables, which its parts share, and flags of its exits."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from fusec.core.records import dataclass, field

from ..source.source import FunctionNode, Source
from . import flow
from .certain_reads import CertainReads
from .conditions import Conditions
from .statement_facts import StatementFacts
from .transformer import LOAD, STORE, constant, without_definition_time
from .whole_lists import mark_lists

RETURNED = "_fusec_returned"
RESULT = "_fusec_result"
SETTER = "_fusec_set_"  # prefix: the function ``_fusec_set_x`` binds the user's ``x``


@dataclass
class LoopFlags:
    """The flags of the innermost loop: left by a ``break``, iteration ended by a ``continue``."""

    broke: str
    skipped: str


@dataclass
class FunctionScope:
    """The function being rewritten."""

    unshared: set[str]  # names declared global
    outer: set[str]  # names declared nonlocal
    liveness: flow.Liveness
    reads: CertainReads
    shared: dict[str, None]  # local variables that its parts bind
    returns: bool = False  # whether the flag RETURNED is used
    setters: dict[str, ast.expr] = field(default_factory=dict)  # names bound within expressions


class Functions(Conditions):
    """Functions whose branches and loops are local functions that share the variables."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.numbers = 0
        self.current: FunctionScope | None = None
        self.loop: LoopFlags | None = None
        self.guarded: set[str] = set()
        self.in_lambda = False
        self.sets_flags = False  # whether exits of the visited statement set flags

    def convert(self, node: FunctionNode) -> FunctionNode:
        if isinstance(node, ast.Lambda):
            return super().convert(node)
        function = without_definition_time(node)
        function.body = self.function_body(node)
        return function

    def function_body(self, node: ast.FunctionDef) -> list[ast.stmt]:
        """The statements of a function; loops and functions around it do not matter."""
        saved = self.current, self.loop, self.guarded, self.in_lambda
        self.current, self.loop, self.guarded = _function_facts(node.body, self.facts), None, set()
        self.in_lambda = False
        mark_lists(node)
        frame = self.frame(node, _assigned_by_nested(node, self.facts))
        body = self.tail(node.body)
        start = [self._declaration(name, node) for name in self.current.shared]
        if self.current.returns:
            start.append(self._set_flag(RETURNED, False, node.body[0]))
        start += [self._setter(name, like) for name, like in self.current.setters.items()]
        self.current, self.loop, self.guarded, self.in_lambda = saved
        return [frame, *start, *body]

    def tail(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements after which the function returns; see `ControlFlow`."""
        raise NotImplementedError

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        saved, self.in_lambda = self.in_lambda, True
        converted = super().visit_Lambda(node)
        self.in_lambda = saved
        return converted

    def visit_AnnAssign(self, node: ast.AnnAssign) -> object:
        """An annotation without a value only makes its name local."""
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
        """``name := value`` may move into a thunk, so a local function (the setter) binds the name.
        """
        if not self.has_setters:
            return self.generic_visit(node)  # type: ignore[return-value]
        assert self.current is not None
        name = node.target.id
        self.current.setters.setdefault(name, node)
        self._as_variables({name: None})
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
        setter = self._local_function("set", [assign, back], names, statement, "_fusec_value")
        setter.name = SETTER + name
        return setter

    # -- parts ------------------------------------------------------------------------------------

    def _declaration(self, name: str, like: ast.stmt) -> ast.stmt:
        """``name: None``, which makes the name a local variable that parts declare nonlocal."""
        annotation = ast.AnnAssign(self.name(name, STORE, like), constant(None, like), None, 1)
        return ast.copy_location(annotation, like)

    def _local_function(
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
        function = ast.FunctionDef(
            name=f"_fusec_{stem}_{self.numbers}", args=args, decorator_list=[],
            body=[*start, *body] or [ast.copy_location(ast.Pass(), like)],
        )
        function.type_params = []  # type: ignore[attr-defined,unused-ignore]
        return ast.copy_location(function, like)

    def _name_tuple(self, names: Sequence[str], like: ast.stmt) -> ast.expr:
        return constant(tuple(names), like)

    def _bound_variables(self, body: Sequence[ast.stmt]) -> dict[str, None]:
        """The variables that the statements bind, with flags of their exits; shared from now on."""
        assert self.current is not None
        names = [n for n in self.facts.bound_names(body) if n not in self.current.unshared]
        self.current.shared.update((n, None) for n in names if n not in self.current.outer)
        exits = self.facts.exits(body)
        flags = self._exit_flags(exits) if exits else []
        if "return" in exits:
            self._use_returned()
            flags.append(RESULT)
        return dict.fromkeys([*names, *flags])

    def _as_variables(self, names: dict[str, None]) -> dict[str, None]:
        assert self.current is not None
        variables = {n: None for n in names if n not in self.current.unshared}
        self.current.shared.update((n, None) for n in variables if n not in self.current.outer)
        return variables

    def _exit_flags(self, exits: frozenset[str]) -> list[str]:
        names = {"return": RETURNED}
        if self.loop is not None:
            names |= {"break": self.loop.broke, "continue": self.loop.skipped}
        return [names[kind] for kind in ("return", "break", "continue") if kind in exits]

    def _use_returned(self) -> None:
        assert self.current is not None
        self.current.returns = True
        self.current.shared.update({RETURNED: None, RESULT: None})

    def _set_flag(self, name: str, value: bool, like: ast.stmt) -> ast.stmt:
        return self._assign(self.name(name, STORE, like), constant(value, like), like)


def _function_facts(body: list[ast.stmt], facts: StatementFacts) -> FunctionScope:
    unshared, outer = set(), set()
    for statement in body:
        for node in flow.walk_scope(statement):
            if isinstance(node, ast.Global):
                unshared.update(node.names)
            if isinstance(node, ast.Nonlocal):
                outer.update(node.names)
    return FunctionScope(unshared, outer, flow.Liveness(body, facts), CertainReads(body, facts), {})


def _assigned_by_nested(node: ast.FunctionDef, facts: StatementFacts) -> list[str]:
    """The function's variables that nested functions assign."""
    inner = {name for n in flow.walk(node) if isinstance(n, ast.Nonlocal) for name in n.names}
    if not inner:
        return []
    return sorted((facts.variables(node) & inner) - _declared_names(node.body))


def _declared_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Names declared global or nonlocal, declarations in nested functions left out."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Global | ast.Nonlocal):
            names.update(node.names)
        elif not isinstance(node, flow.FUNCTIONS):
            names |= _declared_names(ast.iter_child_nodes(node))
    return names
