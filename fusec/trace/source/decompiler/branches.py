"""Expressions that branch: ``and``, ``or``, ``a if t else b``, ``a < b < c``, comprehensions; and
the tests of statements (see `expressions`)."""

from __future__ import annotations

import ast
from typing import Any

from .bytecode import CodeStep
from .expressions import _COMPREHENSIONS, STORE, CannotDecompile, InPlace, Reader, Stack

# What reading may raise after a wrong guess.
FAILURES = (CannotDecompile, LookupError, AttributeError, TypeError, ValueError)
_ENDING = frozenset({"FOR_ITER", "SET_ADD", "MAP_ADD", "YIELD_VALUE"})
_DISPLAYS = {"BUILD_LIST": ast.ListComp, "BUILD_SET": ast.SetComp, "BUILD_MAP": ast.DictComp}
_TESTS = ("POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE")

# A test: the expression, the truth for which it jumps, the target, and the step after it otherwise.
Test = tuple[ast.expr, bool, int, int]


class Branches(Reader):
    """Reads expressions with branches."""

    def __init__(self, code: Any, joins: bool) -> None:
        super().__init__(code)
        # ``if a: while b:`` and ``while a and b:`` have the same tests: whether to read the latter.
        self.joins = joins
        self.after: dict[int, int] = {}  # the step after a test, where it is not the next one
        self.dead: dict[int, int] = {}  # begin and end of steps that only clean up the stack
        self.chain_end = -1
        self.testing = False  # whether an expression is read as a test, not as a value

    def op(self, i: int, *ops: str) -> bool:
        """Whether step ``i`` and those after it are these operations."""
        steps = self.steps[i: i + len(ops)]
        return len(steps) == len(ops) and all(
            s.op == op for s, op in zip(steps, ops, strict=True))

    def branching(self, i: int, stop: int, stack: Stack) -> int | None:
        step = self.steps[i]
        if step.op in _ENDING or (step.op == "LIST_APPEND" and step.arg > 1):
            return i
        if step.op in _TESTS and self.testing and len(stack) == 1:
            return i
        if step.op in _TESTS:
            return self._attempt(self._conditional, i, stop, stack)
        if step.op in ("JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP"):
            return self._short(i, i + 1, step, stack)
        if step.op == "COPY" and step.arg == 1 and i + 2 < len(self.steps):
            following = self.steps[i + 1]
            if following.op in _TESTS and self.op(i + 2, "POP_TOP"):
                return self._short(i, i + 3, following, stack)
            if following.op == "STORE":
                return self._walrus(i, stack)
        if self._is_link(i):
            return i if self.steps[i + 3].to == self.chain_end else self._chain(i, stop, stack)
        if step.op == "LOAD_FAST_AND_CLEAR":
            return self._inlined(i, stack)
        return None

    def _attempt(self, read: Any, i: int, stop: int, stack: Stack) -> int:
        before = list(stack)
        try:
            return read(i, stop, stack)
        except FAILURES:
            stack[:] = before
            return i

    def _value(self, i: int, stop: int, testing: bool = False) -> tuple[ast.expr, int]:
        """One expression from step ``i`` on, and the step after it."""
        stack: Stack = []
        before, self.testing = self.testing, testing
        try:
            i = self.values(i, stop, stack)
        finally:
            self.testing = before
        if len(stack) != 1 or not isinstance(stack[0], ast.expr):
            raise CannotDecompile
        return stack[0], i

    def _walrus(self, i: int, stack: Stack) -> int:
        if self.op(i + 2, "STORE") or self.op(i + 2, "COPY", "STORE"):
            return i  # a = b = value
        target = self.name(self.steps[i + 1].arg, STORE)
        stack.append(self.at(ast.NamedExpr(target, stack.pop())))
        return i + 2

    # -- and, or, if

    def _short(self, i: int, following: int, jump: CodeStep, stack: Stack) -> int:
        right, end = self._value(following, jump.to)
        if end != jump.to:
            raise CannotDecompile
        kind = ast.Or if "TRUE" in jump.op else ast.And
        stack.append(self.at(ast.BoolOp(kind(), [stack.pop(), right])))
        return end

    def jump(self, i: int) -> tuple[bool, int, int] | None:
        """For which truth the test at step ``i`` jumps, the target, and the step after it."""
        if i >= len(self.steps) or self.steps[i].op not in _TESTS:
            return None
        when, to = self.steps[i].op == "POP_JUMP_IF_TRUE", self.steps[i].to
        if to == i + 2 and self.op(i + 1, "JUMP_BACKWARD"):
            return not when, self.steps[i + 1].to, i + 2
        if to < len(self.steps) and self.op(to, "JUMP_BACKWARD"):
            to = self.steps[to].to
        return when, to, self.after.get(i, i + 1)

    def test(self, i: int, stop: int, first: ast.expr) -> Test:
        """The whole test whose first jump is at step ``i``: the ``and`` or ``or`` of all its
        parts."""
        jump = self.jump(i)
        assert jump is not None
        tests = [(first, *jump)]
        best = tests[0]
        while True:
            try:
                value, j = self._value(tests[-1][3], stop, True)
            except FAILURES:
                return best
            jump = self.jump(j)
            if jump is None:
                return best
            if not self.joins and self.bottom(tests[-1][3], jump[2], jump[1]) >= 0:
                return best
            tests.append((value, *jump))
            while len(tests) > 1 and self._join(tests):
                pass
            if len(tests) == 1:
                best = tests[0]

    def _join(self, tests: list[Test]) -> bool:
        (left, left_when, left_to, _), (right, right_when, right_to, following) = tests[-2:]
        if left_to == right_to:
            op: ast.boolop = ast.And()
            when = left_when
        elif left_to == following:
            op, when = ast.Or(), not left_when
        else:
            return False
        node = ast.BoolOp(op, [self.negated(left, when), self.negated(right, right_when)])
        tests[-2:] = [(self.at(node), False, right_to, following)]
        return True

    def negated(self, test: ast.expr, when: bool) -> ast.expr:
        """The condition under which a test that jumps when it is ``when`` does not jump."""
        if not when:
            return test
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return test.operand
        return self.at(ast.UnaryOp(ast.Not(), test))

    def _conditional(self, i: int, stop: int, stack: Stack) -> int:
        test, when, to, following = self.test(i, stop, stack[-1])
        then, j = self._value(following, to)
        if j == to - 1 and self.op(j, f"JUMP_IF_{str(not when).upper()}_OR_POP"):  # a and b or c
            kind = ast.Or if when else ast.And
            stack[-1] = self.at(ast.BoolOp(kind(), [test, then]))
            return self._short(j, j + 1, self.steps[j], stack)
        if j != to - 1 or self.steps[j].op != "JUMP_FORWARD":
            raise CannotDecompile
        end = self.steps[j].to
        orelse, k = self._value(to, end)
        if k != end:
            raise CannotDecompile
        stack[-1] = self.at(ast.IfExp(self.negated(test, when), then, orelse))
        return end

    def bottom(self, start: int, following: int, to: int) -> int:
        """Where the copy of a ``while`` loop's test begins that stands at the end of the body; -1
        where there is none.  The first test is at ``start``, the body at ``following``."""
        jumps = [b for b in range(following, min(to, len(self.steps)))
                 if self.steps[b].to == following]
        if not jumps:
            return -1
        last = jumps[-1]
        is_split = self.steps[last].op == "JUMP_BACKWARD"
        if is_split and self.jump(last - 1) is None:
            return -1
        begin = last + 1 - (following - start) - is_split
        return begin if begin >= following else -1

    # -- chains of comparisons

    def _is_link(self, i: int) -> bool:
        steps = self.steps[i: i + 3]
        return self.op(i, "SWAP", "COPY") and len(steps) == 3 and (
            steps[0].arg == steps[1].arg == 2 and self.comparison(steps[2]) is not None)

    def _chain(self, i: int, stop: int, stack: Stack) -> int:
        left, right = self.pop(stack, 2)
        node, before = ast.Compare(left, [], []), self.chain_end
        while self._is_link(i):
            op = self.comparison(self.steps[i + 2])
            assert op is not None
            node.ops.append(op)
            node.comparators.append(right)
            copied = self.op(i + 3, "COPY")
            jump = self.steps[i + 3 + copied]
            is_value = copied or jump.op == "JUMP_IF_FALSE_OR_POP"
            inner: Stack = [right]
            self.chain_end = self.steps[i + 3].to if not copied else jump.to
            i = self.values(i + (6 if copied else 4), jump.to, inner)
            right = inner[-1]
        self.chain_end = before
        if len(inner) != 1 or not isinstance(right, ast.Compare):
            raise CannotDecompile
        node.ops += right.ops
        node.comparators += right.comparators
        stack.append(self.at(node))
        return self._end_of_chain(i, jump.to, is_value)

    def _end_of_chain(self, i: int, tidying: int, is_value: bool) -> int:
        if is_value and self.op(tidying, "SWAP", "POP_TOP"):
            if self.op(i, "JUMP_FORWARD") and self.steps[i].to == tidying + 2 == i + 3:
                return tidying + 2
            if self.op(i, "RETURN_VALUE") and tidying == i + 1:
                self.dead[tidying] = tidying + 3
                return i
        if not is_value and self.steps[i].op in _TESTS and self.op(i + 1, "JUMP_FORWARD") and (
                tidying == i + 2 and self.op(tidying, "POP_TOP")):
            self.after[i] = self.steps[i + 1].to
            return i
        raise CannotDecompile

    # -- comprehensions

    def _inlined(self, i: int, stack: Stack) -> int:
        """A comprehension that is inlined into the function's code (Python 3.12 on)."""
        over, names = stack.pop().over, 0
        while self.op(i, "LOAD_FAST_AND_CLEAR"):
            i, names = i + 1, names + 1
        kind = _DISPLAYS[self.steps[i + 1].op]
        node, i = self.comprehension(i + 3, over, kind)
        stack.append(node)
        return i + 1 + names  # the stores that restore shadowed names

    def comprehension(self, i: int, over: ast.expr, kind: Any) -> tuple[ast.expr, int]:
        """The comprehension whose loop begins at step ``i``, and the step after it."""
        end, generators = self.steps[i].to, []
        while True:
            head = i
            target, i = self.loop_target(i)
            part = ast.comprehension(target, over, [], 0)
            generators.append(part)
            stack: Stack = []
            i = self.values(i, end, stack)
            while self.jump(i) is not None:
                test, when, to, i = self.test(i, end, stack.pop())
                if to != head:
                    raise CannotDecompile
                part.ifs.append(self.negated(test, when))
                i = self.values(i, end, stack)
            if self.steps[i].op != "FOR_ITER":
                break
            over = stack.pop().over
        if kind is ast.DictComp:
            key, value = stack
            return self.at(ast.DictComp(key, value, generators)), end
        element, = stack
        return self.at(kind(element, generators)), end

    def comprehension_tree(self, code: Any, over: ast.expr) -> ast.expr:
        kind = _COMPREHENSIONS.get(code.co_name)
        if kind is None:
            raise CannotDecompile
        inner = type(self)(code, self.joins)
        first = next(i for i, s in enumerate(inner.steps) if s.op == "FOR_ITER")
        node, _ = inner.comprehension(first, over, kind)
        return node

    def loop_target(self, i: int) -> tuple[Any, int]:
        """The target of the loop at step ``i``, and the step after its store."""
        item = self.at(ast.Constant(None))
        return self.store(i + 1, [item])[::2]

    # -- stores

    def store(self, i: int, stack: Stack) -> tuple[Any, Any, int]:
        """The target and the value of the store at step ``i``, and the step after it."""
        self.step = step = self.steps[i]
        if step.op == "STORE":
            self.declare(step)
            return self.name(step.arg, STORE), stack.pop(), i + 1
        if step.op in ("UNPACK_SEQUENCE", "UNPACK_EX"):
            return self._unpack(i, step, stack)
        if step.op == "STORE_ATTR":
            owner = stack.pop()
            return self.at(ast.Attribute(owner, step.arg, STORE)), stack.pop(), i + 1
        if step.op == "STORE_SUBSCR":
            value, owner, key = self.pop(stack, 3)
        elif step.op == "STORE_SLICE":
            value, owner, *ends = self.pop(stack, 4)
            key = self.slice(ends)
        else:
            raise CannotDecompile
        return self.at(ast.Subscript(owner, key, STORE)), value, i + 1

    def declare(self, step: CodeStep) -> None:
        """Note that the stored name needs a ``global`` or ``nonlocal`` declaration."""
        raise NotImplementedError

    def _unpack(self, i: int, step: CodeStep, stack: Stack) -> tuple[Any, Any, int]:
        value = stack.pop()
        starred = step.arg & 0xFF if step.op == "UNPACK_EX" else -1
        count = step.arg if starred < 0 else starred + 1 + (step.arg >> 8)
        parts: Stack = [self.at(ast.Constant(None)) for _ in range(count)]
        left, i, targets = parts[::-1], i + 1, []
        for number in range(count):
            i = self.values(i, len(self.steps), left)
            target, part, i = self.store(i, left)
            if part is not parts[number]:
                raise CannotDecompile
            targets.append(self.at(ast.Starred(target, STORE)) if number == starred else target)
        return self.at(ast.Tuple(targets, STORE)), value, i


def in_place(target: Any, value: InPlace) -> bool:
    """Whether ``value`` is stored where its left operand was loaded: ``target op= right``."""
    left: Any = value.left
    if isinstance(target, ast.Name):
        return isinstance(left, ast.Name) and left.id == target.id
    if type(left) is not type(target) or left.value is not target.value:
        return False
    if isinstance(target, ast.Attribute):
        return bool(left.attr == target.attr)
    return left.slice is target.slice or isinstance(left.slice, ast.Slice)
