"""Vectorisable, branch-free math functions of our own, here as LLVM IR text.

``define(name, dtype, lanes)`` gives one function's text; the same operations in the same order
are emitted for every lane count, so a scalar tail gives the bits of the vector body.  Bounds are
in ``BOUNDS``, measured in docs/accuracy.md.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np

from fusec.core.records import dataclass, replace

from .builder import Format, MathValue, format_of
from .functions import (
    error_function as error_function,
)
from .functions import (
    exponential as exponential,
)
from .functions import (
    gamma as gamma,
)
from .functions import (
    inverse_trigonometry as inverse_trigonometry,
)
from .functions import (
    logarithm as logarithm,
)
from .functions import (
    normal_distribution as normal_distribution,
)
from .functions import (
    power as power,
)
from .functions import (
    trigonometry as trigonometry,
)
from .llvm_builder import LlvmBuilder, suffix
from .registry import REGISTRY

__all__ = [
    "ARITY", "BOUNDS", "FUNCTIONS", "MathCode", "define", "module_text", "symbol",
]

FUNCTIONS: frozenset[str] = frozenset(REGISTRY)
ARITY: dict[str, int] = {name: row.arity for name, row in REGISTRY.items()}
BOUNDS: dict[tuple[str, str], float] = {
    (name, dtype): bound
    for name, row in REGISTRY.items()
    for dtype, bound in (("float64", row.bound64), ("float32", row.bound32))
}
ATTRIBUTES = "alwaysinline nounwind memory(none)"
# Not optimised: these run for |x| > 2**30 only, and would cost every compile more than the rest.
RARE_ATTRIBUTES = "noinline optnone cold nounwind memory(none)"


@dataclass(frozen=True)
class MathCode:
    """``text`` defines ``@symbol``.

    ``needs`` are names to ``define`` for the same dtype and lanes too; different functions may
    need the same symbol, which a module must hold once.
    """

    symbol: str
    text: str
    declarations: frozenset[str]
    needs: tuple[str, ...]


def symbol(name: str, dtype: np.dtype, lanes: int) -> str:
    """``fusec.exp.f64`` for a scalar (one lane), ``fusec.exp.v8f64`` for eight lanes."""
    return f"fusec.{name}.{suffix(format_of(dtype), lanes)}"


@functools.cache
def define(name: str, dtype: np.dtype, lanes: int) -> MathCode:
    """The definition of a function of ``FUNCTIONS`` (or of a helper some ``needs`` names).

    Raises ``KeyError`` for an unknown name, ``TypeError`` for another dtype.
    """
    fmt = format_of(dtype)
    base, _, part = name.partition(".")
    if base in trigonometry.PARTS and part in ("huge", "lane"):
        return _lane(base, fmt) if part == "lane" else _huge(base, fmt, lanes)
    if name not in REGISTRY:
        raise KeyError(f"internal error: no math function {name!r}; there are {sorted(REGISTRY)}")
    b = LlvmBuilder(fmt, lanes)
    operands = b.parameters(REGISTRY[name].arity)
    result = REGISTRY[name].build(b, *operands)
    return _code(name, b, operands, result, ATTRIBUTES)


def _huge(base: str, fmt: Format, lanes: int) -> MathCode:
    """The rare path of a whole vector."""
    b = LlvmBuilder(fmt, lanes)
    x, y = b.parameters(2)
    result = trigonometry.huge_body(b, base, x, y)
    return _code(f"{base}.huge", b, [x, y], result, RARE_ATTRIBUTES)


def _lane(base: str, fmt: Format) -> MathCode:
    """The rare path of one lane: a scalar, whatever the lane count asked for."""
    b = LlvmBuilder(fmt, 1)
    words = f"fusec.{base}.bits.{fmt.name}"
    (x,) = b.parameters(1)
    result = trigonometry.lane_body(b, base, x, words)
    code = _code(f"{base}.lane", b, [x], result, RARE_ATTRIBUTES)
    return replace(code, text=_bits_of_two_over_pi(words, fmt) + code.text)


def _bits_of_two_over_pi(name: str, fmt: Format) -> str:
    """The definition of the global that the rare path reads."""
    words = trigonometry.words_of_two_over_pi(fmt)
    body = ", ".join(f"{fmt.integer} {w}" for w in words)
    return f"@{name} = private unnamed_addr constant [{len(words)} x {fmt.integer}] [{body}]\n"


def _code(
    name: str, b: LlvmBuilder, operands: list[MathValue], result: MathValue, attributes: str
) -> MathCode:
    typ, head = b.type("f"), f"fusec.{name}.{suffix(b.fmt, b.lanes)}"
    parameters = ", ".join(f"{typ} {v.text}" for v in operands)
    lines = [
        f"define internal fastcc {typ} @{head}({parameters}) {attributes} {{", "entry:",
        *b.emitter.lines, f"  ret {typ} {result.text}", "}", "",
    ]
    declarations, needs = frozenset(b.emitter.declarations), tuple(b.emitter.needs)
    return MathCode(head, "\n".join(lines), declarations, needs)


def module_text(requests: Iterable[tuple[str, np.dtype, int]]) -> str:
    """Declarations and definitions of all requested functions and of their callees, once each."""
    pending, done = list(requests), {}
    declarations: set[str] = set()
    while pending:
        name, dtype, lanes = pending.pop()
        code = define(name, np.dtype(dtype), lanes)
        if code.symbol not in done:
            done[code.symbol] = code.text
            declarations |= code.declarations
            pending += [(need, dtype, lanes) for need in code.needs]
    return "\n".join([*sorted(declarations), *done.values()])
