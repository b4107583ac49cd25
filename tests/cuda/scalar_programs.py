"""Random functions of numbers for `fusec.vectorize`: Python text, from a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

WHOLE = ("0", "1", "-1", "2", "3", "5", "7", "63", "64", "255", "-128", str(2**31), str(2**62),
         str(1 - 2**63), str(10**9))
REAL = ("0.0", "-0.0", "1.0", "0.5", "-2.25", "1e300", "1e-310", "3.7", "1e9")
INTEGERS = ("i8", "i8", "i4", "i2", "i1", "u1", "u2", "u4")
ORDER = ("<", "<=", ">", ">=", "==", "!=")
NUMBERS = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e300, -1e300, 1e-310, np.inf, -np.inf,
                    np.nan, 3.0, 1e10, -7.3, 2.0**63, 123456.789])


class Program:
    """One function of integers ``n`` and ``k``, floats ``x`` and ``y``, a bool ``p``.

    It has two variables of each kind, branches, loops that end, and divides by nothing that is 0.
    """

    def __init__(self, seed: int, name: str) -> None:
        self.random, self.name = random.Random(f"{seed} {name}"), name
        lines = self.block(3, 1, 0)
        result = self.one_of(self.whole(2), self.real(2), self.truth(2), "i0 + i1", "f0 + f1")
        self.text = "\n".join([
            f"def {name}(n, k, x, y, p):", "    i0, i1, f0, f1 = 1, 2, 0.5, -1.5", *lines,
            f"    return {result}"])

    @property
    def function(self) -> Callable[..., Any]:
        scope: dict[str, Any] = {"math": math, "np": np}
        exec(self.text, scope)
        function: Callable[..., Any] = scope[self.name]
        return function

    def one_of(self, *texts: str) -> str:
        return self.random.choice(texts)

    # -- expressions

    def whole(self, depth: int) -> str:
        if depth <= 0:
            return self.one_of("n", "k", "i0", "i1", self.one_of(*WHOLE))
        a, b, least = self.whole(depth - 1), self.whole(depth - 1), self.whole(0)
        return self.one_of(
            *(f"({a} {sign} {b})" for sign in "+-*&|^"), f"({a} // {b} if {b} != 0 else {least})",
            f"({a} % {b} if {b} != 0 else {least})", f"({a} << {b})", f"({a} >> {b})",
            f"({a} << ({b} & 63))", f"({a} >> {self.random.randrange(64)})", f"(-{a})", f"(~{a})",
            f"min({a}, {b})", f"max({a}, {b})", f"abs({a})", f"int({self.real(depth - 1)})",
            f"({a} if {self.truth(depth - 1)} else {b})")

    def real(self, depth: int) -> str:
        if depth <= 0:
            return self.one_of("x", "y", "f0", "f1", self.one_of(*REAL))
        a, b, least = self.real(depth - 1), self.real(depth - 1), self.real(0)
        name = self.one_of("sin", "cos", "exp", "floor", "ceil", "atan", "tanh", "sqrt")
        return self.one_of(
            *(f"({a} {sign} {b})" for sign in "+-*"), f"({a} / {b} if {b} != 0.0 else {least})",
            f"({a} % {b} if {b} != 0.0 else {least})", f"({a} // {b} if {b} != 0.0 else {least})",
            f"math.{name}({a})", f"math.sqrt(abs({a}))", f"float({self.whole(depth - 1)})",
            f"min({a}, {b})", f"max({a}, {b})", f"math.copysign({a}, {b})", f"(-{a})",
            f"np.float32({a})", f"np.rint({a})", f"({a} if {self.truth(depth - 1)} else {b})")

    def truth(self, depth: int) -> str:
        if depth <= 0:
            return self.one_of("p", "n > k", "x < y", "i0 == i1")
        sign, kind = self.one_of(*ORDER), self.random.choice((self.whole, self.real))
        return self.one_of(
            f"({kind(depth - 1)} {sign} {kind(depth - 1)})",
            f"({self.truth(depth - 1)} {self.one_of('and', 'or')} {self.truth(depth - 1)})",
            f"(not {self.truth(depth - 1)})", f"math.isnan({self.real(depth - 1)})",
            f"math.isinf({self.real(depth - 1)})")

    # -- statements

    def block(self, depth: int, indent: int, loops: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            lines += self.random.choice((self.assigned, self.branch, self.loop))(
                depth, indent, loops)
        return lines

    def assigned(self, depth: int, indent: int, loops: int) -> list[str]:
        texts = [f"i{self.random.randrange(2)} = {self.whole(2)}", "i0, i1 = i1, i0",
                 f"f{self.random.randrange(2)} = {self.real(2)}", f"f1 = {self.real(3)}"]
        return ["    " * indent + self.one_of(*texts)]

    def branch(self, depth: int, indent: int, loops: int) -> list[str]:
        if not depth:
            return self.assigned(depth, indent, loops)
        margin = "    " * indent
        lines = [f"{margin}if {self.truth(2)}:", *self.block(depth - 1, indent + 1, loops)]
        if self.random.random() < 0.6:
            lines += [f"{margin}else:", *self.block(depth - 1, indent + 1, loops)]
        return lines

    def loop(self, depth: int, indent: int, loops: int) -> list[str]:
        if not depth or loops == 2:
            return self.assigned(depth, indent, loops)
        margin, j = "    " * indent, f"j{indent}"
        inside = self.block(depth - 1, indent + 1, loops + 1)
        last = [f"{margin}    if {self.truth(1)}: break"] * (self.random.random() < 0.4)
        if self.random.random() < 0.5:
            limit = self.one_of("5", "13", "(n & 7)", "(abs(k) & 15)")
            step = self.one_of(f"i0 += {j}", f"f0 = f0 * 0.5 + {j}", f"i1 ^= i0 + {j}")
            return [f"{margin}for {j} in range({limit}):", *inside, f"{margin}    {step}", *last]
        return [f"{margin}{j} = 0", f"{margin}while {self.truth(1)} and {j} < 9:", *inside,
                f"{margin}    {j} += 1", *last]


def arguments(seed: int, count: int = 37) -> tuple[np.ndarray, ...]:
    """Arrays of numbers of every size, of dtypes that the seed decides."""
    rng = np.random.default_rng(seed)
    kinds = [np.dtype(str(d)) for d in rng.choice(INTEGERS, 2)]
    real = np.dtype(str(rng.choice(["f8", "f8", "f4"])))
    with np.errstate(over="ignore"):
        floats = [rng.choice(NUMBERS, count).astype(real) for _ in range(2)]
    return (*(rng.choice(_whole(d), count) for d in kinds), *floats, rng.random(count) < 0.5)


def _whole(dtype: np.dtype) -> np.ndarray:
    info = np.iinfo(dtype)
    near = [0, 1, 2, 3, 5, 7, 63, 64, 65, 100, 127, -1, -2, -3, -100, -128]
    edges = [info.min, info.max, info.max - 1, info.max // 3]
    return np.array([x for x in near if info.min <= x <= info.max] + edges, dtype)
