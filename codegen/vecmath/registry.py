"""The table of functions: name, operands, body, and the error bound each promises."""

from __future__ import annotations

from collections.abc import Callable

from fusec.core.records import dataclass

from .builder import MathBuilder, MathValue
from .coefficients import TABLES


@dataclass(frozen=True)
class MathFunction:
    """``build(b, *operands)`` emits the body; bounds are in units in the last place."""

    name: str
    arity: int
    build: Callable[..., MathValue]
    bound64: float
    bound32: float


REGISTRY: dict[str, MathFunction] = {}
Build = Callable[..., MathValue]


def function(
    name: str, bound64: float, bound32: float, arity: int = 1
) -> Callable[[Build], Build]:
    """Register a body under a NumPy name, with its bounds for float64 and float32."""

    def register(build: Build) -> Build:
        REGISTRY[name] = MathFunction(name, arity, build, bound64, bound32)
        return build

    return register


def table(b: MathBuilder, name: str) -> tuple[float, ...]:
    """Coefficients or constant parts for the builder's format."""
    return TABLES[b.fmt.name][name]
