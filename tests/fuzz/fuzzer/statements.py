"""One random statement of each family: operators, ufuncs and their methods, functions, indexing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import vocabulary
from .parameters import LEFT_OUT, Draw, argument
from .program import Statement
from .vocabulary import BINARY, IN_PLACE, UNARY, Callee, Parameter

Maker = Callable[[Draw], Statement]


# --------------------------------------------------------------------------------- operators


def binary(d: Draw) -> Statement:
    op = d.rng.choice(list(BINARY))
    left, right = d.operand(), d.second()
    if d.chance(0.15):
        left, right = d.number(), left
    return Statement(f"{left} {op} {right}", f"operator {op}",
                     rounding=vocabulary.rounding_of(BINARY[op]))


def multiply_add(d: Draw) -> Statement:
    sign = d.rng.choice("+-")
    text = f"{d.operand()} * {d.second()} {sign} {d.second()}"
    return Statement(text, "operator *+", rounding="product")


def unary(d: Draw) -> Statement:
    op = d.rng.choice(list(UNARY))
    text = f"abs({d.operand()})" if op == "abs" else f"{op}{d.operand()}"
    return Statement(text, f"operator {op}", rounding=vocabulary.rounding_of(UNARY[op]))


def in_place(d: Draw) -> Statement:
    op = d.rng.choice(IN_PLACE)
    return Statement(f"{d.operand()} {op}= {d.second()}", f"operator {op}=",
                     rounding=vocabulary.rounding_of(BINARY[op]), assigns=True)


# ------------------------------------------------------------------------------------- ufuncs


def ufunc(d: Draw) -> Statement:
    code, function = d.rng.choice(vocabulary.ufuncs())
    d.callee = code
    operands = [d.operand(), *[d.second() for _ in range(function.nin - 1)]]
    if d.chance(0.1):
        operands = operands[::-1]
    extra = []
    if d.chance(0.08):
        extra.append(f"dtype={d.dtype()}")
    if d.chance(0.05):
        extra.append(f"casting={d.choice('{0}unsafe{0}', '{0}same_kind{0}').format(chr(39))}")
    text = f"{code}({', '.join([*operands, *extra])})"
    return Statement(text, code, rounding=vocabulary.rounding_of(function))


def ufunc_method(d: Draw) -> Statement:
    # Generalised ufuncs have no methods; NumPy's `at` of them writes outside of arrays.
    fitting = [(c, f) for c, f in vocabulary.ufuncs()
               if f.nin == 2 and f.nout == 1 and f.signature is None]
    method = d.rng.choice(vocabulary.UFUNC_METHODS)
    code, function = d.rng.choice(fitting)
    d.callee = f"{code}.{method}"
    first = d.operand()
    extra = {"outer": lambda: [d.second()], "at": lambda: [d.indices(), d.number()],
             "reduceat": lambda: [f"[0, {max(d.main.shape[0] - 1, 0) if d.main.ndim else 0}]"]}
    arguments = [first, *extra.get(method, list)()]
    if method in ("reduce", "accumulate", "reduceat") and d.chance(0.5):
        arguments.append(f"axis={d.axis() if method == 'reduce' else d.one_axis()}")
    if method == "reduce":
        arguments += _reduction_options(d)
    rounding = vocabulary.rounding_of(function)
    if method != "outer" and rounding not in ("zeros",):
        rounding = "backward"
    return Statement(f"{d.callee}({', '.join(arguments)})", d.callee, rounding=rounding)


def _reduction_options(d: Draw) -> list[str]:
    options = {"keepdims": "True", "initial": d.number(), "where": d.mask(), "dtype": d.dtype()}
    return [f"{name}={text}" for name, text in options.items() if d.chance(0.12)]


# ---------------------------------------------------------------------------------- functions


def function(d: Draw) -> Statement:
    return _call(d, d.rng.choice(vocabulary.functions()), [])


def method(d: Draw) -> Statement:
    callee = d.rng.choice(vocabulary.methods())
    return _call(d, callee, [d.operand()])


def _call(d: Draw, callee: Callee, receiver: list[str]) -> Statement:
    d.callee = callee.code
    if callee.code == "np.einsum":
        operand = d.operand()
        return Statement(f"np.einsum('{d.subscripts()}', {operand})", callee.code)
    arguments = []
    by_keyword = False
    for p in callee.parameters:
        text = _drawn(d, p)
        if text is None:
            by_keyword = True  # what follows can no longer go by position
            continue
        keyword = p.keyword or by_keyword or (not p.required and d.chance(0.7))
        by_keyword |= keyword
        arguments.append(f"{p.name}={text}" if keyword and not p.variadic else text)
    text = f"{''.join(receiver)}{callee.code}({', '.join(arguments)})"
    return Statement(text, "ndarray" + callee.code if receiver else callee.code)


def _drawn(d: Draw, p: Parameter) -> str | None:
    if p.name in LEFT_OUT or (p.variadic and d.chance(0.3)):
        return None
    if not p.required and not p.variadic and not d.chance(0.22):
        return None
    return argument(d, p.name, p.required)


def conversion(d: Draw) -> Statement:
    code = d.rng.choice(vocabulary.conversions())
    name = d.variable() if d.chance(0.3) else d.variable(lambda v: np.size(v) == 1)
    rounding = vocabulary.rounding_of(np.absolute) if code == "builtins.abs" else "exact"
    return Statement(f"{code}({name})", code, rounding=rounding)


def cast(d: Draw) -> Statement:
    return Statement(f"{d.operand()}.astype({d.dtype()})", "ndarray.astype", rounding="exact")


def scalar_function(d: Draw) -> Statement:
    callee = d.rng.choice(vocabulary.scalar_functions())
    required = [p for p in callee.parameters if p.required]
    operands = [d.variable(lambda v: np.ndim(v) == 0) for _ in required or [0]]
    # Python's lgamma of numbers below 0 is a difference, of which few places may be left.
    rounding = "backward" if callee.code == "math.lgamma" else "ulp 4"
    return Statement(f"{callee.code}({', '.join(operands)})", callee.code, rounding=rounding)


def attribute(d: Draw) -> Statement:
    name = d.rng.choice(vocabulary.ATTRIBUTES)
    return Statement(f"{d.operand()}.{name}", f"ndarray.{name}", rounding="exact")


# ----------------------------------------------------------------------------------- indexing


def read(d: Draw) -> Statement:
    return Statement(f"{d.operand()}[{d.index()}]", "x[...]", rounding="exact")


def write(d: Draw) -> Statement:
    target = d.operand()
    value = d.second() if d.chance(0.7) else f"{target}[{d.index(0)}]"
    view = d.choice("", "", "", ".T", "[::-1]")
    return Statement(f"{target}{view}[{d.index(0.25)}] = {value}", "x[...] =",
                     rounding="exact", assigns=True)


def update(d: Draw) -> Statement:
    target, op = d.operand(), d.rng.choice(["+", "-", "*", "/", "//", "%"])
    return Statement(f"{target}[{d.index(0.2)}] {op}= {d.second()}", f"x[...] {op}=",
                     rounding=vocabulary.rounding_of(BINARY[op]), assigns=True)


def write_whole(d: Draw) -> Statement:
    target = d.operand()
    text = d.choice("{a}[...] = {b}", "{a}[1:] = {a}[:-1]", "{a}[::-1] = {a}", "{a}[:] = {n}",
                    "{a}[{a} > {n}] = {n}", "{a}[0] = {a}[-1]", "{a}[:-1] += {a}[1:]")
    number = d.choice("0", "1", "-1", "2")
    return Statement(text.format(a=target, b=d.second(), n=number), "x[...] =",
                     rounding="exact", assigns=True)


MAKERS: list[tuple[Maker, int]] = [
    (binary, 16), (multiply_add, 3), (unary, 3), (in_place, 6), (ufunc, 18), (ufunc_method, 6),
    (function, 26), (method, 9), (conversion, 1), (cast, 3), (scalar_function, 1), (attribute, 2),
    (read, 7), (write, 6), (update, 4), (write_whole, 4),
]


def draw_statement(d: Draw) -> Statement:
    """A statement of a random family; the caller finds out whether NumPy takes it."""
    makers, weights = zip(*MAKERS, strict=True)
    d.callee = ""
    return d.rng.choices(makers, weights)[0](d)


def with_out(d: Draw, statement: Statement, result: Any) -> Statement | None:
    """The call with ``out=``: a variable of the result's shape, or an array made for it."""
    if not statement.text.endswith(")") or not isinstance(result, np.ndarray) or not result.ndim:
        return None
    fitting = [n for n in d.names if isinstance(d.scope[n], np.ndarray)
               and d.scope[n].shape == result.shape]
    made = f"np.zeros({result.shape}, '{result.dtype.str[1:].replace('b1', '?')}')"
    target = d.rng.choice(fitting) if fitting and d.chance(0.7) else made
    masked = d.chance(0.2) and "where=" not in statement.text
    where = f", where={d.mask()}" if masked else ""
    comma = "" if statement.text.endswith("()") else ", "
    text = f"{statement.text[:-1]}{comma}out={target}{where})"
    return Statement(text, statement.op, rounding=statement.rounding)
