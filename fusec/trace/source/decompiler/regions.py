"""``with`` and ``try`` of a function that is read from its bytecode (see `expressions`)."""

from __future__ import annotations

import ast
from types import CodeType
from typing import Any

from .blocks import Blocks, LoopSteps, passing
from .branches import FAILURES
from .exception_regions import LEAVING
from .expressions import CannotDecompile, FunctionParts, Stack

_PAIRS = {"BEFORE_WITH": "END_WITH", "BEGIN_TRY": "END_TRY"}


def decompiled(code: CodeType, joins: bool = True) -> ast.FunctionDef | ast.Lambda:
    """A function that ``code`` may have been compiled from; ``joins``: see `Branches`.

    Raises ``CannotDecompile``.
    """
    reader = Regions(code, joins)
    try:
        node: Any = reader.function_tree(FunctionParts(code))
    except FAILURES as error:
        raise CannotDecompile(reader.step.place[0] or code.co_firstlineno) from error
    return ast.fix_missing_locations(reader.at(node))


class Regions(Blocks):
    """Reads statements that have handlers of exceptions."""

    def _end(self, i: int) -> int:
        """The bracket that ends the region which begins at step ``i``."""
        begin, depth = self.steps[i].op, 0
        for j in range(i, len(self.steps)):
            depth += self.op(j, begin) - self.op(j, _PAIRS[begin])
            if not depth:
                return j
        raise CannotDecompile

    def with_statement(
        self, i: int, stack: Stack, base: Stack, loop: LoopSteps | None, body: list[ast.stmt]
    ) -> int:
        context, target, following = stack.pop(), None, i + 2
        if len(stack) != len(base):
            raise CannotDecompile
        if not self.op(i + 1, "POP_TOP"):
            target, _, following = self.store(i + 1, [self.at(ast.Constant(None))])
        end = self._end(i)
        inside = self.block(following, end, base, loop)
        item = ast.withitem(context, target)
        body.append(self.at(ast.With([item], inside or passing(self))))
        return end + 1

    def try_statement(
        self, i: int, base: Stack, loop: LoopSteps | None, body: list[ast.stmt]
    ) -> int:
        end, handler = self._end(i), self.steps[i].to + 1
        inside = self.block(i + 1, end, base, loop) or passing(self)
        last = self._final(handler)
        if last >= 0:
            final = self.block(handler, last, base, None)
            body.append(self.at(ast.Try(inside, [], [], final)))
            return end + 1 + self._copied(handler, last, end + 1)
        handlers, after = self._handlers(handler, end, base, loop)
        is_far = after >= self.end  # only handlers reach what follows
        orelse = self.block(end + 1, after, base, loop) if not is_far and after > end + 1 else []
        body.append(self.at(ast.Try(inside, handlers, orelse, [])))
        if is_far:
            body += self.block(after, self._left(after), base, loop)
        return end + 1 if is_far else max(after, end + 1)

    def _left(self, i: int) -> int:
        """The end of the code from step ``i`` to the next handler."""
        while i < len(self.steps) and not (
                self.op(i, "PUSH_EXC_INFO") or self.op(i, "RERAISE")
                or self.op(i, "COPY", "POP_EXCEPT", "RERAISE")):
            i += 1
        return i

    def _final(self, i: int) -> int:
        """The end of the ``finally`` block that begins at step ``i``; -1 where it is another
        handler's."""
        for j in range(i, len(self.steps)):
            if self.op(j, "CHECK_EXC_MATCH") or self.op(j, "POP_EXCEPT"):
                return -1
            if self.op(j, "RERAISE"):
                return j if j > i else -1
        return -1

    def _copied(self, i: int, stop: int, to: int) -> int:
        """How many steps a ``finally`` block has, which follows its region once more."""
        def ops(i: int) -> list[Any]:
            return [(s.op, s.arg if s.to < 0 else None) for s in self.steps[i: i + length]]

        length = stop - i
        if ops(i) != ops(to):
            raise CannotDecompile
        return length

    # -- except

    def _handlers(
        self, i: int, end: int, base: Stack, loop: LoopSteps | None
    ) -> tuple[list[ast.ExceptHandler], int]:
        """The handlers from step ``i`` on, and the step where all go on, -1 where none does."""
        handlers, after = [], -1
        while not self.op(i, "RERAISE"):
            kind, name, begin, following = self._caught(i)
            stop = self._handled(begin, following, name)
            inside = self.block(begin, stop, base, loop)
            if self.op(stop, "POP_EXCEPT"):
                left = stop + 1 + 3 * (name is not None)
                goes_on, more = self._goes_on(left, end, base, loop)
                after = max(after, goes_on)
                inside += more
            handlers.append(self.at(ast.ExceptHandler(kind, name, inside or passing(self))))
            if kind is None:
                break
            i = following
        return handlers, after

    def _caught(self, i: int) -> tuple[ast.expr | None, str | None, int, int]:
        """The class that the handler at step ``i`` catches, its name for it, where its body begins,
        and the next handler."""
        kind, following = None, len(self.steps)
        if not self.op(i, "POP_TOP"):
            stack: Stack = []
            i = self.values(i, following, stack)
            jump = self.jump(i + 1)
            if not self.op(i, "CHECK_EXC_MATCH") or jump is None:
                raise CannotDecompile
            (kind,), following, i = stack, jump[1], i + 2
        name = self.steps[i].arg if self.op(i, "STORE") else None
        return kind, name, i + 1, following

    def _handled(self, i: int, following: int, name: str | None) -> int:
        """Where the body of a handler ends."""
        while i < following and not (
                self.op(i, "POP_EXCEPT") or self.op(i, "COPY", "POP_EXCEPT", "RERAISE") or (
                    self.op(i, "LOAD_CONST", "STORE", "DELETE", "RERAISE")
                    and self.steps[i + 1].arg == name)):
            i += 1
        return i

    def _goes_on(
        self, i: int, end: int, base: Stack, loop: LoopSteps | None
    ) -> tuple[int, list[ast.stmt]]:
        """Where a handler that has ended at step ``i`` goes on, -1 where it leaves; and its
        statements before."""
        step = self.steps[i]
        if step.op in ("JUMP_FORWARD", "JUMP_BACKWARD"):
            if loop is None or step.to != loop.head:
                return step.to, []
            is_last = self.op(end + 1, "JUMP_BACKWARD")
            return -1, [] if is_last else [self.at(ast.Continue())]
        stop = next(j for j in range(i, len(self.steps)) if self.steps[j].op in LEAVING) + 1
        copied = [(s.op, s.arg) for s in self.steps[i: stop]]
        if copied == [(s.op, s.arg) for s in self.steps[end + 1: end + 1 + stop - i]]:
            return -1, []
        if self.op(stop - 1, "RETURN_VALUE") and not self.op(i, "LOAD_CONST", "RETURN_VALUE") and (
                not base):
            return i, []  # in the handler, the value would be computed before its end
        return -1, self.block(i, stop, base, loop)
