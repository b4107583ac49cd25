"""Random branches and loops for programs over arrays in blocks.

How often a loop runs, and which side of a branch is taken, are arguments: a trace knows neither, and
makes nodes of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.distributed.chunked_programs import ChunkedProgram, Made, ProgramWriter

# An iteration's statements on v, with the number k; what is bounded stays so.
ROWS = ("v = 0.5 * np.tanh(v) + 0.1 * k", "v = v * 0.7 - 0.2", "v = np.abs(v) - 0.3",
        "v = np.sqrt(np.abs(v)) * 0.9", "v = np.where(v > 0.1 * k, v * 0.5, v + 0.25)",
        "v = np.minimum(v, 0.5 + 0.1 * k)", "v = v * 1.1 + v * v * 0.01")
ALL = ("v = 0.5 * (v - v.mean())", "v = 0.5 * (v - v.mean(axis=0))", "v = v * 0.5 + 0.1 * v.std()",
       "v = v / (2.0 + np.abs(v).sum(axis=0))", "v = 0.1 * np.cumsum(v, axis=0)")
EXTREMA = ("v = 0.5 * (v - v.max())", "v = 0.5 * v + 0.1 * v.min(axis=0)",
           "v = v * 0.5 + v[k] * 0.25", "v = 0.5 * np.maximum.accumulate(v, axis=0)")
EDGES = ("u = v.copy()\nu[1:-1] = 0.5 * (v[2:] + v[:-2])\nv = u",
         "u = v.copy()\nu[:-1] = v[1:] * 0.5\nv = u",
         "u = v * 0.9\nu[2:] = v[2:] - 0.25 * v[:-2]\nv = u")
TWO = ("v, t = t * 0.5 + k, v - 0.1", "t = t * 0.5 + v\nv = np.tanh(t)",
       "v = v + 0.1 * np.sin(t)\nt = 0.9 * t")


def add_loops(writer: ProgramWriter) -> None:
    """Have half of a program's statements be branches and loops."""
    writer.program.arguments["times"] = int(writer.rng.integers(0, 8))  # type: ignore[assignment]
    writer.program.arguments["gate"] = float(writer.rng.standard_normal())  # type: ignore[assignment]
    writer.program.chunks["times"] = writer.program.chunks["gate"] = None
    writer.fewest, writer.most = 1, 4
    loops = _Loops(writer)
    makers: list[Callable[[], None]] = [
        loops.repeated, loops.repeated, loops.repeated, loops.both, loops.columns, loops.branch,
        loops.ended, loops.nested, loops.by_table]
    count = len(writer.writers) // len(makers) + 1
    writer.writers += makers * count


class _Loops:
    """Writes branches and loops."""

    def __init__(self, writer: ProgramWriter) -> None:
        self.writer = writer

    def _start(self) -> Made | None:
        a = self.writer.one()
        return a if a.shape and a.shape[0] >= 9 else None

    def _steps(self, a: Made, at_most: int = 3) -> tuple[list[str], bool]:
        """Statements of an iteration, and whether rows keep their bits."""
        writer, lines, is_exact = self.writer, list[str](), True
        for _ in range(int(writer.rng.integers(1, at_most + 1))):
            kind = int(writer.rng.integers(5))
            if kind == 0:
                lines += writer.text(ALL).split("\n")
                is_exact = False
            elif kind == 1 and a.is_exact:
                lines += writer.text(EXTREMA).split("\n")
            elif kind == 2:
                lines += writer.text(EDGES).split("\n")
            else:
                lines += writer.text(ROWS).split("\n")
        return lines, is_exact

    def _add(self, a: Made, lines: list[str], is_exact: bool, *read: Made) -> None:
        name = self.writer.name
        text = "\n".join(["k = 0", f"v = {a.name}", *lines, f"{name} = v"])
        self.writer.add(text, a.shape, a, *read, is_exact=is_exact)

    def _inside(self, lines: list[str]) -> list[str]:
        return [f"    {line}" for line in lines]

    def repeated(self) -> None:
        a = self._start()
        if a is not None:
            lines, is_exact = self._steps(a)
            self._add(a, ["for k in range(times):", *self._inside(lines)], is_exact)

    def both(self) -> None:
        a = self._start()
        if a is None:
            return
        same = [b for b in self.writer.values if b.shape == a.shape]
        b = same[int(self.writer.rng.integers(len(same)))]
        lines, is_exact = self._steps(a, 2)
        lines += self.writer.text(TWO).split("\n")
        self._add(a, [f"t = {b.name}", "for k in range(times):", *self._inside(lines)], is_exact, b)

    def columns(self) -> None:
        a = self._start()
        if a is not None and len(a.shape) == 2:
            name = self.writer.name
            text = (f"{name} = np.zeros({a.name}.shape[0])\nfor k in range({a.name}.shape[1]):\n"
                    f"    {name} = {name} * 0.9 + {a.name}[:, k] * k")
            self.writer.add(text, a.shape[:1], a,
                            is_exact=not self.writer.cuts(a, 1) or a.is_exact)

    def branch(self) -> None:
        a = self._start()
        if a is None:
            return
        one, is_exact = self._steps(a, 2)
        other, is_other = self._steps(a, 2)
        self._add(a, ["if gate > 0.2:", *self._inside(one), "else:", *self._inside(other)],
                  is_exact and is_other)

    def ended(self) -> None:
        """Data end it, by an extremum, which has its bits."""
        a = self._start()
        if a is not None and a.is_exact:
            step = self.writer.text(("v = v * 0.5", "v = np.tanh(v) * 0.8", "v = v - 0.5 * v.max()"))
            self._add(a, ["while k < 6 and np.abs(v).max() > 0.3:", f"    {step}", "    k += 1"],
                      True)

    def nested(self) -> None:
        a = self._start()
        if a is not None:
            outer, is_exact = self._steps(a, 1)
            inner, is_inner = self._steps(a, 1)
            self._add(a, ["for k in range(min(times, 4)):",
                          "    for j in range(k):", *self._inside(self._inside(inner)),
                          *self._inside(outer)], is_exact and is_inner)

    def by_table(self) -> None:
        """A branch in a loop, on a table that is the same everywhere."""
        a = self._start()
        if a is not None:
            lines, is_exact = self._steps(a, 1)
            self._add(a, ["for k in range(min(times, 5)):", "    if w[k % 4, 0] > 0:",
                          *self._inside(self._inside(lines)), "    else:", "        v = v * 0.5"],
                      is_exact)


__all__ = ["ChunkedProgram", "add_loops"]
