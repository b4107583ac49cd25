"""Facts about the control flow of Python statements: exits, bound names, names needed later."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from .transformer import looks_at_frame

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*FUNCTIONS, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.While)
_EXITS = {ast.Return: "return", ast.Break: "break", ast.Continue: "continue"}


def blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    """The statement lists directly inside a statement (none for definitions)."""
    if isinstance(node, _SCOPES):
        return []
    found = [getattr(node, field, []) for field in ("body", "orelse", "finalbody")]
    parts = [*getattr(node, "handlers", []), *getattr(node, "cases", [])]
    return [b for b in [*found, *(part.body for part in parts)] if b]


def exits(body: Iterable[ast.stmt]) -> frozenset[str]:
    """The ways control leaves these statements early: ``return``, ``break``, ``continue``."""
    found: set[str] = set()
    for node in body:
        if type(node) in _EXITS:
            found.add(_EXITS[type(node)])
        elif isinstance(node, LOOPS):
            found |= (exits(node.body) & {"return"}) | exits(node.orelse)
        else:
            for block in blocks(node):
                found |= exits(block)
    return frozenset(found)


def always_exits(body: Sequence[ast.stmt]) -> bool:
    """Whether control never falls off the end of these statements."""
    return any(map(_leaves, body))


def _leaves(node: ast.stmt) -> bool:
    if isinstance(node, ast.Return | ast.Break | ast.Continue | ast.Raise):
        return True
    if isinstance(node, ast.If):
        return always_exits(node.body) and always_exits(node.orelse)
    return is_endless(node)


def is_endless(node: ast.stmt) -> bool:
    """``while True`` that only a ``return`` or an exception leaves."""
    return isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and (
        bool(node.test.value) and "break" not in exits(node.body))


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """The node and everything below it that runs in the same scope."""
    stack = [node]
    while stack:
        found = stack.pop()
        yield found
        if not isinstance(found, _SCOPES) or found is node:
            stack.extend(ast.iter_child_nodes(found))


def stays_python(node: ast.stmt) -> bool:
    """Whether a branch or loop must run as Python runs it.

    So where an exit leads out of ``finally``, where a call looks at its frame, and where a scope is
    declared.
    """
    for found in inside(node):
        if isinstance(found, ast.Try) and exits(found.finalbody):
            return True
        if isinstance(found, ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom):
            return True
        if type(found).__name__ == "TryStar":
            return True
        if looks_at_frame(found):
            return True
    return False


# ----------------------------------------------------------------------------------------- names


def bound_names(nodes: Iterable[ast.AST]) -> dict[str, None]:
    """Names that these statements bind or delete in their own scope, in order."""
    found: dict[str, None] = {}
    for node in nodes:
        _collect_bound(node, found, comprehension=False)
    return found


def _collect_bound(node: ast.AST, found: dict[str, None], comprehension: bool) -> None:
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load) and not comprehension:
            found[node.id] = None
        return
    if isinstance(node, _SCOPES):
        if not isinstance(node, ast.Lambda):
            found[node.name] = None
        return
    if isinstance(node, ast.NamedExpr):  # binds outside a comprehension
        found[node.target.id] = None
        _collect_bound(node.value, found, comprehension)
        return
    if isinstance(node, ast.ExceptHandler) and node.name:
        found[node.name] = None
    if isinstance(node, ast.Import | ast.ImportFrom):
        found.update((a.asname or a.name.partition(".")[0], None) for a in node.names)
    if isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
        found[node.name] = None
    if isinstance(node, ast.MatchMapping) and node.rest:
        found[node.rest] = None
    inner = comprehension or isinstance(node, _COMPREHENSIONS)
    for child in ast.iter_child_nodes(node):
        _collect_bound(child, found, inner)


def loaded_names(node: ast.AST | None) -> set[str]:
    """Every name read below a node, nested scopes included; ``x += 1`` reads ``x``."""
    if node is None:
        return set()
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(
        n.ctx, ast.Store)}
    return found | {n.target.id for n in ast.walk(node) if isinstance(n, ast.AugAssign)
                    and isinstance(n.target, ast.Name)}


def captured_names(body: Iterable[ast.stmt]) -> set[str]:
    """Names that functions defined in the statements read: needed at any time."""
    found: set[str] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, (*_SCOPES, ast.GeneratorExp)):
                found |= loaded_names(node)
    return found


# -------------------------------------------------------------------------------------- liveness


class Liveness:
    """Which names are needed after each statement, by backward analysis.

    ``after[node]`` holds the names that may be read after the statement before they are bound,
    ``elsewhere[node]`` those that may be where a ``break`` or ``continue`` in its place leads.
    """

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self.after: dict[ast.stmt, set[str]] = {}
        self.elsewhere: dict[ast.stmt, set[str]] = {}
        self._always = captured_names(body)
        self._block(body, set(), set(), set())

    def _block(
        self, body: Sequence[ast.stmt], live: set[str], on_break: set[str], on_continue: set[str]
    ) -> set[str]:
        for node in reversed(body):
            live = self._statement(node, live, on_break, on_continue)
        return live

    def _statement(
        self, node: ast.stmt, live: set[str], on_break: set[str], on_continue: set[str]
    ) -> set[str]:
        self._note(node, live)
        self.elsewhere[node] = self.elsewhere.get(node, set()) | on_break | on_continue
        if isinstance(node, ast.Return):
            return loaded_names(node)
        if isinstance(node, ast.Break | ast.Continue):
            return on_break if isinstance(node, ast.Break) else on_continue
        if isinstance(node, ast.If):
            parts = [self._block(b, live, on_break, on_continue) for b in (node.body, node.orelse)]
            return parts[0] | parts[1] | loaded_names(node.test)
        if isinstance(node, LOOPS):
            return self._loop(node, live, on_break, on_continue)
        if blocks(node):
            return self._compound(node, live, on_break, on_continue)
        return (live - set(_only_bound(node))) | loaded_names(node)

    def _note(self, node: ast.stmt, live: set[str]) -> None:
        self.after[node] = self.after.get(node, set()) | live | self._always

    def _loop(
        self, node: ast.For | ast.While, live: set[str], on_break: set[str],
        on_continue: set[str],
    ) -> set[str]:
        after = self._block(node.orelse, live, on_break, on_continue)
        self._note(node, live | after)
        start = loaded_names(node.test) if isinstance(node, ast.While) else set()
        head = after | start
        for _ in range(2):  # once more with what the next iteration needs
            inside = self._block(node.body, head, live, head)
            if isinstance(node, ast.For):
                inside = inside - set(bound_names([node.target])) | loaded_names(node.target)
            head = head | inside
        return head | (loaded_names(node.iter) if isinstance(node, ast.For) else set())

    def _compound(
        self, node: ast.stmt, live: set[str], on_break: set[str], on_continue: set[str]
    ) -> set[str]:
        """``try``, ``with``, ``match``: any block may run, in part."""
        needed = live | loaded_names(node)
        for block in blocks(node):
            needed |= self._block(block, needed, on_break, on_continue)
        return needed


def _only_bound(node: ast.stmt) -> dict[str, None]:
    """Names a simple statement binds without reading them."""
    if isinstance(node, ast.AugAssign):
        return {}
    return bound_names([node])
