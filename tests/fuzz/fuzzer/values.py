"""Arguments of random programs: every dtype that is compiled, awkward values first, any layout."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from fusec.trace.facts.refusals import is_compiled

# Whatever is compiled is fuzzed: a new dtype needs no edit here.
DTYPES = [np.dtype(c).str[1:] for c in "dflqihb?BHILeFD" if is_compiled(np.dtype(c))]
DTYPES = ["?" if name == "b1" else name for name in dict.fromkeys(DTYPES)]
WEIGHTS = [6 if name == "f8" else 3 if name == "f4" else 2 if name == "i8" else 1
           for name in DTYPES]
FLOATS = [0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 0.5, 2.0, -2.5, 3.0, 7.0, 1e-3,
          100.0, 1e300, -1e300, 5e-324, 1.7976931348623157e308, 1e-310, 2.0**31, -(2.0**63), 0.1,
          math.pi, 709.5, 88.9, -745.2, 3e38, 1e-40, 65504.0, 6e-8]
TAME = [0.0, 1.0, -1.0, 0.5, 2.0, -2.5, 3.0, 7.0, 0.1, -0.3, 1.25, 10.0]
INTS = [0, 1, -1, 2, 3, 7, -8, 100, 127, -128, 255, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63),
        2**64 - 1, 63, 64, 31, 2**53 + 1]
SMALL = [0, 1, -1, 2, 3, -2, 5, 4]
# Around the widths of vectors (8 of f64, 16 of f32, and their steps), and everything tiny.
SIZES = [3, 3, 3, 2, 4, 1, 5, 0, 7, 8, 9, 16, 17, 33]
SHAPES: list[tuple[int, ...]] = [
    (3,), (3,), (5,), (2, 3), (2, 3), (3, 3), (3, 3), (2, 2), (3, 1), (1, 3), (), (1,), (0,),
    (2, 0), (0, 3), (4, 3, 2), (2, 3, 3), (8,), (17,), (2, 17), (9, 2), (1, 1), (2, 1, 3),
]
LAYOUTS = ["C", "C", "C", "C", "F", "step", "outer step", "reversed", "reversed last", "permuted",
           "offset", "broadcast"]


def literal(value: Any) -> str:
    """Source text of a number; ``nan`` and ``inf`` are names there."""
    if isinstance(value, complex):
        return f"complex({value.real!r}, {value.imag!r})"
    return repr(value)


def draw_number(rng: Random, dtype: str, tame: bool) -> Any:
    """A Python number that the dtype holds; extremes are as likely as ordinary ones."""
    if dtype == "?":
        return rng.random() < 0.5
    if dtype[0] in "iu":
        info = np.iinfo(dtype)
        pool = [n for n in (SMALL if tame else INTS) if info.min <= n <= info.max]
        return rng.choice(pool)
    pool = TAME if tame else FLOATS
    if dtype[0] == "c":
        return complex(rng.choice(pool), rng.choice(pool))
    return rng.choice(pool)


@dataclass(frozen=True)
class Argument:
    """Code of one argument: ``kind`` is "array", "scalar", "number", or "alias" of argument 0.

    ``values`` fill an array of shape ``base``; ``view`` is the view then taken of it.
    """

    kind: str
    dtype: str
    values: tuple[Any, ...]
    base: tuple[int, ...] = ()
    view: str = ""

    @property
    def code(self) -> str:
        if self.kind == "alias":
            return f"x0{self.view}"
        if self.kind == "number":
            return literal(self.values[0])
        if self.kind == "scalar":
            return f"np.dtype('{self.dtype}').type({literal(self.values[0])})"
        text = ", ".join(map(literal, self.values))
        array = f"np.array([{text}], '{self.dtype}')"
        if self.base != (len(self.values),):
            array += f".reshape({self.base})"
        return self.view.format(array) if "{}" in self.view else array + self.view


def make(arguments: list[Argument]) -> list[Any]:
    """The arguments, fresh; aliases share memory with the first."""
    scope: dict[str, Any] = {"np": np, "nan": np.nan, "inf": np.inf}
    made: list[Any] = []
    with np.errstate(all="ignore"):
        for i, argument in enumerate(arguments):
            made.append(eval(argument.code, scope))
            scope[f"x{i}"] = made[-1]
    return made


def draw_argument(rng: Random, first: Argument | None = None) -> Argument:
    """An argument; ``first`` is argument 0, which it may share memory with or look like."""
    dtype = rng.choices(DTYPES, WEIGHTS)[0]
    tame = rng.random() < 0.4
    pick = rng.random()
    if first is not None and first.kind == "array" and pick < 0.06:
        views = ["", "", "", "[::-1]", ".T"] if first.base else [""]
        return Argument("alias", first.dtype, (), (), rng.choice(views))
    if pick > 0.88:
        return _number(rng, dtype, tame)
    shape = rng.choice(SHAPES)
    if first is not None and first.kind == "array" and rng.random() < 0.5:
        shape, dtype = first.base if first.view == "" else shape, rng.choice([dtype, first.dtype])
    return _array(rng, dtype, shape, tame)


def _number(rng: Random, dtype: str, tame: bool) -> Argument:
    if rng.random() < 0.5:
        return Argument("scalar", dtype, (draw_number(rng, dtype, tame),))
    dtype = rng.choice([d for d in ("f8", "f8", "i8", "?", "c16") if d in DTYPES])
    value = draw_number(rng, dtype, tame)
    return Argument("number", dtype, (value,))


def _array(rng: Random, dtype: str, shape: tuple[int, ...], tame: bool) -> Argument:
    base, view = _layout(rng, shape)
    size = math.prod(base)
    values = [draw_number(rng, dtype, tame) for _ in range(min(size, 40))]
    values += values * (size // max(len(values), 1))
    return Argument("array", dtype, tuple(values[:size]), base, view)


def _layout(rng: Random, shape: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    """The shape in memory and the view of it that has ``shape``."""
    layout = rng.choice(LAYOUTS) if shape else "C"
    *outer, last = shape or (1,)
    if layout == "F":
        return shape[::-1], ".T"
    if layout == "step":
        return (*outer, 2 * last), "[..., ::2]"
    if layout == "outer step":
        return (2 * shape[0] + 1, *shape[1:]), "[1::2]"
    if layout == "reversed":
        return shape, "[::-1]"
    if layout == "reversed last":
        return shape, "[..., ::-1]"
    if layout == "permuted":
        order = rng.sample(range(len(shape)), len(shape))
        back = [order.index(d) for d in range(len(shape))]
        return tuple(shape[d] for d in order), f".transpose({tuple(back)})"
    if layout == "offset":
        return (shape[0] + 1, *shape[1:]), "[1:]"
    if layout == "broadcast":
        kept = tuple(n if rng.random() < 0.5 else 1 for n in shape)
        return kept, f"np.broadcast_to({{}}, {shape})"
    return shape, ""
