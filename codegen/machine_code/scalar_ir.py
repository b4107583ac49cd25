"""Scalar functions as LLVM IR that means one thing wherever it runs.

Numba's code leaves some results to the machine and to the function it is inlined into: shifts by
as many bits as there are or more, floats that no integer holds, integers that overflow where LLVM
was told that they do not; and it calls the C library's functions, whose last bits differ from one
library to the next.  `defined` puts calls of fusec's own scalar operations there, which every back
end spells in its own way: ``call double @fusec.op.exp.f64.f64(double %x)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from fusec.core.records import dataclass

_PREFIX = "fusec.op."
_FLAGS = ("nuw nsw nusw exact disjoint nneg samesign inbounds "
          "fast nnan ninf nsz arcp contract afn reassoc")
_FLAG = "|".join(_FLAGS.split())
_DTYPES: dict[str, np.dtype] = {"float": np.dtype(np.float32), "double": np.dtype(np.float64)}
# The C library's names of functions that fusec computes by itself, in the registry's names.
_MATH = {
    **{name: name for name in (
        "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "exp10", "expm1", "log", "log2",
        "log10", "log1p", "erf", "erfc", "hypot", "pow", "cbrt", "sqrt")},
    **{f"a{name}": f"arc{name}" for name in (
        "sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
    "lgamma": "gammaln",
}


@dataclass(frozen=True)
class CalledOp:
    """A scalar operation that an IR calls by a name of its own."""

    op: str
    result: np.dtype
    arguments: tuple[np.dtype, ...]

    @property
    def symbol(self) -> str:
        return _PREFIX + ".".join([self.op, *map(_short, (self.result, *self.arguments))])

    def call(self, values: Sequence[str]) -> str:
        """The instruction."""
        pairs = zip(self.arguments, values, strict=True)
        texts = ", ".join(f"{llvm_type(d)} {v}" for d, v in pairs)
        return f"call {llvm_type(self.result)} @{self.symbol}({texts})"


def called_ops(ir: str) -> list[CalledOp]:
    """The operations that an IR calls, in order, each once."""
    return [op_of(name) for name in dict.fromkeys(re.findall(rf"@({_PREFIX}[\w.]+)\(", ir))]


def op_of(symbol: str) -> CalledOp:
    op, *kinds = symbol.removeprefix(_PREFIX).split(".")
    result, *arguments = (np.dtype(f"{k[0]}{int(k[1:]) // 8}") for k in kinds)
    return CalledOp(op, result, tuple(arguments))


def is_op(symbol: str) -> bool:
    return symbol.startswith(_PREFIX)


def llvm_type(dtype: np.dtype) -> str:
    if dtype.kind == "f":
        return "double" if dtype.itemsize == 8 else "float"
    return f"i{8 * dtype.itemsize}"


def defined(ir: str) -> str:
    """The same functions, with nothing left to the machine."""
    return "\n".join(line if line.startswith("@") else _defined(line) for line in ir.split("\n"))


def _defined(line: str) -> str:
    """A line; those of constants stay, in which the program's words are."""
    for pattern, replacement in _RULES:
        line = pattern.sub(replacement, line)
    return line


def _short(dtype: np.dtype) -> str:
    return f"{dtype.kind}{8 * dtype.itemsize}"


def _shift(found: re.Match[str]) -> str:
    """By a count that the run knows; others are known to be in range."""
    name, bits, value, count = found.groups()
    dtype = np.dtype(f"{'u' if name == 'lshr' else 'i'}{int(bits) // 8}")
    op = CalledOp("shl" if name == "shl" else "shr", dtype, (dtype, dtype))
    return f"= {op.call([value, count])}"


def _converted(found: re.Match[str]) -> str:
    name, source, value, bits = found.groups()
    result = np.dtype(f"{'i' if name == 'fptosi' else 'u'}{int(bits) // 8}")
    return f"= {CalledOp('cast', result, (_DTYPES[source],)).call([value])}"


def _math(found: re.Match[str]) -> str:
    """A call of the C library, or of an intrinsic that becomes one."""
    kind, name, operands = found.groups()
    dtype, given = _DTYPES[kind], [text.split() for text in operands.split(",")]
    base = name.removeprefix("llvm.").removesuffix(f".f{8 * dtype.itemsize}")
    plain = base.removesuffix("f") if base == name and kind == "float" else base
    if plain not in _MATH or any(words[0] != kind for words in given):
        return found[0]
    return CalledOp(_MATH[plain], dtype, (dtype,) * len(given)).call([words[-1] for words in given])


_Replacement = str | Callable[[re.Match[str]], str]
_RULES: list[tuple[re.Pattern[str], _Replacement]] = [
    # where these do not hold, a result would be nothing in particular
    (re.compile(rf"(= (?:(?:tail |musttail |notail )?call|[a-z]+))(?: (?:{_FLAG}))+(?= )"), r"\1"),
    (re.compile(r"^ +(?:tail )?call void @llvm\.assume\(.*"), ""),
    # of the lowest integer, and of zero
    (re.compile(r"(@llvm\.(?:abs|ctlz|cttz)\.i\d+\(.*), i1 true\)"), r"\1, i1 false)"),
    # what is nothing in particular is zero
    (re.compile(r"(?<=[ \[])(?:undef|poison)(?=[,\s\])]|$)"), "zeroinitializer"),
    (re.compile(r"= (shl|lshr|ashr) i(8|16|32|64) ([^,]+), (%\S+)$"), _shift),
    (re.compile(r"= (fptosi|fptoui) (float|double) (\S+) to i(8|16|32|64)$"), _converted),
    (re.compile(r"(?:tail )?call (float|double) @([\w.]+)\(([^()]*)\)"), _math),
]
