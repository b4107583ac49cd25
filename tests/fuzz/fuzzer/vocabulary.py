"""The vocabulary of programs: read from fusec's own tables, so that a new row is fuzzed unasked."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

from fusec.codegen.vecmath import BOUNDS
from fusec.ops import all_ops
from fusec.trace import tracer  # noqa: F401 (it fills the tables)
from fusec.trace.facts.refusals import is_compiled
from fusec.trace.values.handlers import FUNCTIONS, METHODS, TABLE

HOMES: dict[str, ModuleType] = {
    "np": np, "np.linalg": np.linalg, "np.fft": np.fft, "math": math, "builtins": builtins,
    "scipy.special": scipy.special, "scipy.linalg": scipy.linalg,
}
# Python's operators, and the ufunc behind each.
BINARY = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "//": np.floor_divide,
    "%": np.remainder, "**": np.power, "@": np.matmul, "&": np.bitwise_and, "|": np.bitwise_or,
    "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift, "<": np.less,
    "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal,
    "!=": np.not_equal,
}
IN_PLACE = [op for op in BINARY if op not in ("<", "<=", ">", ">=", "==", "!=")]
UNARY = {"-": np.negative, "+": np.positive, "~": np.invert, "abs": np.absolute}
UFUNC_METHODS = ("reduce", "accumulate", "outer", "reduceat", "at")
ATTRIBUTES = ("T", "mT", "real", "imag", "size", "shape", "ndim", "nbytes", "itemsize")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a callable; ``required``: it has no default."""

    name: str
    required: bool
    keyword: bool
    variadic: bool = False


@dataclass(frozen=True)
class Callee:
    """A callable by the text that names it in a program, with its parameters."""

    code: str
    parameters: tuple[Parameter, ...]
    home: str

    @property
    def name(self) -> str:
        return self.code.rpartition(".")[2]


# ------------------------------------------------------------------------------------- names


@functools.cache
def _public_names() -> dict[int, str]:
    found: dict[int, str] = {}
    for home, module in HOMES.items():
        public = getattr(module, "__all__", None) or vars(module)
        for name in sorted(public):
            thing = getattr(module, name, None)
            found.setdefault(id(thing), f"{home}.{name}")
            if getattr(thing, "__name__", "") == name and found[id(thing)].startswith(f"{home}."):
                found[id(thing)] = f"{home}.{name}"  # rather than an alias: concat, acos
    return found


def code_of(function: Any) -> str | None:
    """``np.linalg.norm`` for that function; None for functions without a public name."""
    return _public_names().get(id(function))


def parameters_of(function: Any, skip: int = 0) -> tuple[Parameter, ...]:
    """Its parameters; those of a callable without a signature are unknown, so none."""
    try:
        found = list(inspect.signature(function).parameters.values())[skip:]
    except ValueError:
        return ()
    return tuple(Parameter(
        p.name, p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL),
        p.kind is p.KEYWORD_ONLY, p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD),
    ) for p in found if p.kind is not p.VAR_KEYWORD)


# ------------------------------------------------------------------------------------- tables


@functools.cache
def ufuncs() -> list[tuple[str, np.ufunc]]:
    """Every ufunc that NumPy's main namespace or a row of the registry has, by its text."""
    own = {row.ufunc for row in all_ops() if row.ufunc is not None}
    candidates: list[Any] = [getattr(np, name) for name in sorted(np.__all__)]
    found = {code_of(f): f for f in [*candidates, *own] if isinstance(f, np.ufunc) and code_of(f)}
    return [(str(code), f) for code, f in sorted(found.items(), key=lambda kv: str(kv[0]))]


def _callees(functions: Any) -> Iterator[Callee]:
    for function in functions:
        code = code_of(function)
        if code is not None and not isinstance(function, np.ufunc | type):
            yield Callee(code, parameters_of(function), code.rpartition(".")[0])


@functools.cache
def functions() -> list[Callee]:
    """The functions that traced values answer for."""
    return sorted(_callees(FUNCTIONS), key=lambda c: c.code)


@functools.cache
def methods() -> list[Callee]:
    """ndarray's methods, with the parameters of the function of the same name."""
    found = []
    for name in sorted(METHODS):
        function = getattr(np, name, None)
        parameters = parameters_of(function, 1) if callable(function) else _EXTRA.get(name, ())
        found.append(Callee(f".{name}", parameters, "ndarray"))
    return found


_EXTRA = {
    "fill": (Parameter("fill_value", True, False),),
    "flatten": (Parameter("order", False, False),),
}


@functools.cache
def conversions() -> list[str]:
    """Constructors of scalars: ``np.float32``, ``float``."""
    kinds: list[Any] = [kind for kind in (np.sctypeDict[k] for k in np.sctypeDict if type(k) is str)
                        if kind in TABLE and is_compiled(np.dtype(kind))]
    codes = {code for kind in kinds if (code := code_of(kind)) is not None}
    return [*sorted(codes), "builtins.float", "builtins.int", "builtins.abs", "builtins.round",
            "builtins.len"]


@functools.cache
def scalar_functions() -> list[Callee]:
    """Functions of ``math`` that are compiled."""
    return sorted((c for c in _callees(f for f, _ in TABLE._entries.values() if callable(f))
                   if c.home == "math"), key=lambda c: c.code)


# ------------------------------------------------------------------------------------- rounding


@functools.cache
def _rows() -> dict[Any, Any]:
    return {row.ufunc: row for row in all_ops() if row.ufunc is not None}


def rounding_of(ufunc: np.ufunc) -> str:
    """How far its results may be from NumPy's: see `rounding`.

    A ufunc with an exact scalar op is exact; one of our own math functions has a bound.
    """
    row = _rows().get(ufunc)
    if row is None or row.kind != "elementwise":
        return "exact" if ufunc.signature is None and not _gives_floats(ufunc) else "backward"
    bounds = [bound for (name, _), bound in BOUNDS.items() if name == row.scalar]
    if row.scalar == "abs":  # of complex numbers it is our hypot
        return f"complex {math.ceil(max(BOUNDS[key] for key in BOUNDS if key[0] == 'hypot'))}"
    if bounds:
        return f"ulp {math.ceil(max(bounds))}"
    if row.scalar in ("mul", "square", "deg2rad", "rad2deg"):
        return "product"
    return "zeros" if row.scalar in ("maximum", "minimum", "fmax", "fmin") else "exact"


def _gives_floats(ufunc: np.ufunc) -> bool:
    return any(c in "efdgFDG" for t in ufunc.types for c in t.partition("->")[2])


Handler = Callable[..., Any]
