"""A decompiler: the syntax tree of a function from its bytecode, where there is no source (`exec`,
the prompt, standard input).

The tree need not be the original one: it is used only if it compiles to the function's own bytecode
(`source.find_source` compares).  So the decompiler may guess, and may give up: at ``match``,
classes, ways out of a ``finally``, and control flow that the compiler has folded together.

This module reads expressions, on a stack of trees; `blocks` and `regions` read statements.
"""

from __future__ import annotations

import ast
from types import CodeType
from typing import Any

from .bytecode import CodeStep
from .exception_regions import readable

LOAD, STORE, DEL = ast.Load(), ast.Store(), ast.Del()
Stack = list[Any]

_BINARY: tuple[type[ast.operator], ...] = (
    ast.Add, ast.BitAnd, ast.FloorDiv, ast.LShift, ast.MatMult, ast.Mult, ast.Mod, ast.BitOr,
    ast.Pow, ast.RShift, ast.Sub, ast.Div, ast.BitXor)
_UNARY: dict[str, type[ast.unaryop]] = {
    "UNARY_NEGATIVE": ast.USub, "UNARY_NOT": ast.Not, "UNARY_INVERT": ast.Invert,
    "UNARY_POSITIVE": ast.UAdd}
_COMPARED: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, "==": ast.Eq, "!=": ast.NotEq, ">": ast.Gt, ">=": ast.GtE}
_COMPREHENSIONS = {"<listcomp>": ast.ListComp, "<setcomp>": ast.SetComp,
                   "<dictcomp>": ast.DictComp, "<genexpr>": ast.GeneratorExp}


class CannotDecompile(Exception):
    """The bytecode has a form that the decompiler does not know."""


class Iter:
    """The iterator of a loop, on the stack."""

    def __init__(self, over: ast.expr) -> None:
        self.over = over


class FunctionParts:
    """A function on the stack: its code and the expressions of its defaults."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.defaults: Any = None
        self.kwdefaults: Any = None


class AssertionFailed:
    """``AssertionError`` as an ``assert`` loads it."""


class InPlace(ast.BinOp):
    """The value ``left op right`` that ``left op= right`` stores."""


class Reader:
    """Reads the steps of one code object; the method ``on_X`` executes instruction X on a
    stack of trees."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.steps, self.end = readable(code)
        self.declared: dict[str, ast.stmt] = {}  # global and nonlocal names
        self.step = self.steps[0]
        self.keywords: tuple[str, ...] = ()
        self.nodes = 0

    # -- building blocks

    def at(self, node: Any) -> Any:
        """The node, with the position of the current step."""
        line, end_line, col, end_col = self.step.place
        node.lineno = line or self.code.co_firstlineno
        node.end_lineno = max(end_line or 0, node.lineno)
        node.col_offset, node.end_col_offset = col or 0, end_col or 0
        self.nodes += 1
        node.number = self.nodes  # in the order of evaluation
        return node

    def name(self, name: str, ctx: ast.expr_context = LOAD) -> ast.Name:
        return self.at(ast.Name(name, ctx))

    def constant(self, value: Any) -> ast.expr:
        if type(value) is tuple:
            return self.at(ast.Tuple([self.constant(v) for v in value], LOAD))
        if type(value) is frozenset:
            return self.at(ast.Set([self.constant(v) for v in value]))
        return self.at(ast.Constant(value))

    # -- running

    def values(self, i: int, stop: int, stack: Stack) -> int:
        """Read expressions from step ``i`` on, up to the first step that belongs to a statement,
        which is returned."""
        while i < stop:
            self.step = step = self.steps[i]
            following = self.branching(i, stop, stack)
            if following is not None:
                if following == i:
                    return i
                i = following
                continue
            method = getattr(self, f"on_{step.op}", None)
            if method is None:
                handled = self.unary(step, stack)
                if not handled:
                    return i
            else:
                method(step, stack)
            i += 1
        return i

    def branching(self, i: int, stop: int, stack: Stack) -> int | None:
        """Read the expression whose branch is at step ``i``, and return the step after it; ``i``
        where the branch is a statement's; None where there is no branch."""
        raise NotImplementedError

    def unary(self, step: CodeStep, stack: Stack) -> bool:
        if step.op in _UNARY:
            stack.append(self.at(ast.UnaryOp(_UNARY[step.op](), stack.pop())))
            return True
        return False

    def pop(self, stack: Stack, count: int) -> list[Any]:
        if count > len(stack):
            raise CannotDecompile
        items = stack[len(stack) - count:]
        del stack[len(stack) - count:]
        return items

    # -- names, constants, operators

    def on_LOAD(self, step: CodeStep, stack: Stack) -> None:
        stack.append(self.name(step.arg))

    def on_LOAD_CONST(self, step: CodeStep, stack: Stack) -> None:
        is_code = isinstance(step.arg, CodeType)
        stack.append(step.arg if is_code else self.constant(step.arg))

    def on_LOAD_ASSERTION_ERROR(self, step: CodeStep, stack: Stack) -> None:
        stack.append(AssertionFailed())

    def on_LOAD_ATTR(self, step: CodeStep, stack: Stack) -> None:
        stack.append(self.at(ast.Attribute(stack.pop(), step.arg, LOAD)))

    def on_LOAD_SUPER_ATTR(self, step: CodeStep, stack: Stack) -> None:
        function, *_ = self.pop(stack, 3)
        stack.append(self.at(ast.Attribute(self.at(ast.Call(function, [], [])), step.arg, LOAD)))

    def on_BINARY_OP(self, step: CodeStep, stack: Stack) -> None:
        left, right = self.pop(stack, 2)
        is_in_place = step.arg >= len(_BINARY)
        kind = InPlace if is_in_place else ast.BinOp
        stack.append(self.at(kind(left, _BINARY[step.arg % len(_BINARY)](), right)))

    def compare(self, stack: Stack, op: ast.cmpop) -> None:
        left, right = self.pop(stack, 2)
        stack.append(self.at(ast.Compare(left, [op], [right])))

    def comparison(self, step: CodeStep) -> ast.cmpop | None:
        if step.op == "COMPARE_OP":
            return _COMPARED[step.arg]()
        if step.op == "IS_OP":
            return ast.IsNot() if step.arg else ast.Is()
        if step.op == "CONTAINS_OP":
            return ast.NotIn() if step.arg else ast.In()
        return None

    def _compare(self, step: CodeStep, stack: Stack) -> None:
        op = self.comparison(step)
        assert op is not None
        self.compare(stack, op)

    on_COMPARE_OP = on_IS_OP = on_CONTAINS_OP = _compare

    def on_IS_NONE(self, step: CodeStep, stack: Stack) -> None:
        stack.append(self.constant(None))
        self.compare(stack, ast.Is())

    def on_COPY(self, step: CodeStep, stack: Stack) -> None:
        stack.append(stack[-step.arg])

    def on_SWAP(self, step: CodeStep, stack: Stack) -> None:
        stack[-1], stack[-step.arg] = stack[-step.arg], stack[-1]

    # -- items and containers

    def on_BINARY_SUBSCR(self, step: CodeStep, stack: Stack) -> None:
        owner, key = self.pop(stack, 2)
        stack.append(self.at(ast.Subscript(owner, key, LOAD)))

    def on_BUILD_SLICE(self, step: CodeStep, stack: Stack) -> None:
        stack.append(self.slice(self.pop(stack, step.arg)))

    def slice(self, parts: list[Any]) -> ast.Slice:
        """The constant None stands for a missing part."""
        return self.at(ast.Slice(*[None if _is_none(p) else p for p in parts]))

    def on_BINARY_SLICE(self, step: CodeStep, stack: Stack) -> None:
        owner, *ends = self.pop(stack, 3)
        stack.append(self.at(ast.Subscript(owner, self.slice(ends), LOAD)))

    def on_BUILD_TUPLE(self, step: CodeStep, stack: Stack) -> None:
        stack.append(self.at(ast.Tuple(self.pop(stack, step.arg), LOAD)))

    def on_BUILD_LIST(self, step: CodeStep, stack: Stack) -> None:
        stack.append(self.at(ast.List(self.pop(stack, step.arg), LOAD)))

    def on_BUILD_SET(self, step: CodeStep, stack: Stack) -> None:
        stack.append(self.at(ast.Set(self.pop(stack, step.arg))))

    def on_BUILD_MAP(self, step: CodeStep, stack: Stack) -> None:
        items = self.pop(stack, 2 * step.arg)
        stack.append(self.at(ast.Dict(items[::2], items[1::2])))

    def on_BUILD_CONST_KEY_MAP(self, step: CodeStep, stack: Stack) -> None:
        *items, keys = self.pop(stack, step.arg + 1)
        stack.append(self.at(ast.Dict(keys.elts, items)))

    def _extend(self, step: CodeStep, stack: Stack) -> None:
        more = stack.pop()
        constants = isinstance(more, ast.Tuple | ast.Set) and not stack[-1].elts and all(
            isinstance(e, ast.Constant) for e in more.elts)
        stack[-1].elts += more.elts if constants else [self.at(ast.Starred(more, LOAD))]

    on_LIST_EXTEND = on_SET_UPDATE = _extend

    def _merge(self, step: CodeStep, stack: Stack) -> None:
        more, into = stack.pop(), stack[-1]
        is_display = isinstance(more, ast.Dict) and step.op == "DICT_MERGE" and not into.keys
        into.keys += more.keys if is_display else [None]
        into.values += more.values if is_display else [more]

    on_DICT_UPDATE = on_DICT_MERGE = _merge

    def on_LIST_APPEND(self, step: CodeStep, stack: Stack) -> None:
        if step.arg != 1 or not isinstance(stack[-2], ast.List):
            raise CannotDecompile
        stack[-2].elts.append(stack.pop())

    def on_SET_ADD(self, step: CodeStep, stack: Stack) -> None:
        stack[-2].elts.append(stack.pop())

    def on_LIST_TO_TUPLE(self, step: CodeStep, stack: Stack) -> None:
        stack.append(self.at(ast.Tuple(stack.pop().elts, LOAD)))

    def on_CALL_INTRINSIC_1(self, step: CodeStep, stack: Stack) -> None:
        if step.arg == 6:
            self.on_LIST_TO_TUPLE(step, stack)
        elif step.arg == 5:
            stack.append(self.at(ast.UnaryOp(ast.UAdd(), stack.pop())))
        else:
            raise CannotDecompile

    # -- text

    def on_FORMAT_VALUE(self, step: CodeStep, stack: Stack) -> None:
        spec = stack.pop() if step.arg & 4 else None
        self._formatted(stack, (-1, ord("s"), ord("r"), ord("a"))[step.arg & 3], spec)

    def on_CONVERT_VALUE(self, step: CodeStep, stack: Stack) -> None:
        self._formatted(stack, (-1, ord("s"), ord("r"), ord("a"))[step.arg], None)

    def on_FORMAT_SIMPLE(self, step: CodeStep, stack: Stack) -> None:
        if not isinstance(stack[-1], ast.JoinedStr):
            self._formatted(stack, -1, None)

    def on_FORMAT_WITH_SPEC(self, step: CodeStep, stack: Stack) -> None:
        spec = stack.pop()
        if isinstance(stack[-1], ast.JoinedStr):
            stack[-1].values[0].format_spec = self._spec(spec)  # type: ignore[attr-defined]
        else:
            self._formatted(stack, -1, spec)

    def _formatted(self, stack: Stack, conversion: int, spec: Any) -> None:
        part = self.at(ast.FormattedValue(stack.pop(), conversion, spec and self._spec(spec)))
        stack.append(self.at(ast.JoinedStr([part])))

    def _spec(self, spec: Any) -> Any:
        return spec if isinstance(spec, ast.JoinedStr) else self.at(ast.JoinedStr([spec]))

    def on_BUILD_STRING(self, step: CodeStep, stack: Stack) -> None:
        parts = self.pop(stack, step.arg)
        flat = [v for p in parts for v in (p.values if isinstance(p, ast.JoinedStr) else [p])]
        stack.append(self.at(ast.JoinedStr(flat)))

    # -- calls

    def on_KW_NAMES(self, step: CodeStep, stack: Stack) -> None:
        self.keywords = step.arg

    def on_CALL(self, step: CodeStep, stack: Stack) -> None:
        names, self.keywords = self.keywords, ()
        args = self.pop(stack, step.arg)
        function = stack.pop()
        if isinstance(function, Iter):  # the function of a comprehension, called with its iterator
            parts = stack.pop()
            stack.append(self.comprehension_tree(parts.code, function.over))
            return
        if not args and stack and isinstance(stack[-1], AssertionFailed):
            args, function = [function], stack.pop()
        if isinstance(function, AssertionFailed):
            stack.append((function, *args))
            return
        self._call(stack, function, args, names)

    def on_CALL_KW(self, step: CodeStep, stack: Stack) -> None:
        names = [e.value for e in stack.pop().elts]
        args = self.pop(stack, step.arg)
        self._call(stack, stack.pop(), args, names)

    def _call(self, stack: Stack, function: Any, args: list[Any], names: Any) -> None:
        plain = len(args) - len(names)
        keywords = [self.at(ast.keyword(n, v)) for n, v in zip(names, args[plain:], strict=True)]
        stack.append(self.at(ast.Call(function, args[:plain], keywords)))

    def on_CALL_FUNCTION_EX(self, step: CodeStep, stack: Stack) -> None:
        named = stack.pop() if step.arg & 1 else None
        positional, function = stack.pop(), stack.pop()
        args = positional.elts if isinstance(positional, ast.Tuple) else [
            self.at(ast.Starred(positional, LOAD))]
        keywords = [] if named is None else [
            self.at(ast.keyword(None if k is None else k.value, v))
            for k, v in zip(named.keys, named.values, strict=True)]
        stack.append(self.at(ast.Call(function, args, keywords)))

    # -- functions

    def on_MAKE_FUNCTION(self, step: CodeStep, stack: Stack) -> None:
        parts = FunctionParts(stack.pop())
        for flag in (8, 4, 2, 1):
            if (step.arg or 0) & flag:
                self._set_defaults(parts, flag, stack.pop())
        stack.append(self._or_lambda(parts))

    def on_SET_FUNCTION_ATTRIBUTE(self, step: CodeStep, stack: Stack) -> None:
        function = stack.pop()
        parts = function if isinstance(function, FunctionParts) else function.made
        self._set_defaults(parts, step.arg, stack.pop())
        stack.append(self._or_lambda(parts))

    def _set_defaults(self, parts: FunctionParts, flag: int, value: Any) -> None:
        if flag == 4:
            raise CannotDecompile
        if flag == 2:
            parts.kwdefaults = value
        elif flag == 1:
            parts.defaults = value

    def _or_lambda(self, parts: FunctionParts) -> Any:
        """The tree of a lambda; other functions stay parts until they are stored or called."""
        if parts.code.co_name != "<lambda>":
            return parts
        node = self.at(self.function_tree(parts))
        node.made = parts
        return node

    def function_tree(self, parts: FunctionParts) -> Any:
        """The tree of a function defined in this one."""
        raise NotImplementedError

    def comprehension_tree(self, code: CodeType, over: ast.expr) -> ast.expr:
        raise NotImplementedError

    def on_GET_ITER(self, step: CodeStep, stack: Stack) -> None:
        stack.append(Iter(stack.pop()))


def _is_none(node: Any) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
