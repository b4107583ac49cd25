"""Random programs of products with few columns, vectors and short axes on the emulated device and
on the stand-in for a GPU, against NumPy.

Numbers are small integers, of floats too, and the writer knows how large each value can be: sums
are exact in any order, so all bits are compared.
"""

from __future__ import annotations

import atexit
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from fake_cupy import as_gpu

import fusec
from fusec.errors import UnsupportedError

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fuzz"))

from by_seed import defined, main

HOST = "/device:CUDAHOST:0"
DTYPES = ("f8", "f8 i4", "f4", "f4 f8", "f2", "i8", "u1 i2", "i1", "c8", "c16 f8")
# Up to where integers are exact; the parts of a complex number are sums of two products.
EXACT = {"f2": 2**11, "f4": 2**24, "f8": 2**53, "c8": 2**23, "c16": 2**52}
ARGUMENTS = {"x": "rk", "w": "kc", "z": "kd", "y": "rc", "b": "c", "v": "k", "u": "r"}
ROWS, SUMMED = (1, 2, 9, 31, 33, 100, 300, 2100), (1, 2, 3, 8, 15, 16, 17, 20, 70, 600)
COLUMNS = (1, 2, 2, 3, 7, 10, 15, 16, 17, 20)
WAYS = ("plain", "plain", "loop", "while", "branch", "gpu", "gpu", "sizes", "sizes")
counts: Counter[str] = Counter()


class Made(NamedTuple):
    """A value of the program: its axes by letter, its dtype, and how large it is at most."""

    axes: str
    dtype: np.dtype
    most: int


class NarrowWriter:
    """Writes the function of a seed, and its arguments."""

    def __init__(self, seed: int) -> None:
        self.rng, self.numbers = random.Random(seed), np.random.default_rng(seed)
        pick = self.rng.choice
        self.sizes = {"r": pick(ROWS), "k": pick(SUMMED), "c": pick(COLUMNS), "d": pick(COLUMNS)}
        dtypes = [np.dtype(d) for d in pick(DTYPES).split()]
        self.largest = 1 if dtypes[0] == np.float16 else 3
        self.known = {name: Made(axes, pick(dtypes), self.largest * (1 + (dtypes[0].kind == "c")))
                      for name, axes in ARGUMENTS.items()}
        self.way = pick(WAYS)
        self.most = {a: max(n, 100 if self.way == "sizes" and a in "rk" else 0)
                     for a, n in self.sizes.items()}
        self.lines: list[str] = []
        self.results: list[str] = []

    def text(self) -> str:
        while len(self.lines) < 8:
            self._statement()
        block = [f"    {line}" for line in self.lines]
        inner = [f"    {line}" for line in block]
        again = {"loop": ["    for i in range(n):", "        x[...] = -x", *inner],
                 "while": ["    i = 0", "    while i < n:", "        i += 1", *inner],
                 "branch": ["    if n > 1:", "        w[...] = -w", *inner, "    else:",
                            "        y[0] = 0"]}.get(self.way, [])
        kept = self.rng.sample(self.results, self.rng.randint(1, len(self.results)))
        return "\n".join([f"def f({', '.join(ARGUMENTS)}, n):", *block, *again,
                          f"    return [{', '.join(kept)}]"]) + "\n"

    def arguments(self, other_sizes: bool = False) -> list[Any]:
        sizes = dict(self.sizes)
        if other_sizes:
            sizes.update(r=self.rng.randint(2, 100), k=self.rng.randint(2, 100))
        made = [self._array([sizes[a] for a in m.axes], m.dtype)
                for m in list(self.known.values())[:len(ARGUMENTS)]]
        return [*made, np.int64(self.rng.randint(1, 3))]

    def _array(self, shape: list[int], dtype: np.dtype) -> np.ndarray:
        """In one of several layouts."""
        def integers(low: int) -> np.ndarray:
            return self.numbers.integers(low, self.largest + 1, shape)

        x = integers(0 if dtype.kind == "u" else -self.largest)
        x = (x + 1j * integers(-self.largest) if dtype.kind == "c" else x).astype(dtype)
        layout = self.rng.randrange(6)
        if layout == 0:
            return np.asfortranarray(x)
        if layout == 1:
            return np.repeat(x, 2, axis=0)[::2]
        return x[::-1].copy()[::-1] if layout == 2 else x

    # -- statements

    def _statement(self) -> None:
        kinds = {self._product: 3, self._with_a_row: 2, self._less_a_row: 1, self._sum: 1,
                 self._elementwise: 1, self._stored: 1, self._chosen: 1}
        self.rng.choices([*kinds], [*kinds.values()])[0]()

    def _keep(self, text: str, axes: str, dtype: np.dtype, most: int) -> None:
        """A new value, unless it could be inexact; often brought back to small numbers."""
        kind = dtype.kind + str(dtype.itemsize)
        if most > EXACT.get(kind, 2**99):
            return
        name = f"t{len(self.lines)}"
        if dtype.kind != "c" and (dtype.kind in "iu" or self.rng.random() < 0.5):
            text, most = f"({text}) % {self.largest + 1}", self.largest
        self.lines.append(f"{name} = {text}")
        self.known[name] = Made(axes, dtype, most)
        self.results.append(name)

    def _pick(self, ndim: int | None = None) -> tuple[str, Made]:
        """A value, the latest ones more often."""
        found = [(n, m) for n, m in self.known.items() if m.axes and ndim in (None, len(m.axes))]
        return self.rng.choice(found[-4:] if self.rng.random() < 0.5 else found)

    def _factor(self) -> tuple[str, Made]:
        """A value, or a view of it, or what is computed of it, as an operand of a product."""
        (text, made), axes = self._pick(), ""
        kind = self.rng.randrange(8)
        if kind < 3 and len(made.axes) == 2:
            text, axes = f"{text}.T", made.axes[::-1]
        elif kind == 3:
            text = f"{text}[::-1]"
        elif kind == 4 and made.dtype.kind == "f":
            text = f"np.floor(np.sqrt(abs({text})) + np.cos(0 * {text}) / 2)"
            return text, made._replace(most=made.most + 1)
        elif kind == 5:
            text = f"(2 - {text})"
            return text, made._replace(most=made.most + 2)
        elif kind == 6 and len(made.axes) == 2 and made.axes.islower():
            text = f"np.broadcast_to({text}[:1], {text}.shape)"
        return text, made._replace(axes=axes or made.axes)

    def _product(self) -> None:
        (a, left), (b, right) = self._factor(), self._factor()
        if left.axes[-1] != right.axes[0]:
            return
        axes, dtype = left.axes[:-1] + right.axes[1:], np.result_type(left.dtype, right.dtype)
        most = self.most[right.axes[0]] * left.most * right.most
        call = self.rng.choice(("{} @ {}", "{} @ {}", "np.dot({}, {})", "np.matmul({}, {})"))
        if len(left.axes) == len(right.axes) == 2 and self.rng.random() < 0.1:
            call = "np.einsum('ij,jk->ik', {}, {})"
        self._keep(call.format(a, b), axes, dtype, most)

    def _with_a_row(self) -> None:
        """A bias, an activation."""
        a, made = self._pick(2)
        b, row = self._pick(1)
        if row.axes != made.axes[-1]:
            return
        dtype = np.result_type(made.dtype, row.dtype)
        form = self.rng.choice(("{} + {}", "{} - {}", "np.maximum({}, {})"))
        if dtype.kind == "c" and "max" in form:
            return
        self._keep(form.format(a, b), made.axes, dtype, made.most + row.most)

    def _less_a_row(self) -> None:
        """As a softmax does; maybe its sum of all elements."""
        a, made = self._pick(2)
        if made.dtype.kind == "c" or not made.axes.islower():  # of none there is no extremum
            return
        of = self.rng.choice(("max", "min", "sum"))
        axis = self.rng.choice((1, 1, 0))
        most = made.most * (1 + (self.most[made.axes[axis]] if of == "sum" else 1))
        dtype = np.result_type(made.dtype, getattr(np.ones((1, 1), made.dtype), of)().dtype)
        text, axes = f"{a} - {a}.{of}(axis={axis}, keepdims=True)", made.axes
        if self.rng.random() < 0.4 and dtype.kind == "f":
            text, axes = f"({text}).sum()", ""
            most *= self.most[made.axes[0]] * self.most[made.axes[1]]
        self._keep(text, axes, dtype, most)

    def _sum(self) -> None:
        a, made = self._pick(2)
        axis = self.rng.choice((0, 0, 1))
        dtype = np.ones(1, made.dtype).sum().dtype
        self._keep(f"{a}.sum(axis={axis})", made.axes[1 - axis], dtype,
                   made.most * self.most[made.axes[axis]])

    def _elementwise(self) -> None:
        a, made = self._pick()
        others = [(n, m) for n, m in self.known.items() if m.axes == made.axes]
        b, other = self.rng.choice(others)
        view = self.rng.choice(("", "", "[::-1]", "[..., ::-1]"))
        self._keep(f"{a}{view} * {b} - {a}", made.axes, np.result_type(made.dtype, other.dtype),
                   made.most * (2 * other.most + 1))

    def _stored(self) -> None:
        """An update in place, of an argument or of a result."""
        a, made = self._pick()
        others = [n for n, m in self.known.items() if m.axes == made.axes and n != a and (
            np.can_cast(m.dtype, made.dtype, "same_kind")) and m.most <= made.most]
        if others:
            b = self.rng.choice(others)
            self.lines.append(self.rng.choice((f"{a}[...] = {b}", f"{a}[1:] = {b}[:-1]",
                                               f"{a}[::2] = -{a}[::2]")))

    def _chosen(self) -> None:
        """Rows, or elements, so many as the run decides."""
        if self.way not in ("plain", "sizes", "gpu"):
            return
        a, made = self._pick()
        conditions = [n for n, m in self.known.items() if m.axes == made.axes[:1]]
        if not conditions or made.dtype.kind == "c":
            return
        letter = chr(ord("A") + len(self.most))
        self.most[letter] = self.most[made.axes[0]]
        condition = self.rng.choice(conditions)
        part = ".real" if self.known[condition].dtype.kind == "c" else ""
        self._keep(f"{a}[{condition}{part} > 0]", letter + made.axes[1:], made.dtype, made.most)


# -- running


def failure(seed: int) -> str | None:
    """How the program differs from NumPy's; how it ran is counted."""
    writer = NarrowWriter(seed)
    text = writer.text()
    f = defined(text, f"<narrow products {seed}>", {"np": np})["f"]
    calls = [writer.arguments(other_sizes=n > 0 and writer.way == "sizes") for n in range(3)]
    counts.update(("programs", writer.way))
    try:
        found = _run(f, calls, writer.way == "gpu", seed)
    except UnsupportedError:
        counts["refused"] += 1
        return None
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    return found and f"{text}# {writer.way}, {writer.sizes}, {found}"


def _run(f: Any, calls: list[list[Any]], on_gpu: bool, seed: int) -> str | None:
    if not on_gpu:
        return _compared(f, fusec.jit(f, device=HOST), calls, None)
    with as_gpu(pytest.MonkeyPatch(), seed) as cupy:
        return _compared(f, fusec.jit(f), calls, cupy)


def _compared(f: Any, jitted: Any, calls: list[list[Any]], cupy: Any) -> str | None:
    for number, args in enumerate(calls):
        mine = [np.copy(a, order="K") for a in args]
        want = [*f(*mine[:-1], args[-1]), *mine]
        for again in range(2):
            given = [_placed(a, cupy) for a in args]
            got = [*jitted(*given), *given]
            for k, (one, other) in enumerate(zip(got, want, strict=True)):
                found = _difference(_fetched(one), other)
                if found:
                    return f"call {number}.{again}, result {k}: {found}"
    counts["with sums"] += any("sums in a kernel" in str(t.as_text()) for t in jitted.traces)
    return None


def _placed(a: Any, cupy: Any) -> Any:
    if not a.shape:
        return a
    copied = np.copy(a, order="K")
    return copied if cupy is None else cupy.asarray(copied)


def _fetched(a: Any) -> np.ndarray:
    return np.asarray(a.get() if hasattr(a, "get") else a)


def _difference(one: np.ndarray, other: Any) -> str | None:
    other = np.asarray(other)
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return f"{one.dtype}{one.shape} for {other.dtype}{other.shape}"
    if np.array_equal(one, other):
        return None
    at = tuple(np.argwhere(one != other)[0])
    return f"{one[at]} for {other[at]} at {list(map(int, at))}"


if __name__ == "__main__":
    atexit.register(lambda: print(dict(counts)))
    main(__doc__, failure)
