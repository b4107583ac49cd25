"""Programs that one compiled function runs at six sizes, some of which NumPy or Python refuses.

Each statement makes a number or an array of earlier ones; arrays are as long as ``n``, and ``n``
is read off an argument or given as an int.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

import fusec
from fusec.errors import ConcreteValueError, UnsupportedError

from ..judge import Failure, Verdict
from .judge import TookTooLong, limited
from .program import ControlProgram

NUMBERS = ("n", "n - 2", "4 - n", "n // 2", "n % 3", "2 * n", "n * n - 6", "min(n, 3)",
           "max(n - 3, 0)", "abs(n - 3)", "len({a})", "{a}.size - 1", "{a}.shape[0]", "-1", "0",
           "1", "2", "3", "len({a}) - len({b})", "{i} + 1", "{i} - {j}")
FLOATS = ("{a}.sum()", "{a}.max()", "float({a}[{i}])", "{a}.mean()", "1.0 / {i}", "0.5", "{a}[0]",
          "math.sqrt({i})", "2.5 % {i}", "float({i} // {j})", "{a}.argmin() * 1.0", "0.0 ** {i}")
ARRAYS = (
    "np.zeros({i})", "np.ones(({i}, 2))", "np.full({i}, {f})", "np.arange({i})",
    "np.arange({i}, {j})", "np.arange({i}, {j}, {k})", "np.linspace(0, 1, {i})",
    "np.linspace(0, {f}, {i})", "np.eye({i})", "np.eye({i}, 3, k={j})", "np.tri({i}, 3)",
    "np.broadcast_to({f}, ({i},))", "np.broadcast_to({a}, ({i}, {j}))", "{a}.reshape({i}, -1)",
    "{a}.reshape(-1, {i})", "{a}.reshape({i}, {j})", "np.repeat({a}, {i})", "np.tile({a}, {i})",
    "np.resize({a}, {i})", "np.pad({a}, {i})", "np.pad({a}, ({i}, {j}), mode='edge')", "{a}[{i}:]",
    "{a}[:{i}]", "{a}[{i}:{j}]", "{a}[::{i}]", "np.split({a}, {i})[0]",
    "np.array_split({a}, {i})[0]", "np.roll({a}, {i})", "np.concatenate([{a}, {b}])",
    "np.stack([{a}, {b}])", "np.vstack([{a}, {b}])", "{a} + {b}", "{a} * {f}", "{a} - {b}[{i}:]",
    "np.cumsum({a})", "np.sort({a})", "np.take({a}, [{i}, {j}])", "{a}[[{i}, 0]]",
    "np.insert({a}, {i}, 1.0)", "np.delete({a}, {i})", "np.expand_dims({a}, {i})",
    "np.squeeze({a})", "{a}.T", "np.diag({a}, {i})", "np.vander({a}, {i})",
    "np.where({a} > {f}, {a}, 0.0)", "np.where({a} > 0, {a}, {b})", "np.convolve({a}, {b})",
    "np.diff({a}, n={i})", "np.clip({a}, 0, {f})", "np.outer({a}, {b})", "{a} @ {b}",
    "np.fft.fft({a}, {i}).real", "np.array([{a}.sum(), {f}])", "np.flip({a}, {i})",
    "np.array([{a}[q] for q in range({i})])", "np.minimum({a}, {b})", "{a}.sum(axis={i})",
    "np.max({a}, axis=-1)", "np.partition({a}, {i})", "np.full_like({a}, {f}, shape=({i}, 2))",
    "np.sum(np.array(np.unravel_index({i}, ({j}, 3))))", "np.atleast_2d({a})[{i}]",
    "np.gradient({a})", "np.hanning({i})", "np.triu(np.outer({a}, {b}), {i})", "{a}.ravel()",
    "np.interp({f}, {a}, {b})", "np.bincount(np.arange({i}), minlength={j})", "{a}[{a} > {f}]",
    "np.take_along_axis({a}, np.argsort({b}), 0)", "np.ascontiguousarray({a}[::-1])",
    "np.swapaxes({a}, 0, {i})", "np.lib.stride_tricks.sliding_window_view({a}, {i})",
    "np.moveaxis({a}, 0, {i})", "np.hstack([{a}, {b}])", "np.column_stack([{a}, {b}])",
    "np.append({a}, {f})", "np.searchsorted(np.sort({a}), {b})", "np.kron({a}, {b})",
)
BLOCKS = (
    "s = 0.0\nfor t in {a}:\n    s = s + t\nr{r} = s",
    "s = 0.0\nfor q in range({i}):\n    s = s + {a}[q]\nr{r} = s",
    "s = 0.0\nfor q in range({i}, {j}, {k}):\n    s += q * {f}\nr{r} = s",
    "w = {a} * 1.0\nw[{i}] = {f}\nr{r} = w",
    "w = {a} * 1.0\nw[{i}:{j}] += 1.0\nr{r} = w",
    "w = {a} + 0.0\nw[...] = {b}\nr{r} = w",
    "w = {a} * 1.0\nfor q in range({i}):\n    w[q] = w[q - 1] + 1.0\nr{r} = w",
    "q = 0\nwhile q < {i}:\n    q += 2\nr{r} = q",
    "r{r} = {f} if {i} > {j} else {a}.sum()",
    "if {i} > 2:\n    r{r} = {a} * 2.0\nelse:\n    r{r} = {b} + {f}",
    "w = np.zeros({i})\nfor q in range(len(w)):\n    if {f} > q:\n        w[q] = q\nr{r} = w",
    "s = 0.0\nfor q, t in zip(range({i}), {a}, strict=True):\n    s += q * t\nr{r} = s",
    "s = 0\nfor q in np.ndindex({i}, 2):\n    s += q[1]\nr{r} = s",
    "w = [{f}] * {i}\nr{r} = np.array(w)",
    "p, q = {a}\nr{r} = p - q",
    "s = 0.0\nfor t in np.broadcast_to({f}, ({i},)):\n    s += t\nr{r} = s",
    "w = np.ones(3)\nfor t in {a}:\n    w *= t\n    if w.sum() > 1.0:\n        w = np.ones(3)\n"
    "r{r} = w",
    "try:\n    r{r} = {a}.reshape(2, {i})\nexcept ValueError:\n    r{r} = {f}",
)
MOST = 20_000  # elements
# Texts that are others where the run decides the lengths: a check of the run names no shapes.
_UNTOLD = ("matmul", "operands could not be broadcast", "could not broadcast input array",
           "inhomogeneous", "not aligned", "vectors")


@dataclass(frozen=True)
class SixSizesProgram(ControlProgram):
    """``program(x)`` or ``program(x, n)`` at its ``sizes``, in this order."""

    sizes: tuple[int, ...] = ()

    def of_size(self, n: int) -> tuple[Any, ...]:
        x = (np.arange(n) * 7 % 5) - 1.5
        return (x, n) if "program(x, n)" in self.source else (x,)

    @property
    def runnable(self) -> str:
        """A script that shows the difference."""
        return f"""import math

import numpy as np
import fusec


{self.source}

def attempt(function, n):
    x = (np.arange(n) * 7 % 5) - 1.5
    try:
        return function(*((x, n) if function.__code__.co_argcount == 2 else (x,)))
    except Exception as error:
        return repr(error)[:300]


compiled = fusec.jit(program)
for n in {self.sizes}:
    print(n, "NumPy:", attempt(program, n))
    x = (np.arange(n) * 7 % 5) - 1.5
    try:
        print(n, "fusec:", compiled(*((x, n) if {"program(x, n)" in self.source} else (x,))))
    except Exception as error:
        print(n, "fusec:", repr(error)[:300])
"""


class _Growing:
    def __init__(self, rng: random.Random) -> None:
        self.rng, self.arrays, self.floats, self.lines = rng, ["x"], ["0.5"], list[str]()

    def number(self, depth: int = 0) -> str:
        return self.filled(self.rng.choice(NUMBERS[:-2] if depth else NUMBERS), depth + 1)

    def filled(self, template: str, depth: int = 0) -> str:
        for hole in "abfijk":
            while f"{{{hole}}}" in template:
                template = template.replace(f"{{{hole}}}", self.one_of(hole, depth), 1)
        return template

    def one_of(self, hole: str, depth: int) -> str:
        if hole in "ab":
            return self.rng.choice(self.arrays[-3:])
        if hole in "ijk":
            return f"({self.number(depth)})"
        return self.rng.choice(self.floats) if depth else self.filled(
            self.rng.choice(FLOATS), 1)

    def add(self, r: int) -> None:
        if self.rng.random() < 0.25:
            self.lines += self.filled(self.rng.choice(BLOCKS).replace("{r}", str(r))).splitlines()
        else:
            self.lines.append(f"r{r} = {self.filled(self.rng.choice(ARRAYS))}")
        self.arrays.append(f"r{r}")


def grown(seed: int, attempt: int) -> SixSizesProgram:
    rng = random.Random(f"{seed} {attempt}")
    growing, count = _Growing(rng), rng.randint(1, 4)
    head = "def program(x, n):" if rng.random() < 0.3 else "def program(x):\n    n = len(x)"
    for r in range(count):
        growing.add(r)
    body = "".join(f"    {line}\n" for line in growing.lines)
    results = ", ".join(f"r{r}" for r in range(count))
    sizes = [0, 1, 2, *rng.sample(range(3, 10), 3)]
    rng.shuffle(sizes)
    return SixSizesProgram(f"{head}\n{body}    return {results}\n", "", seed, sizes=tuple(sizes))


def program_of(seed: int) -> SixSizesProgram:
    """A program that has values for at least two of its sizes."""
    for attempt in range(200):
        program = grown(seed, attempt)
        outcomes = [_outcome(program.function(), program.of_size(n)) for n in program.sizes]
        if sum(error is None for _, error in outcomes) > 1 and all(map(_is_small, outcomes)):
            return program
    raise AssertionError(f"no program of seed {seed} has values")


def _is_small(outcome: Any) -> bool:
    value, error = outcome
    return not isinstance(error, TookTooLong | MemoryError) and all(
        np.size(v) < MOST for v in (value if type(value) is tuple else (value,)))


def _outcome(function: Any, args: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    try:
        with np.errstate(all="ignore"), limited(2.0):
            return function(*args), None
    except Exception as error:
        return None, error


class SixSizesJudge:
    """The same values and exceptions at every size; a refusal is one at each that has any."""

    def __init__(self, program: SixSizesProgram) -> None:
        self.program = program

    def judge(self) -> Verdict:
        compiled = fusec.jit(self.program.function())
        refused, worked, seen = list[str](), set[int](), list[str]()
        for n in self.program.sizes:
            want = _outcome(self.program.function(), self.program.of_size(n))
            if isinstance(want[1], NameError | TookTooLong | SyntaxError):
                raise AssertionError("NumPy does not take it") if not seen else Failure("names")
            seen.append("raised" if want[1] is not None else "values")
            try:
                got = compiled(*self.program.of_size(n)), None
            except (UnsupportedError, ConcreteValueError) as error:
                refused.append(f"{n}: {str(error).splitlines()[0]}")
                continue
            except Exception as error:
                got = None, error
            self._compare(n, got, want)
            if got[1] is None:
                worked.add(n)
        if any(n > 1 for n in worked) and self._is_of_some(refused):
            raise Failure(f"refused at some sizes: {refused[0]}")
        return Verdict(self.program, [text.partition(" ")[2] for text in refused[:1]],
                       checks=Counter(seen))

    def _is_of_some(self, refused: list[str]) -> bool:
        """Whether sizes of two and more are refused."""
        return any(int(text.partition(":")[0]) > 1 for text in refused)

    def _compare(self, n: int, got: Any, want: Any) -> None:
        if want[1] is not None:
            if not isinstance(got[1], type(want[1])):
                raise Failure(f"exceptions differ at {n}: {got[1] or 'no exception'!r:.150}, "
                              f"NumPy {want[1]!r:.150}")
            words = str(want[1]).partition("\n")[0].rstrip()
            if words not in str(got[1]) and not any(part in words for part in _UNTOLD):
                raise Failure(f"texts differ at {n}: {str(got[1]).splitlines()[0]!r:.150}, "
                              f"NumPy {words!r:.150}")
        elif got[1] is not None:
            raise Failure(f"raises at {n}: {got[1]!r:.200}")
        else:
            _compare_values(n, got[0], want[0])


def _compare_values(n: int, got: Any, want: Any) -> None:
    pairs = zip(got, want, strict=True) if type(want) is tuple else [(got, want)]
    for at, (value, wanted) in enumerate(pairs):
        a, b = np.asarray(value), np.asarray(wanted)
        if (a.dtype, a.shape) != (b.dtype, b.shape):  # Python's numbers may be NumPy's
            raise Failure(f"types differ at {n}: result {at} is {type(value).__name__} {a.dtype}"
                          f"{a.shape}, NumPy's {type(wanted).__name__} {b.dtype}{b.shape}")
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=1.0) if b.dtype.kind in "fc" else 0.0
        if not np.allclose(a, b, rtol=1e-9, atol=1e-9 * scale, equal_nan=True):
            raise Failure(f"values differ at {n}: result {at}: {a!r:.100}, NumPy {b!r:.100}")
