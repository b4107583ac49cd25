"""Rewrites branches and loops into hook calls, so that a tracer can put them into the graph.

``if test: A else: B`` becomes two local functions that share the user's variables (``nonlocal``)
and a call ``__fusec__.if_(where, test, then, orelse, ...)``; loops likewise.  A ``return``,
``break`` or ``continue`` leaves no function but its own, so exits are rewritten first: statements
after a branch that always exits move into the other branch, other exits set flags (``_fusec_...``)
that guard the statements after them.  `StatementFacts.stays_python` has those that keep their form.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..source.matches import Matches
from ..source.source import FunctionNode, Source
from .defined_in_sides import DefinedInSides
from .definitions import RESULT, RETURNED, Functions, LoopFlags
from .generator_loops import GeneratorLoops
from .statements import Statements
from .transformer import LOAD, STORE, constant


def convert_tree(source: Source, structured: bool) -> FunctionNode:
    """The function's tree with hooks, its control flow too if ``structured``.

    The tree of ``source`` is changed in place.
    """
    if structured:
        _Simpler(source.node).visit(source.node)
    return (ControlFlow if structured else Statements)(source).convert(source.node)


class _Simpler(GeneratorLoops, Matches, DefinedInSides):
    """All in one walk over the tree."""


class ControlFlow(Functions):
    """`Statements` with branches and loops as hooks."""

    # -- blocks -----------------------------------------------------------------------------------

    def tail(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements after which the function returns: a ``return`` stays one."""
        out: list[ast.stmt] = []
        for k, node in enumerate(body):
            rest = list(body[k + 1:])
            if isinstance(node, ast.Return):
                return [*out, self.visit(node)]
            if "return" not in self.facts.exits([node]) or self.facts.stays_python(node):
                out += self._flagging(node)
            elif isinstance(node, ast.If):
                return out + self._tail_branch(node, rest)
            else:
                return out + self._tail_loop(node, rest)
        return out

    def _tail_branch(self, node: ast.If, rest: list[ast.stmt]) -> list[ast.stmt]:
        then, orelse = self.facts.always_exits(node.body), self.facts.always_exits(node.orelse)
        if not (then or orelse) and rest:
            return [*self.branch(node, node.body, node.orelse), *self._after_return(node, rest)]
        bodies = [[*b, *([] if ended else rest)]
                  for b, ended in ((node.body, then), (node.orelse, orelse))]
        return self._returning(node, self.condition(node.test), *bodies)

    def _tail_loop(self, node: ast.stmt, rest: list[ast.stmt]) -> list[ast.stmt]:
        out = self._flagging(node)
        if self.facts.is_endless(node):
            return [*out, self._return_result(node)]
        return out + self._after_return(node, rest)

    def _after_return(self, node: ast.stmt, rest: list[ast.stmt]) -> list[ast.stmt]:
        """``if returned: return result``, else the rest."""
        self._use_returned()
        test = self.name(RETURNED, LOAD, node)
        return self._returning(node, test, [self._return_result(node)], rest)

    def _return_result(self, node: ast.stmt) -> ast.stmt:
        return ast.copy_location(ast.Return(self.name(RESULT, LOAD, node)), node)

    def _returning(
        self, node: ast.stmt, test: ast.expr, then: list[ast.stmt], orelse: list[ast.stmt]
    ) -> list[ast.stmt]:
        """A ``return`` of whichever block the test chooses."""
        names = self._bound_variables([*then, *orelse])
        functions, thunks = [], []
        for stem, body in (("then", then), ("orelse", orelse)):
            statements = self.tail(body)
            functions.append(self._local_function(stem, statements, names, node))
            thunks.append(self.name(functions[-1].name, LOAD, node))
        call = self.hook("if_return", node, test, *thunks)
        return [*functions, ast.copy_location(ast.Return(call), node)]

    def inner(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements of a branch or loop body, whose exits set flags."""
        out: list[ast.stmt] = []
        for k, node in enumerate(body):
            rest = list(body[k + 1:])
            if isinstance(node, ast.Return | ast.Break | ast.Continue):
                return out + self._exit(node)
            exits = self.facts.exits([node])
            if not exits:
                out += self._flagging(node)
            elif isinstance(node, ast.If):
                return out + self._inner_branch(node, rest, exits)
            else:
                return [*out, *self._flagging(node), *self._guarded(node, rest, exits)]
        return out

    def _inner_branch(
        self, node: ast.If, rest: list[ast.stmt], exits: frozenset[str]
    ) -> list[ast.stmt]:
        then, orelse = self.facts.always_exits(node.body), self.facts.always_exits(node.orelse)
        if not rest or (then and orelse):
            return self.branch(node, node.body, node.orelse)
        if then:
            return self.branch(node, node.body, [*node.orelse, *rest], rest)
        if orelse:
            return self.branch(node, [*node.body, *rest], node.orelse, rest)
        return [*self.branch(node, node.body, node.orelse), *self._guarded(node, rest, exits)]

    def _exit(self, node: ast.Return | ast.Break | ast.Continue) -> list[ast.stmt]:
        if isinstance(node, ast.Return):
            value = self.hook("returned", node, self.visit(node.value)) if node.value else (
                constant(None, node))
            self._use_returned()
            return [self._assign(self.name(RESULT, STORE, node), value, node),
                    self._set_flag(RETURNED, True, node)]
        assert self.loop is not None
        is_break = isinstance(node, ast.Break)
        return [self._set_flag(self.loop.broke if is_break else self.loop.skipped, True, node)]

    def _guarded(
        self, node: ast.stmt, rest: list[ast.stmt], exits: frozenset[str]
    ) -> list[ast.stmt]:
        """The statements after ``node``, run unless one of its exits was taken."""
        if not rest:
            return []
        flags = self._exit_flags(exits)
        self.guarded.update(flags)
        return self._unless(node, flags, rest, self._live_names(rest[-1], rest, after_exit=True))

    def _unless(
        self, node: ast.stmt, flags: list[str], body: list[ast.stmt], needed: list[str]
    ) -> list[ast.stmt]:
        """``if not any(flags): body``."""
        orelse = self._local_function("orelse", self.inner(body), self._bound_variables(body), node)
        then = self._local_function("then", [ast.copy_location(ast.Pass(), node)], {}, node)
        call = self.hook(
            "if_", node, self._any_flag(flags, node), self.name(then.name, LOAD, node),
            self.name(orelse.name, LOAD, node), self._name_tuple(needed, node))
        return [then, orelse, self._expr(call, node)]

    def _any_flag(self, flags: list[str], like: ast.stmt) -> ast.expr:
        """Whether any of the flags is set."""
        if len(flags) == 1:
            return self.name(flags[0], LOAD, like)
        return self.hook("any_flag", like, *(self.name(f, LOAD, like) for f in flags))

    def _flagging(self, node: ast.stmt) -> list[ast.stmt]:
        """The statement rewritten; its exits set flags, which the statements after it test."""
        saved, self.sets_flags = self.sets_flags, bool(self.facts.exits([node])) and (
            not self.facts.stays_python(node))
        statements = self.visit(node)
        self.sets_flags = saved
        return statements if isinstance(statements, list) else [statements]

    def nested(self, body: list[ast.stmt]) -> list[ast.stmt]:
        if not self.sets_flags:
            return self.block(body)
        ends = self.facts.always_exits(body) and self.facts.exits(body) == {"return"}
        statements = self.inner(body)
        # Returns in branches set the flag by data, but at the end of these it is always set.
        return [*statements, self._set_flag(RETURNED, True, body[-1])] if ends else statements

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements whose exits stay Python's."""
        saved, self.sets_flags = self.sets_flags, False
        statements = super().block(body)
        self.sets_flags = saved
        return statements

    # -- branches ---------------------------------------------------------------------------------

    def _stays_python(self, node: ast.stmt) -> bool:
        leaves = "return" in self.facts.exits([node]) and not self.sets_flags
        return self.current is None or self.in_class_body or leaves or self.facts.stays_python(node)

    def visit_If(self, node: ast.If) -> list[ast.stmt] | ast.stmt:
        if self._stays_python(node) or self.facts.exits([node]):
            return super().visit_If(node)
        return self.branch(node, node.body, node.orelse)

    def branch(
        self, node: ast.If, then: list[ast.stmt], orelse: list[ast.stmt],
        moved: Sequence[ast.stmt] = (),
    ) -> list[ast.stmt]:
        test = self.condition(node.test)
        needed = self._live_names(node, [*then, *orelse], moved)
        functions = [
            self._local_function(stem, self.inner(body), self._bound_variables(body), node)
            for stem, body in (("then", then), ("orelse", orelse))
        ]
        thunks = [self.name(f.name, LOAD, node) for f in functions]
        certain = self._certainly_read(node, [*then, *orelse], needed)
        call = self.hook("if_", node, test, *thunks, self._name_tuple(needed, node),
                         *([self._name_tuple(certain, node)] if certain else []))
        return [*functions, self._expr(call, node)]

    def _certainly_read(
        self, node: ast.stmt, body: Sequence[ast.stmt], names: Sequence[str]
    ) -> list[str]:
        """Those of the names that every path after the branch reads."""
        assert self.current is not None
        if self.facts.exits(body):
            return []
        return [n for n in names if n in self.current.reads.after.get(node, ())]

    def _live_names(
        self, node: ast.stmt, body: Sequence[ast.stmt], moved: Sequence[ast.stmt] = (),
        after_exit: bool = False,
    ) -> list[str]:
        """Names bound in the body that may be read after it."""
        assert self.current is not None
        liveness, last = self.current.liveness, moved[-1] if moved else node
        unknown = last not in liveness.after
        live = set(liveness.after.get(last, ()))
        if moved or after_exit or self.facts.exits(body):
            live |= liveness.elsewhere.get(last, set())
        names = self._bound_variables(body)
        return [n for n in names if n in live or unknown or n.startswith("_fusec_")]

    # -- loops ------------------------------------------------------------------------------------

    def after_body(self, node: ast.Try, exits: frozenset[str]) -> list[ast.stmt]:
        """The ``else`` of a ``try``: an exit from the body skips it."""
        if self.sets_flags and exits:
            return self._guarded(node, node.orelse, exits)
        return self.nested(node.orelse)

    def visit_While(self, node: ast.While) -> list[ast.stmt] | ast.stmt:
        if self._stays_python(node):
            return super().visit_While(node)
        test = self.thunk(self.condition(node.test), node.test)
        return self._loop(node, "while_", test, None)

    def visit_For(self, node: ast.For) -> list[ast.stmt] | ast.stmt:
        if self._stays_python(node):
            return super().visit_For(node)
        return self._loop(node, "for_", self.visit(node.iter), node.target)

    def _loop(
        self, node: ast.For | ast.While, hook: str, over: ast.expr, target: ast.expr | None
    ) -> list[ast.stmt]:
        saved = self.loop
        self.numbers += 1
        self.loop = LoopFlags(f"_fusec_broke_{self.numbers}", f"_fusec_skipped_{self.numbers}")
        exits = self.facts.exits(node.body)
        names = self._bound_variables(node.body)
        head = node.test if isinstance(node, ast.While) else node.target
        names = self._as_variables(self.facts.bound_names([head])) | names
        body, argument = self._loop_body(node, target)
        local = self.loop.skipped in self.guarded
        names.pop(self.loop.skipped, None)
        function = self._local_function("body", body, names, node, argument)
        out: list[ast.stmt] = []
        if "break" in exits:
            out.append(self._set_flag(self.loop.broke, False, node))
        stops = self._exit_flags(exits - {"continue"})
        stop = constant(None, node) if not stops else self.thunk(self._any_flag(stops, node), node)
        if not local:
            _drop_flag(function, self.loop.skipped)
        needed = self._names_live_after_loop(node, names)
        self.loop = saved  # ``break`` in ``else`` leaves the outer loop
        orelse = self._loop_else(node, stops)
        call = self.hook(hook, node, over, self.name(function.name, LOAD, node), stop,
                         self._name_tuple(needed, node), self._name_tuple(list(names), node))
        return [*out, function, self._expr(call, node), *orelse]

    def _names_live_after_loop(self, node: ast.stmt, names: dict[str, None]) -> list[str]:
        assert self.current is not None
        live = self.current.liveness.after.get(node, set(names))
        return [n for n in names if n in live or n.startswith("_fusec_")]

    def _loop_body(
        self, node: ast.For | ast.While, target: ast.expr | None
    ) -> tuple[list[ast.stmt], str]:
        assert self.loop is not None
        start = [self._set_flag(self.loop.skipped, False, node)]
        argument = ""
        if target is not None:
            argument = f"_fusec_item_{self.numbers}"
            start += self.store(target, self.name(argument, LOAD, target), node)
        return [*start, *self.inner(node.body)], argument

    def _loop_else(self, node: ast.For | ast.While, stops: list[str]) -> list[ast.stmt]:
        if not node.orelse:
            return []
        if not stops:
            return self.inner(node.orelse)
        return self._unless(node, stops, node.orelse, self._live_names(node, node.orelse))

    # -- the rest ---------------------------------------------------------------------------------

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        if self.source.drops_asserts:
            return node
        if self._keeps_tests(node):
            return super().visit_Assert(node)
        message = self.raised(node.msg) if node.msg else constant(None, node)
        call = self.hook("assert_", node, self.condition(node.test),
                         self.thunk(message, node), constant(node.msg is not None, node))
        return self._expr(call, node)


def _drop_flag(function: ast.FunctionDef, name: str) -> None:
    """Remove the assignments of a flag that nothing reads."""
    for node in ast.walk(function):
        for part in ("body", "orelse"):
            block = getattr(node, part, None)
            if isinstance(block, list) and block:
                others = [s for s in block if not (
                    isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name)
                    and s.targets[0].id == name)]
                if len(others) < len(block):
                    setattr(node, part, others or [ast.copy_location(ast.Pass(), block[0])])
                for s in others:
                    if isinstance(s, ast.Nonlocal) and name in s.names:
                        s.names.remove(name)
                setattr(node, part, [s for s in getattr(node, part)
                                      if not (isinstance(s, ast.Nonlocal) and not s.names)]
                        or [ast.copy_location(ast.Pass(), block[0])])
