"""Writes control programs with arrays that shrink and grow: ``w`` and ``g``, of 30 elements at
first, in loops that are too long to be unrolled as a matter of course."""

from __future__ import annotations

from .grammar import COUNTS, HELPERS, LAYOUTS, NUMBERS, Writer
from .program import ControlProgram

# What leaves ``w`` with another size, or ``g``.
RESIZED = (
    "w = w[:-1]", "w = w[1:] * 0.5", "w = w[:-1] + w[1:]", "w = w[::2]", "w = w[1::2] + 0.25",
    "w = w[::-1][1:]", "w = w[len(w) // 4:]", "w = w[w > {leaf}]", "w = w[w <= {leaf}] + 0.5",
    "w = np.concatenate([w, w[:1]])", "w = np.append(w, {leaf})", "w = w[: n % 12]",
    "w = np.concatenate([w[1:], g[:1]])", "w, g = g[:-1], w[1:]", "g = g[:-1]",
    "w, g = w[1:], g[1:]", "g = w[:-1] - w[1:]", "w = w[k:]", "w = w[:5]",
    "w = np.where(w > {leaf}, w, 0.5)[1:]", "g = np.concatenate([g, w])[:40]", "w = w[:1]",
)
READ = (
    "{number} = w.sum()", "{number} += g.sum() * 0.5", "{number} = w[0] if len(w) else {leaf}",
    "k = len(w) % 20", "k = (len(g) + k) % 20", "{number} = w[len(w) // 2]",
    "{number} = w[-1]", "{number} = w.max()", "g = w * 2.0", "w = g.copy()", "w = g",
    "w = w * 0.5 + {leaf}", "w = w - g", "g = np.arange(len(w)) * 0.5",
)
WRITTEN = (
    "w[0] = {leaf}", "w[1:] *= 0.5", "w[-1] += 1.0", "w *= 0.5", "w[:] = {leaf}", "w[::2] = {leaf}",
    "w[w > 1.0] = {leaf}", "x[: len(w)] = w[:12]", "w[: len(w) // 2] = 0.25", "w.sort()",
    "w[1:] = w[:-1]", "w[len(w) // 2:] -= {leaf}",
)
LONG = ("18", "20", "3, 27", "17 + n % 10", "n", "25, 2, -1", "40")
STARTS = ("w = np.concatenate([x, y, x[:6]])", "w = np.concatenate([x, y])[:-1]", "w = x * 0.5",
          "w = np.zeros(30) + s", "w = x[::-1] * 1.0", "w = x.copy()",
          "w = A.flatten()")


class SizesWriter(Writer):
    """Its assignments and loops are of ``w`` and ``g``, half of the time."""

    def filled(self, texts: tuple[str, ...]) -> str:
        return self.pick(*texts).format(leaf=self.leaf(), number=self.pick(*NUMBERS))

    def assignment(self) -> None:
        if self.chance(0.5):
            self.line(self.filled(READ))
        else:
            super().assignment()

    def in_place(self) -> None:
        if self.chance(0.6):
            self.line(self.filled(WRITTEN))
        else:
            super().in_place()

    def for_loop(self) -> None:
        unused = [c for c in COUNTS if c not in self.loops]
        if self.loops or self.chance(0.25):  # long ones in others take long where they unroll
            super().for_loop()
            return
        self.line(f"for {unused[0]} in range({self.pick(*LONG)}):")
        self.loops.append(unused[0])
        self._resizing()
        self.loops.pop()

    def while_loop(self) -> None:
        if self.loops or self.chance(0.3):
            super().while_loop()
            return
        self.whiles += 1
        count, test = f"w{self.whiles}", self.pick("len(w) > 2", "w.size > 4 and s < 50.0", "t < 9")
        self.line(f"{count} = 0")
        self.line(f"while {test} and {count} < 30:")
        self.line(f"    {count} += 1")
        self.loops.append("")
        self._resizing()
        self.loops.pop()

    def _resizing(self) -> None:
        """The body: a statement that resizes, others before and after it, and an exit."""
        self.depth += 1
        self.line(self.filled(RESIZED))
        for _ in range(self.random.randint(0, 2)):
            self.line(self.filled(self.pick_of(READ, WRITTEN, RESIZED)))
        if self.chance(0.4):
            self.statement()
        if self.chance(0.3):
            self.line(f"if {self.test(1)}:\n    {self.pick('break', 'continue')}")
        self.depth -= 1

    def pick_of(self, *groups: tuple[str, ...]) -> tuple[str, ...]:
        return self.random.choice(groups)


def program_of(seed: int) -> ControlProgram:
    """The program of a seed."""
    writer = SizesWriter(seed)
    layout = "\n".join(writer.pick(*choices) for choices in LAYOUTS.values())
    writer.returned += writer.pick(", w", ", w, g", ", w, g", ", len(w)")
    writer.line(f"s, t, q, k = 0.0, a, {writer.pick('1.0', 'x[0]', 'x.max()')}, 2")
    writer.line("v = x[2:10]")
    writer.line(writer.pick(*STARTS))
    writer.line(writer.pick("g = w * 2.0", "g = w", "g = w.copy()", "g = w[1:]", "g = y"))
    writer.left, writer.has_late = min(writer.left, 6), False
    writer.for_loop()
    while writer.left > 0:
        writer.statement()
    writer.line(f"return {writer.result()}")
    head = writer.pick(*HELPERS) + "\n\n" if writer.has_helper else ""
    source = head + "def program(x, y, A, u, a, n):\n" + "\n".join(writer.lines) + "\n"
    return ControlProgram(source, layout, seed, same_n=writer.chance(0.7), resizes=True)
