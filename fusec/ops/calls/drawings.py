"""Draws that native code makes without Python: NumPy's own C functions, by method.

A method of a generator with plain arguments calls one C function of the generator's state for each
number.  A row names the function for each class of generator, and says which arguments the method
accepts without looking twice; for others, where the method may raise or take another way, Python
calls it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from fusec.core.records import dataclass

F64, F32, I64 = np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.int64)
GENERATOR, LEGACY = "Generator", "RandomState"
# What an argument has to be: any number; above 0; above 0 and not huge; in (0, 1); or above the one
# before it, not infinitely far, and their distance is passed.
Holds = Literal["any", "positive", "rate", "probability", "above"]


@dataclass(frozen=True)
class Parameter:
    """A number that a method takes."""

    name: str
    default: float | None = None
    holds: Holds = "any"


@dataclass(frozen=True)
class Drawing:
    """How a method's numbers of one dtype are drawn.

    ``functions``: by class of generator, the C function, ``dtype f(state, numbers...)``.  Where
    ``is_bounded`` it is ``void f(state, first, last - first, count, masked, results)`` instead.
    """

    method: str
    dtype: np.dtype
    functions: Mapping[str, str]
    parameters: tuple[Parameter, ...] = ()
    is_bounded: bool = False
    # What the self-check passes.
    samples: tuple[tuple[float, ...], ...] = ((),)

    def __repr__(self) -> str:
        return f"{self.method} of {self.dtype}"


_ROWS: dict[tuple[str, np.dtype], Drawing] = {}


def find(method: str, dtype: np.dtype) -> Drawing | None:
    """How numbers of the dtype are drawn by the method; None: by Python only."""
    return _ROWS.get((method, dtype))


def every() -> list[Drawing]:
    """All rows."""
    return list(_ROWS.values())


def _row(method: str, *parameters: Parameter, generator: str = "", legacy: str = "",
         dtype: np.dtype = F64, samples: Any = ((),)) -> None:
    functions = {kind: name for kind, name in ((GENERATOR, generator), (LEGACY, legacy)) if name}
    _ROWS[method, dtype] = Drawing(method, dtype, functions, parameters, samples=samples)


def _number(name: str, default: float | None = None) -> Parameter:
    return Parameter(name, default)


def _positive(name: str, default: float | None = None) -> Parameter:
    return Parameter(name, default, "positive")


LOC, SCALE = _number("loc", 0.0), _positive("scale", 1.0)

# --- numbers of no argument

_row("random", generator="random_standard_uniform", legacy="random_standard_uniform")
for _alias in ("random_sample", "rand"):
    _row(_alias, legacy="random_standard_uniform")
_row("standard_normal", generator="random_standard_normal", legacy="legacy_gauss")
_row("randn", legacy="legacy_gauss")
_row("standard_exponential", generator="random_standard_exponential",
     legacy="legacy_standard_exponential")
_row("standard_cauchy", generator="random_standard_cauchy")
_row("random", generator="random_standard_uniform_f", dtype=F32)
_row("standard_normal", generator="random_standard_normal_f", dtype=F32)
_row("standard_exponential", generator="random_standard_exponential_f", dtype=F32)

# --- of a place and a scale

_row("uniform", _number("low", 0.0), Parameter("high", 1.0, "above"), generator="random_uniform",
     legacy="random_uniform", samples=((-2.0, 3.5),))
_row("normal", LOC, SCALE, generator="random_normal", legacy="legacy_normal",
     samples=((0.5, 3.0),))
_row("exponential", SCALE, generator="random_exponential", legacy="legacy_exponential",
     samples=((2.5,),))
for _name in ("laplace", "gumbel", "logistic"):
    _row(_name, LOC, SCALE, generator=f"random_{_name}", samples=((0.5, 3.0),))
_row("lognormal", _number("mean", 0.0), _positive("sigma", 1.0), generator="random_lognormal",
     samples=((0.5, 0.7),))
_row("rayleigh", SCALE, generator="random_rayleigh", samples=((2.5,),))

# --- of shapes

_SHAPES = ((0.4,), (1.0,), (7.5,))
_row("standard_gamma", _positive("shape"), generator="random_standard_gamma", samples=_SHAPES)
_row("gamma", _positive("shape"), SCALE, generator="random_gamma",
     samples=((0.4, 2.0), (1.0, 3.0), (7.5, 0.5)))
_row("beta", _positive("a"), _positive("b"), generator="random_beta",
     samples=((0.4, 0.3), (0.4, 2.0), (7.5, 2.5)))
_row("chisquare", _positive("df"), generator="random_chisquare", samples=_SHAPES)
_row("f", _positive("dfnum"), _positive("dfden"), generator="random_f", samples=((2.0, 3.5),))
_row("standard_t", _positive("df"), generator="random_standard_t", samples=_SHAPES)
for _name in ("pareto", "weibull", "power"):
    _row(_name, _positive("a"), generator=f"random_{_name}", samples=_SHAPES)
_row("wald", _positive("mean"), _positive("scale"), generator="random_wald",
     samples=((0.5, 3.0),))
_row("vonmises", _number("mu"), _positive("kappa"), generator="random_vonmises",
     samples=((0.5, 3.0), (0.5, 1e-9), (0.5, 1e7)))

# --- counts

_row("poisson", Parameter("lam", 1.0, "rate"), generator="random_poisson", dtype=I64,
     samples=((0.5,), (9.0,), (12.5,), (1e4,)))
_row("geometric", Parameter("p", None, "probability"), generator="random_geometric", dtype=I64,
     samples=((0.1,), (0.5,)))

# --- integers of a range: ``low`` alone is the upper end

_BOUNDED = {
    np.dtype(name): f"random_bounded_u{name}_fill" for name in ("int8", "int16", "int32", "int64")
} | {np.dtype(name): f"random_bounded_{name}_fill" for name in ("uint8", "uint16", "uint32")}
for _dtype, _function in _BOUNDED.items():
    for _name, _kind in (("integers", GENERATOR), ("randint", LEGACY)):
        _ROWS[_name, _dtype] = Drawing(_name, _dtype, {_kind: _function},
                                       (_number("low"), _number("high")), is_bounded=True)

# The place of an element of ``range(a)``, or of an array, each as likely as the others.
CHOICE = _ROWS["choice", I64] = Drawing(
    "choice", I64, {GENERATOR: _BOUNDED[I64]}, (_number("a"),), is_bounded=True)
