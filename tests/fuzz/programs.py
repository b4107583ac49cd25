"""Random straight-line NumPy programs as source text, grown by running them.

Every statement is executed on real arrays as it is drawn, so shapes and dtypes are known and
statements that NumPy refuses are left out.  Where NumPy itself leaves a result open, the vocabulary
stays clear of it: the sign of zero of a maximum (``+ 0``), float sums in any order (of small whole
numbers only), floats cast to integers that do not hold them.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

DTYPES = ["f8", "f4", "i8", "i4", "i1", "u1", "u8", "?", "u4", "i2", "u2"]
SHAPES: list[tuple[int, ...]] = [(3,), (2, 3), (3, 1), (1, 3), (5,), (), (0,), (2, 0), (4, 3, 2),
                                 (1,), (17,), (3, 3)]
VALUES = [0.0, 1.0, -1.0, 2.5, np.nan, np.inf, -np.inf, -0.0, 0.5, -3.0, 7.0, 1e300, 5e-324, 100.0,
          -2.5, 1e-3]
INTS = [0, 1, -1, 2, 3, 7, -8, 100, 127, -128, 255, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 63,
        64]
LAYOUTS = ["", "", "", ".T", "[::-1]", "[..., ::-1]", "[::2]", "[1:]", ".T[::-1]"]
FLOAT, INT, ANY = "f", "iu", "biuf"


@dataclass
class Argument:
    """Code that makes an argument: elements, shape, and how they lie in memory.

    ``same``: it is the first argument again.
    """

    dtype: str
    shape: tuple[int, ...]
    layout: str
    seed: int
    same: bool = False

    @property
    def code(self) -> str:
        size = int(np.prod(self.shape))
        picks = np.random.default_rng(self.seed).integers(0, 1000, size)
        pool = VALUES if self.dtype[0] == "f" else _ints(self.dtype)
        values = [pool[p % len(pool)] if p % 3 else pool[p % 3] for p in picks]
        text = ", ".join(repr(float(v)) if self.dtype[0] == "f" else repr(v) for v in values)
        layout = self.layout if self.shape else ""
        return f"np.array([{text}], '{self.dtype}').reshape({self.shape}){layout}"

    def make(self) -> np.ndarray:
        names = {"np": np, "nan": np.nan, "inf": np.inf}
        with np.errstate(all="ignore"):
            return eval(self.code, names)


def _ints(dtype: str) -> list[Any]:
    if dtype == "?":
        return [True, False]
    info = np.iinfo(dtype)
    return [n for n in INTS if info.min <= n <= info.max]


@dataclass
class Program:
    """Arguments and statements; ``results`` are the names returned."""

    arguments: list[Argument]
    lines: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)

    @property
    def source(self) -> str:
        names = ", ".join(f"x{i}" for i in range(len(self.arguments)))
        body = [*self.lines, f"return ({', '.join(self.results)},)"]
        return f"def program({names}):\n" + "".join(f"    {line}\n" for line in body)

    @property
    def runnable(self) -> str:
        """A script that shows the difference."""
        made = "".join(f"        {a.code},\n" for a in self.arguments)
        shared = "".join(f"x[{i}] = x[0]; y[{i}] = y[0]\n" for i in self._again())
        return "\n".join([
            "import fusec, numpy as np", "from numpy import inf, nan", "", self.source,
            f"def arguments():\n    return [\n{made}    ]\n",
            f"x, y = arguments(), arguments()\n{shared}",
            "print(program(*x), x)", "print(fusec.jit(program, fp='strict')(*y), y)",
        ])

    def function(self, numpy: Any = np) -> Callable[..., Any]:
        """The program; ``numpy`` is its ``np``."""
        name = f"<fuzz {abs(hash(self.source))}>"
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(True), name)
        scope: dict[str, Any] = {"np": numpy}
        exec(compile(self.source, name, "exec"), scope)
        return scope["program"]

    def _again(self) -> list[int]:
        return [i for i, a in enumerate(self.arguments) if a.same and i > 0]

    def make(self) -> list[np.ndarray]:
        """The arguments, fresh."""
        arrays = [a.make() for a in self.arguments]
        for i in self._again():
            arrays[i] = arrays[0]
        return arrays


# --------------------------------------------------------------------------------------- grammar

TAME = "(np.rint(np.clip(np.nan_to_num({a}), -8, 8)) + 0)"
UNARY: list[tuple[str, str]] = [
    (ANY, "abs({a})"), ("iuf", "-{a}"), (ANY, "np.square({a})"), (FLOAT, "np.sqrt({a})"),
    (FLOAT, "np.floor({a})"), (FLOAT, "np.rint({a})"), (FLOAT, "np.isnan({a})"), ("b", "~{a}"),
    (INT, "~{a}"), ("iuf", "np.sign({a})"), (FLOAT, "np.exp({a})"), (FLOAT, "np.tanh({a})"),
    (FLOAT, "np.sin({a})"), (FLOAT, "np.log({a})"), ("iuf", "{a} ** 2"), (INT, "{a} ** 3"),
    (FLOAT, "1 / {a}"), (FLOAT, "np.nan_to_num({a})"), (ANY, "{a}.copy()"), (ANY, "{a} != 0"),
    (FLOAT, "np.round({a}, 1)"), (ANY, "np.logical_not({a})"), (FLOAT, "np.trunc({a})"),
]
BINARY: list[tuple[str, str]] = [
    (ANY, "{a} + {b}"), (ANY, "{a} * {b}"), ("iuf", "{a} - {b}"), ("iuf", "{a} / {b}"),
    ("iuf", "{a} // {b}"), ("iuf", "{a} % {b}"), (ANY, "np.maximum({a}, {b}) + 0"),
    (ANY, "np.minimum({a}, {b}) + 0"), (ANY, "{a} < {b}"), (ANY, "{a} >= {b}"),
    (ANY, "{a} == {b}"), ("biu", "{a} & {b}"), ("biu", "{a} ^ {b}"), ("iu", "{a} << {b}"),
    ("iu", "{a} >> {b}"), (ANY, "np.where({a} > 0, {a}, {b})"), (ANY, "np.where({a}, {b}, {c})"),
    (ANY, "np.where({a} != {b}, {b}, {c})"), ("iuf", "{a} * {b} + {c}"),
    (FLOAT, "{a} * {a} - {b} * {b}"),
    (ANY, "np.concatenate([{a}, {b}])"), (ANY, "np.stack([{a}, {b}])"),
    (ANY, "np.logical_and({a}, {b})"), ("iu", "{a} @ {b}"), (ANY, "np.add({a}, {b}, dtype='f8')"),
    (ANY, "np.multiply({a}, {b}, out=np.zeros({a}.shape))"),
]
CASTS: list[tuple[str, str]] = [
    ("biu", "{a}.astype('{t}')"), (FLOAT, TAME + ".astype('{t}')"), (FLOAT, "{a}.astype('f4')"),
    (FLOAT, "{a}.astype(bool)"),
]
REDUCTIONS: list[tuple[str, str]] = [
    (ANY, "{a}.max({x}) + 0"), (ANY, "{a}.min({x}) + 0"), (ANY, "{a}.any({x})"),
    (ANY, "{a}.all({x})"),
    ("biu", "{a}.sum({x})"), ("biu", "{a}.prod({x})"), (ANY, "np.count_nonzero({a}, {x})"),
    (ANY, "{a}.argmax({i})"), (ANY, "{a}.argmin({i})"), ("iuf", TAME + ".sum({x})"),
    (FLOAT, TAME + ".mean({x})"), (FLOAT, "{a} - {a}.max({x}, keepdims=True)"),
    (FLOAT, TAME + ".sum({x}, keepdims=True) * {a}"), ("biu", "{a}.mean({x})"),
]
VIEWS: list[tuple[str, str]] = [
    (ANY, "{a}[{s}]"), (ANY, "{a}[{s}]"), (ANY, "{a}.T"), (ANY, "{a}.reshape(-1)"),
    (ANY, "{a}[None]"),
    (ANY, "{a}[..., None]"), (ANY, "np.roll({a}, {k})"), (ANY, "np.flip({a})"), (ANY, "{a}[{k}]"),
    (ANY, "np.clip({a}, {n}, 3) + 0"), (ANY, "{a}.ravel()"), (ANY, "np.squeeze({a})"),
    (ANY, "np.broadcast_to({a}, (2, *{a}.shape))"), (ANY, "{a}[{s}][{s2}]"),
    (ANY, "np.zeros_like({a})"),
    (ANY, "np.roll({a}, {k}, 0)"), (ANY, "np.swapaxes({a}, 0, -1)"), (ANY, "np.diff({a}, axis=0)"),
]
WRITES: list[tuple[str, str]] = [
    (ANY, "{a}[{s}] = {b}"), (ANY, "{a}[{s}] = {n}"), (ANY, "{a} += {b}"), (ANY, "{a} *= {b}"),
    (ANY, "{a}[{s}] += {n}"), (ANY, "{a}[{s}] = {a}[{s2}]"), (ANY, "{a}[...] = {b}"),
    (ANY, "{a}[1:] = {a}[:-1]"), (ANY, "{a}[::-1] = {a}"), (ANY, "{a}[{a} > {n}] = {n}"),
    (ANY, "np.add({a}, {b}, out={a})"), (ANY, "{a} -= {n}"), (FLOAT, "{a} /= {b}"),
    (ANY, "{a}.fill({n})"),
    (ANY, "np.copyto({a}, {b})"), (ANY, "{a}.T[{s}] = {b}"), (ANY, "{a}[0] = {a}[-1]"),
    (ANY, "{a}[{s}] *= {a}[{s2}]"),
]
GROUPS = [UNARY, BINARY, BINARY, CASTS, REDUCTIONS, VIEWS, WRITES, WRITES]
SLICES = ["1:", ":-1", "::-1", "::2", "1:3", "0", "-1", ":0", "..., 1:", "..., ::-1", ":, 0",
          "None, 0", "1:, ::2", "::-1, :1", "..., 0", "1::2", "2::-1"]
NUMBERS = ["1", "0", "-1", "2", "3", "0.5", "-2.5", "100", "True", "np.float32(1.5)", "np.int8(3)",
           "300", "1e300", "float('nan')"]


class Growing:
    """A program under way, with the present values of its variables."""

    def __init__(self, arguments: list[Argument], numpy: Any) -> None:
        self.program = Program(arguments)
        self.scope: dict[str, Any] = {"np": numpy}
        self.scope.update((f"x{i}", a) for i, a in enumerate(self.program.make()))
        self.names = [f"x{i}" for i in range(len(arguments))]

    def try_line(self, line: str, new: bool) -> None:
        """Run the statement; keep it if NumPy takes it and the result is small."""
        target = f"t{len(self.program.lines)}"
        text = f"{target} = {line}" if new else line
        backup = [(n, self.scope[n].copy()) for n in self.names if isinstance(
            self.scope[n], np.ndarray)] if not new else []
        try:
            with np.errstate(all="ignore"):
                exec(text, self.scope)
        except (ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError):
            for name, old in backup:
                if self.scope[name].flags.writeable:
                    self.scope[name][...] = old
            return
        if new and not self._is_fine(self.scope[target]):
            return
        self.program.lines.append(text)
        self.names += [target] if new else []

    def _is_fine(self, value: Any) -> bool:
        return isinstance(value, (np.ndarray, np.generic)) and value.size <= 64 and (
            value.ndim <= 4 and value.dtype.kind in ANY and value.dtype != np.float16
            and value.dtype.itemsize <= 8)

    def of_kind(self, kinds: str) -> list[str]:
        return [n for n in self.names if np.asarray(self.scope[n]).dtype.kind in kinds]


@st.composite
def programs(draw: st.DrawFn, numpy: Any = np, longest: int = 9) -> Program:
    """A program of one to three arguments; fewer and simpler statements shrink first."""
    arguments = draw(st.lists(st.builds(
        Argument, st.sampled_from(DTYPES), st.sampled_from(SHAPES), st.sampled_from(LAYOUTS),
        st.integers(0, 99), st.sampled_from([False] * 5 + [True])), min_size=1, max_size=3))
    growing = Growing(arguments, numpy)
    for _ in range(draw(st.integers(1, longest))):
        group = draw(st.sampled_from(GROUPS))
        kinds, template = draw(st.sampled_from(group))
        candidates = growing.of_kind(kinds)
        if candidates:
            growing.try_line(draw(filled(template, candidates, growing.names)), group is not WRITES)
    program = growing.program
    program.results = draw(st.lists(st.sampled_from(growing.names), min_size=1, max_size=4))
    if growing.names[-1] not in program.results:
        program.results.append(growing.names[-1])
    return program


@st.composite
def filled(draw: st.DrawFn, template: str, candidates: list[str], names: list[str]) -> str:
    """The template with variables, numbers, axes and slices put in."""
    operand = st.one_of(st.sampled_from(names), st.sampled_from(names), st.sampled_from(NUMBERS))
    parts = {"a": st.sampled_from(candidates[::-1]), "b": operand, "c": operand,
             "t": st.sampled_from(DTYPES), "x": st.sampled_from(["None", "0", "-1", "(0, 1)"]),
             "i": st.sampled_from(["None", "0", "-1"]), "s": st.sampled_from(SLICES),
             "s2": st.sampled_from(SLICES), "n": st.sampled_from(NUMBERS[:8]),
             "k": st.sampled_from(["1", "-2", "3", "0"])}
    return template.format(**{k: draw(s) for k, s in parts.items() if "{" + k + "}" in template})
