"""Random branches and loops for programs over arrays in blocks.

How often a loop runs, and which side of a branch is taken, are arguments: a trace knows neither,
and makes nodes of them.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.distributed.chunked_programs import ChunkedProgram, Made, ProgramWriter, writer_of

# An iteration's statements on q, with the number k; what is bounded stays so.
ROWS = ("q = 0.5 * np.tanh(q) + 0.1 * k", "q = q * 0.7 - 0.2", "q = np.abs(q) - 0.3",
        "q = np.sqrt(np.abs(q)) * 0.9", "q = np.where(q > 0.1 * k, q * 0.5, q + 0.25)",
        "q = np.minimum(q, 0.5 + 0.1 * k)", "q = q * 1.1 + q * q * 0.01")
ALL = ("q = 0.5 * (q - q.mean())", "q = 0.5 * (q - q.mean(axis=0))", "q = q * 0.5 + 0.1 * q.std()",
       "q = q / (2.0 + np.abs(q).sum(axis=0))", "q = 0.1 * np.cumsum(q, axis=0)")
EXTREMA = ("q = 0.5 * (q - q.max())", "q = 0.5 * q + 0.1 * q.min(axis=0)",
           "q = q * 0.5 + q[k] * 0.25", "q = 0.5 * np.maximum.accumulate(q, axis=0)")
EDGES = ("u = q.copy()\nu[1:-1] = 0.5 * (q[2:] + q[:-2])\nq = u",
         "u = q.copy()\nu[:-1] = q[1:] * 0.5\nq = u",
         "u = q * 0.9\nu[2:] = q[2:] - 0.25 * q[:-2]\nq = u")
TWO = ("q, t = t * 0.5 + k, q - 0.1", "t = t * 0.5 + q\nq = np.tanh(t)",
       "q = q + 0.1 * np.sin(t)\nt = 0.9 * t")


def looping_program_of(seed: int) -> ChunkedProgram:
    """The program of a seed; half of its few statements are branches and loops."""
    writer = writer_of(seed)
    writer.program.arguments["times"] = int(writer.rng.integers(0, 8))
    writer.program.arguments["gate"] = float(writer.rng.standard_normal())
    writer.program.chunks["times"] = writer.program.chunks["gate"] = None
    writer.fewest, writer.most = 1, 4
    loops = _Loops(writer)
    makers: list[Callable[[], None]] = [
        loops.repeated, loops.repeated, loops.repeated, loops.both, loops.columns, loops.branch,
        loops.ended, loops.nested, loops.by_table]
    writer.writers += makers * (len(writer.writers) // len(makers) + 1)
    return writer.written()


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
        text = "\n".join(["k = 0", f"q = {a.name}", *lines, f"{name} = q"])
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
            step = self.writer.text((
                "q = q * 0.5", "q = np.tanh(q) * 0.8", "q = q - 0.5 * q.max()"))
            self._add(a, ["while k < 6 and np.abs(q).max() > 0.3:", f"    {step}", "    k += 1"],
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
                          *self._inside(self._inside(lines)), "    else:", "        q = q * 0.5"],
                      is_exact)


__all__ = ["looping_program_of"]
