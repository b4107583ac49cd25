"""Random programs over arrays in blocks, and random blocks.

A program is a list of assignments to names; each value knows its shape, whether its bits are those
of the whole (no sum over an axis in blocks is below it), and what it is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field

UNARY = ("np.tanh({})", "np.abs({})", "np.exp(-np.abs({}))", "np.sqrt(np.abs({}))", "-{}",
         "{} * 1.5 + 0.25", "np.arctan({}) ** 2", "np.minimum({}, 0.5)", "np.expm1(0.1 * {})")
BINARY = ("{} + {}", "{} - {}", "{} * {}", "np.maximum({}, {})", "np.hypot({}, {})",
          "{} / (1.5 + np.abs({}))", "np.logaddexp({}, {})")
SUMS = ("sum", "mean", "std", "var")
EXTREMA = ("max", "min")


@dataclass(frozen=True)
class Made:
    """A value of a program."""

    name: str
    text: str
    shape: tuple[int, ...]
    is_exact: bool
    reads: tuple[str, ...] = ()


@dataclass
class ChunkedProgram:
    """A program, its arguments, and the blocks of each; None: it is one array of NumPy's."""

    arguments: dict[str, np.ndarray | float]
    chunks: dict[str, tuple[tuple[int, ...], ...] | None]
    made: list[Made] = field(default_factory=list)
    results: list[Made] = field(default_factory=list)

    def source(self, results: list[Made] | None = None) -> str:
        """The function that gives these results: what they read, and no more."""
        results = self.results if results is None else results
        wanted = {made.name for made in results}
        lines: list[str] = []
        for made in reversed(self.made):
            if made.name in wanted:
                wanted.update(made.reads)
                lines += [f"    {line}" for line in reversed(made.text.split("\n"))]
        names = ", ".join(made.name for made in results)
        return "\n".join([f"def program({', '.join(self.arguments)}):", *reversed(lines),
                          f"    return [{names}]", ""])


def blocks(rng: np.random.Generator, size: int, at_most: int) -> tuple[int, ...]:
    """A random cut of an axis."""
    count = int(rng.integers(1, min(size, at_most) + 1))
    cuts = np.sort(rng.choice(np.arange(1, size), count - 1, replace=False)).tolist()
    return tuple(b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True))


def program_of(seed: int) -> ChunkedProgram:
    """The program of a seed."""
    return writer_of(seed).written()


def writer_of(seed: int) -> ProgramWriter:
    """What writes it."""
    return ProgramWriter(np.random.default_rng(seed), np.random.default_rng([seed, 1]))


class ProgramWriter:
    """Writes one program."""

    def __init__(self, rng: np.random.Generator, apart: np.random.Generator) -> None:
        self.rng = rng
        self.fewest, self.most = 3, 10  # statements; at most one less
        self.is_turned = apart.random() < 0.15  # columns are cut, often to one, and rows are not
        self.n, self.m = int(rng.integers(10, 40)), int(rng.integers(4, 9))
        n, m = self.n, self.m
        given = {"x": rng.standard_normal((n, m)), "y": rng.standard_normal((n, m)).round(1),
                 "v": rng.standard_normal(m), "w": rng.standard_normal((m, 3)),
                 "labels": rng.integers(0, m, n)}
        self.program = ChunkedProgram(given, {})
        is_regular, cut_columns = rng.random() < 0.5, rng.random() < 0.3
        rows = blocks(rng, n, 6)
        columns = blocks(rng, m, 3) if cut_columns else (m,)
        if self.is_turned:
            is_regular, cut_columns, rows, columns = True, True, (n,), blocks(apart, m, m)
        of = {n: lambda: rows if is_regular else blocks(rng, n, 6),
              m: lambda: columns if is_regular or not cut_columns else blocks(rng, m, 3)}
        for name, array in given.items():
            is_whole = name == "w" or (name != "x" and rng.random() < 0.25)
            self.program.chunks[name] = None if is_whole else tuple(
                of[size]() for size in array.shape)
        self.values = [Made(name, "", array.shape, True) for name, array in given.items()
                       if name not in ("labels", "w")]
        self.writers: list[Callable[[], Any]] = [
            self.unary, self.unary, self.binary, self.binary, self.binary, self.reduced,
            self.reduced, self.spread, self.shifted, self.assigned, self.chosen, self.ordered,
            self.turned, self.product, self.row, self.picked, self.put, self.joined, self.part,
            self.counted, self.scanned]
        if apart.random() < 0.2:  # so that the programs of most older seeds are as they were
            self.writers += [self.rolled, self.rolled]

    def written(self) -> ChunkedProgram:
        given = len(self.values)
        for _ in range(100):
            if len(self.program.made) >= int(self.rng.integers(self.fewest, self.most)):
                break
            self.writers[int(self.rng.integers(len(self.writers)))]()
        made = self.values[given:] or self.values
        count = min(len(made), int(self.rng.integers(1, 4)))
        self.program.results = [made[-1], *(
            made[int(self.rng.integers(len(made)))] for _ in range(count - 1))]
        return self.program

    # ------------------------------------------------------------------------------ picking

    def one(self, rank: int | None = None) -> Made:
        """A value, later ones more often; of this rank."""
        fitting = [v for v in self.values if (rank is None or len(v.shape) == rank)]
        back = int(self.rng.integers(1, len(fitting) + 1))
        if self.rng.random() < 0.5:
            back = min(back, 2)
        return fitting[-back]

    def text(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def add(self, text: str, shape: tuple[int, ...], *read: Made, is_exact: bool = True) -> None:
        name = f"v{len(self.program.made)}"
        made = Made(name, text if "\n" in text else f"{name} = {text}", shape,
                    is_exact and all(v.is_exact for v in read), tuple(v.name for v in read))
        self.program.made.append(made)
        self.values.append(made)

    @property
    def name(self) -> str:
        return f"v{len(self.program.made)}"

    # --------------------------------------------------------------------------- statements

    def unary(self) -> None:
        a = self.one()
        self.add(self.text(UNARY).format(a.name), a.shape, a)

    def binary(self) -> None:
        a, b = self.one(), self.one()
        try:
            shape = np.broadcast_shapes(a.shape, b.shape)
        except ValueError:
            return
        if len(shape) <= 2:
            self.add(self.text(BINARY).format(a.name, b.name), shape, a, b)

    def reduced(self) -> None:
        a = self.one()
        if not a.shape or 0 in a.shape:
            return
        axis: Any = self.text([None, *range(len(a.shape))])
        keep = bool(self.rng.integers(2))
        method = self.text((*SUMS, *EXTREMA))
        shape = np.zeros(a.shape).sum(axis=axis, keepdims=keep).shape
        self.add(f"{a.name}.{method}(axis={axis}, keepdims={keep})", shape, a,
                 is_exact=method in EXTREMA or not self.cuts(a, axis))

    def cuts(self, a: Made, axis: int | None) -> bool:
        """Whether an axis may be in blocks: all may but columns that no argument has in blocks, and
        rows that none has, which are more than columns can have become."""
        sizes = a.shape if axis is None else (a.shape[axis],)
        if self.is_turned:
            return any(size <= self.m + 2 * len(self.program.made) for size in sizes)
        lengths = {len(parts) for cut in self.program.chunks.values() if cut is not None
                   for parts in cut[1:] or cut if sum(parts) == self.m}
        return any(size != self.m or bool(lengths - {1}) for size in sizes)

    def spread(self) -> None:
        a = self.one()
        if len(a.shape) == 1:
            self.add(f"{a.name}[:, None]", (*a.shape, 1), a)

    def shifted(self) -> None:
        a = self.one()
        if not a.shape or a.shape[0] < 4:
            return
        k = int(self.rng.integers(1, 3))
        self.add(f"{a.name}[{k}:] - {a.name}[:-{k}]", (a.shape[0] - k, *a.shape[1:]), a)

    def rolled(self) -> None:
        a = self.one()
        if a.shape and a.shape[0] > 9:
            by = self.text((1, -1, 2, -2, 3, -5))
            self.add(f"np.roll({a.name}, {by}, axis=0) + {a.name}", a.shape, a)

    def assigned(self) -> None:
        a = self.one()
        if not a.shape or a.shape[0] < 5:
            return
        name = self.name
        self.add(f"{name} = {a.name}.copy()\n{name}[1:-1] = 0.5 * ({a.name}[2:] + {a.name}[:-2])",
                 a.shape, a)

    def chosen(self) -> None:
        a = self.one()
        if a.is_exact:
            self.add(f"np.where({a.name} > 0.25, {a.name}, -1.0)", a.shape, a)

    def ordered(self) -> None:
        a = self.one()
        if len(a.shape) == 2 and a.is_exact:
            self.add(self.text((
                "np.sort({0}, axis=1)", "{0}.argmax(axis=1)[:, None] * {0}",
                "np.take_along_axis({0}, np.argsort({0}, axis=1), axis=1)",
            )).format(a.name), a.shape, a)

    def scanned(self) -> None:
        a = self.one()
        if a.shape and a.is_exact:
            axis = int(self.rng.integers(len(a.shape)))
            if self.rng.integers(2):
                self.add(f"np.maximum.accumulate({a.name}, axis={axis})", a.shape, a)
            else:
                self.add(f"np.cumsum({a.name}, axis={axis})", a.shape, a,
                         is_exact=not self.cuts(a, axis))

    def turned(self) -> None:
        a = self.one()
        if len(a.shape) == 2:
            self.add(f"{a.name}.T", a.shape[::-1], a)

    def product(self) -> None:
        a = self.one()
        if len(a.shape) != 2:
            return
        if a.shape[1] == self.m and self.rng.integers(2):
            self.add(f"{a.name} @ w", (a.shape[0], 3), a, is_exact=False)
        else:
            self.add(f"{a.name}.T @ {a.name}", (a.shape[1], a.shape[1]), a, is_exact=False)

    def row(self) -> None:
        a = self.one()
        if a.shape and a.shape[0] > 2:
            self.add(f"{a.name}[{self.text((0, 2, -1))}]", a.shape[1:], a)

    def picked(self) -> None:
        a = self.one()
        if a.shape == (self.n, self.m):
            self.add(self.text((
                "{0}[np.arange(len({0})), labels]",
                "np.take_along_axis({0}, labels[:, None], axis=1)[:, 0]",
                "np.logaddexp.reduce({0}, axis=1)")).format(a.name), (self.n,), a)

    def put(self) -> None:
        a, name = self.one(), self.name
        if a.shape == (self.n, self.m):
            self.add(f"{name} = {a.name}.copy()\n{name}[np.arange(len({name})), labels] = 2.0",
                     a.shape, a)

    def joined(self) -> None:
        a = self.one()
        if len(a.shape) and a.shape[0] < 60:
            self.add(f"np.concatenate([{a.name}, {a.name}[:2]])",
                     (a.shape[0] + min(2, a.shape[0]), *a.shape[1:]), a)

    def part(self) -> None:
        a = self.one()
        if a.shape and a.shape[0] > 6:
            start, stop = sorted(self.rng.choice(a.shape[0] + 1, 2, replace=False).tolist())
            if stop - start > 2:
                self.add(f"{a.name}[{start}:{stop}]", (stop - start, *a.shape[1:]), a)

    def counted(self) -> None:
        a = self.one()
        if a.is_exact and len(a.shape) == 1:
            self.add(f"np.bincount((np.abs({a.name}) * 3).astype(int) % 5, minlength=5)", (5,), a)


__all__ = ["ChunkedProgram", "Made", "ProgramWriter", "program_of", "writer_of"]
