"""Statements of a function that is read from its bytecode (see `expressions`)."""

from __future__ import annotations

import ast
import itertools
import sys
from typing import Any

from fusec.core.records import dataclass

from .branches import FAILURES, Branches, in_place
from .bytecode import CodeStep
from .expressions import DEL, AssertionFailed, CannotDecompile, FunctionParts, InPlace, Iter, Stack

# Where conditional jumps go backwards, a test before an unconditional one is a ``continue``.
_JUMPS_BACK = sys.version_info < (3, 12)
_STORES = ("STORE", "STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "UNPACK_SEQUENCE", "UNPACK_EX")


@dataclass(frozen=True)
class LoopSteps:
    """The innermost loop, by steps: where an iteration begins, and where the loop ends.

    ``tested``: it is a ``while`` whose test the compiler has repeated at the end of the body."""

    head: int
    exit: int
    tested: bool = False


class Blocks(Branches):
    """Reads statements."""

    # -- functions

    def function_tree(self, parts: FunctionParts) -> Any:
        reader = self if parts.code is self.code else type(self)(parts.code, self.joins)
        body = reader.block(0, reader.end, [], None)
        arguments = _arguments(parts)
        if parts.code.co_name == "<lambda>":
            return ast.Lambda(arguments, _expression(body))
        body = [*reader.declared.values(), *body]
        node = ast.FunctionDef(parts.code.co_name, arguments, body, [])
        node.type_params = []  # type: ignore[attr-defined,unused-ignore]  # from Python 3.12 on
        return node

    def declare(self, step: CodeStep) -> None:
        name = step.arg
        if name in self.code.co_freevars:
            self.declared[name] = self.at(ast.Nonlocal([name]))
        elif name not in self.code.co_varnames and name not in self.code.co_cellvars:
            self.declared[name] = self.at(ast.Global([name]))

    # -- blocks

    def block(self, i: int, stop: int, base: Stack, loop: LoopSteps | None, entered: int = -1
              ) -> list[ast.stmt]:
        """The statements of steps ``i`` to ``stop``.  ``base``: the iterators of the loops around
        them, on the stack; ``entered``: the first step of the ``while True`` that they are in."""
        body: list[ast.stmt] = []
        while i < stop:
            i = self.dead.get(i, i)
            if self.op(i, "BEGIN_TRY"):
                i = self.try_statement(i, base, loop, body)
                continue
            back = self._last_jump_to(i, stop) if i != entered else -1
            if back > i and not self._is_while(i, stop, base):
                inside = self.block(i, back + self._tests(back), base, LoopSteps(i, back + 1), i)
                body.append(self.at(ast.While(self.at(ast.Constant(True)), inside or passing(self),
                                              [])))
                i = back + 1
                continue
            entered = -1
            start, stack = i, list(base)
            i = self.values(i, stop, stack)
            if i >= stop:
                if len(stack) != len(base):
                    raise CannotDecompile
                break
            i = self.statement(start, i, stop, stack, base, loop, body)
        return body

    def _tests(self, i: int) -> int:
        return int(self.steps[i].op != "JUMP_BACKWARD")

    def _last_jump_to(self, i: int, stop: int) -> int:
        if i < len(self.steps) and self.steps[i].op == "FOR_ITER":
            return -1
        return max((b for b in range(i, stop) if self.steps[b].to == i), default=-1)

    def statement(
        self, start: int, i: int, stop: int, stack: Stack, base: Stack, loop: LoopSteps | None,
        body: list[ast.stmt],
    ) -> int:
        """Add the statement that ends, or branches, at step ``i``; returns the step after it."""
        self.step = step = self.steps[i]
        if step.op in _STORES or step.op == "COPY":
            return self._assign(i, stack, base, body)
        if self.jump(i) is not None:
            return self._branch(start, i, stop, stack, base, loop, body)
        if step.op == "FOR_ITER":
            return self._for(i, stack, base, body)
        if step.op == "BEFORE_WITH":
            return self.with_statement(i, stack, base, loop, body)
        if step.op == "POP_TOP":
            return self._discard(i, stack, loop, body)
        if step.op in ("JUMP_FORWARD", "JUMP_BACKWARD"):
            return self._jump(i, stop, loop, body)
        if step.op == "IMPORT_NAME":
            return self._import(i, stack, body)
        method = getattr(self, f"do_{step.op}", None)
        if method is None:
            raise CannotDecompile
        body.append(self.at(method(step, stack)))
        return i + 1

    def do_RETURN_VALUE(self, step: CodeStep, stack: Stack) -> ast.stmt:
        return ast.Return(stack.pop())

    def do_RAISE_VARARGS(self, step: CodeStep, stack: Stack) -> ast.stmt:
        parts = self.pop(stack, step.arg)
        failed = parts[0] if parts else None
        if isinstance(failed, AssertionFailed | tuple):
            message = failed[1:] if isinstance(failed, tuple) else ()
            return ast.Assert(ast.Constant(False), *message)
        return ast.Raise(*parts)

    def do_DELETE(self, step: CodeStep, stack: Stack) -> ast.stmt:
        self.declare(step)
        return ast.Delete([self.name(step.arg, DEL)])

    def do_DELETE_ATTR(self, step: CodeStep, stack: Stack) -> ast.stmt:
        return ast.Delete([self.at(ast.Attribute(stack.pop(), step.arg, DEL))])

    def do_DELETE_SUBSCR(self, step: CodeStep, stack: Stack) -> ast.stmt:
        owner, key = self.pop(stack, 2)
        return ast.Delete([self.at(ast.Subscript(owner, key, DEL))])

    # -- imports

    def _import(self, i: int, stack: Stack, body: list[ast.stmt]) -> int:
        """Add the import statement at step ``i``; returns the step after it."""
        module = self.steps[i].arg
        level, names = self.pop(stack, 2)
        if isinstance(names, ast.Constant):
            dots = module.count(".")  # ``import a.b as c`` loads b from module a
            name, i = self._stored(i + 1 if self.op(i + 1, "STORE") else i + 3 * dots - 1)
            alias = None if name == module.partition(".")[0] else name
            body.append(self.at(ast.Import([self.at(ast.alias(module, alias))])))
            return i + (alias is not None and dots > 0)
        aliases, i = [], i + 1
        while self.op(i, "IMPORT_FROM"):
            name = self.steps[i].arg
            alias, i = self._stored(i + 1)
            aliases.append(self.at(ast.alias(name, None if alias == name else alias)))
        body.append(self.at(ast.ImportFrom(module or None, aliases, level.value)))
        return i + 1

    def _stored(self, i: int) -> tuple[str, int]:
        if not self.op(i, "STORE"):
            raise CannotDecompile
        self.declare(self.steps[i])
        return self.steps[i].arg, i + 1

    # -- assignment

    def _assign(self, i: int, stack: Stack, base: Stack, body: list[ast.stmt]) -> int:
        pairs: list[tuple[Any, Any]] = []
        while not pairs or len(stack) > len(base):
            i = self.values(i, len(self.steps), stack)
            if self.op(i, "COPY"):
                stack.append(stack[-1])
                i += 1
            target, value, i = self.store(i, stack)
            pairs.append((target, value))
        body.append(self.at(self._assignment(pairs)))
        return i

    def _assignment(self, pairs: list[tuple[Any, Any]]) -> ast.stmt:
        target, value = pairs[0]
        if isinstance(value, FunctionParts):
            return self._definition(pairs)
        if isinstance(value, InPlace):
            if len(pairs) != 1 or not in_place(target, value):
                raise CannotDecompile
            return ast.AugAssign(target, value.op, value.right)
        if all(v is value for _, v in pairs):
            return ast.Assign([t for t, _ in pairs], value)
        pairs.sort(key=lambda pair: pair[1].number)  # as they were evaluated
        targets = self.at(ast.Tuple([t for t, _ in pairs], ast.Store()))
        return ast.Assign([targets], self.at(ast.Tuple([v for _, v in pairs], ast.Load())))

    def _definition(self, pairs: list[tuple[Any, Any]]) -> ast.stmt:
        (target, parts), = pairs
        if not isinstance(target, ast.Name) or target.id != parts.code.co_name:
            raise CannotDecompile
        return self.function_tree(parts)

    # -- control flow

    def _branch(
        self, start: int, i: int, stop: int, stack: Stack, base: Stack, loop: LoopSteps | None,
        body: list[ast.stmt],
    ) -> int:
        first = stack.pop()
        if len(stack) != len(base):
            raise CannotDecompile
        test, when, to, following = self.test(i, stop, first)
        test = self.negated(test, when)
        is_last = loop is not None and to == loop.head  # otherwise the next iteration follows
        end = stop if is_last else to
        bottom = self.bottom(start, following, end)
        if bottom >= 0:
            inside = self.block(following, bottom, base, LoopSteps(start, end, True))
            body.append(self.at(ast.While(test, inside or passing(self), [])))
            return end
        if loop and is_last:
            if following >= loop.exit:
                body.append(self.at(ast.If(test, [self.at(ast.Break())], [])))
                return stop
            if (_JUMPS_BACK or loop.tested) and self.steps[following - 1].op == "JUMP_BACKWARD":
                leave = self.at(ast.If(self.negated(test, True), [self.at(ast.Continue())], []))
                body.append(leave)
                return following
            to = stop
        return self._if(test, following, min(to, stop), stop, base, loop, body)

    def _is_while(self, i: int, stop: int, base: Stack) -> bool:
        """Whether a ``while`` with a test begins at step ``i``."""
        stack = list(base)
        try:
            j = self.values(i, stop, stack)
            if self.jump(j) is None:
                return False
            _, _, to, following = self.test(j, stop, stack[-1])
        except FAILURES:
            return False
        return self.bottom(i, following, to if to > i else stop) >= 0

    def _if(
        self, test: ast.expr, i: int, end: int, stop: int, base: Stack, loop: LoopSteps | None,
        body: list[ast.stmt],
    ) -> int:
        last, orelse, after = self.steps[end - 1], [], end
        leaves = loop is not None and last.to == loop.exit
        if last.op == "JUMP_FORWARD" and last.to > end and not leaves:
            after = min(last.to, stop)
        elif last.op == "JUMP_BACKWARD" and loop and last.to == loop.head and (
                end < stop and not loop.tested):
            after = stop
        then = self.block(i, end - (after > end), base, loop)
        if after > end:
            orelse = self.block(end, after, base, loop)
        if len(then) == 1 and isinstance(then[0], ast.Assert) and not orelse:
            test = test.operand if isinstance(test, ast.UnaryOp) else test
            body.append(self.at(ast.Assert(test, then[0].msg)))
        else:
            body.append(self.at(ast.If(test, then or passing(self), orelse)))
        return after

    def _for(self, i: int, stack: Stack, base: Stack, body: list[ast.stmt]) -> int:
        iterated, end = stack.pop(), self.steps[i].to
        if len(stack) != len(base) or not isinstance(iterated, Iter):
            raise CannotDecompile
        target, following = self.loop_target(i)
        last = self.steps[end - 1]
        is_back = last.op == "JUMP_BACKWARD" and last.to == i
        leaves = [b.to for a, b in itertools.pairwise(self.steps[i: end])
                  if (a.op, b.op) == ("POP_TOP", "JUMP_FORWARD") and b.to > end]
        after = max(leaves, default=end)
        inside = self.block(following, end - is_back, [*base, iterated], LoopSteps(i, after))
        orelse = self.block(end, after, base, None)
        body.append(self.at(ast.For(target, iterated.over, inside or passing(self), orelse)))
        return after

    def _discard(self, i: int, stack: Stack, loop: LoopSteps | None, body: list[ast.stmt]) -> int:
        """A value is popped: that of an expression statement, or an iterator where a ``break`` or
        ``return`` leaves its loop."""
        value = stack.pop()
        if not isinstance(value, Iter):
            body.append(self.at(ast.Expr(value)))
            return i + 1
        assert loop is not None
        length = self._break_length(i + 1, loop)
        if length and not (stack and not isinstance(stack[-1], Iter)):
            body.append(self.at(ast.Break()))
            return i + 1 + length
        while not self.op(i := self.values(i + 1, len(self.steps), stack), "RETURN_VALUE"):
            if not self.op(i, "POP_TOP") or not isinstance(stack.pop(), Iter):
                raise CannotDecompile
        body.append(self.at(ast.Return(stack.pop())))
        return i + 1

    def _break_length(self, i: int, loop: LoopSteps) -> int:
        """The number of steps here that are a ``break``: a jump behind the loop, or a copy of the
        steps there up to a return; 0 for no ``break``."""
        if self.op(i, "JUMP_FORWARD") and self.steps[i].to == loop.exit:
            return 1
        after = self.steps[loop.exit:]
        length = 1 + next((n for n, s in enumerate(after) if s.op == "RETURN_VALUE"), len(after))
        copied = [(s.op, s.arg) for s in self.steps[i: i + length]]
        return length * (copied == [(s.op, s.arg) for s in after[:length]])

    def _jump(self, i: int, stop: int, loop: LoopSteps | None, body: list[ast.stmt]) -> int:
        to = self.steps[i].to
        if loop and to == loop.head:
            body.append(self.at(ast.Continue()))
        elif loop and to == loop.exit:
            body.append(self.at(ast.Break()))
        elif to < stop or i != stop - 1:
            raise CannotDecompile
        return i + 1


    # -- regions with handlers

    def with_statement(
        self, i: int, stack: Stack, base: Stack, loop: LoopSteps | None, body: list[ast.stmt]
    ) -> int:
        """Add the ``with`` statement that is entered at step ``i``; returns the step after it."""
        raise NotImplementedError

    def try_statement(
        self, i: int, base: Stack, loop: LoopSteps | None, body: list[ast.stmt]
    ) -> int:
        """Add the ``try`` statement that begins at step ``i``; returns the step after it."""
        raise NotImplementedError


def passing(reader: Blocks) -> list[ast.stmt]:
    return [reader.at(ast.Pass())]


def _expression(body: list[ast.stmt]) -> ast.expr:
    """The expression that a lambda's statements return."""
    first, *rest = body
    if isinstance(first, ast.Return) and first.value is not None:
        return first.value
    if isinstance(first, ast.If):
        then, orelse = _expression(first.body), _expression([*first.orelse, *rest])
        return ast.copy_location(ast.IfExp(first.test, then, orelse), first)
    raise CannotDecompile


def _arguments(parts: FunctionParts) -> ast.arguments:
    code = parts.code
    names = [ast.arg(name) for name in code.co_varnames]
    plain, only = code.co_argcount, code.co_kwonlyargcount
    rest = iter(names[plain + only:])
    kwonly = names[plain: plain + only]
    defaults = {} if parts.kwdefaults is None else {
        k.value: v for k, v in zip(parts.kwdefaults.keys, parts.kwdefaults.values, strict=True)}
    return ast.arguments(
        posonlyargs=names[: code.co_posonlyargcount], args=names[code.co_posonlyargcount: plain],
        vararg=next(rest) if code.co_flags & 0x04 else None, kwonlyargs=kwonly,
        kw_defaults=[defaults.get(a.arg) for a in kwonly],
        kwarg=next(rest) if code.co_flags & 0x08 else None,
        defaults=[] if parts.defaults is None else parts.defaults.elts)
