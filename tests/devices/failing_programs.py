"""Random programs with nodes that fail when data says so: libraries, index checks, loops, checks.

Argument ``bad`` has a number for each part of the program that can fail: 0 lets it pass.  Every
part reads it at run time, so that which node fails is a matter of data, and one trace serves all.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

import numpy as np

import fusec

_numbers = count()

# Statements with a vector `v` of 24 numbers before and after; `k` is the number of the part, and
# where `bad[k]` is 1 they raise.  Arguments: vectors v and w, integers i.
PARTS = {
    "inv": "u = np.linalg.inv(v[:16].reshape(4, 4) * (1 - bad[{k}]) + {e} * (1 - bad[{k}]))\n"
           "v = v + u.sum()",
    "cholesky": "v = v * np.linalg.cholesky(np.eye(3) * (1.0 - 3.0 * bad[{k}]))[0, 0]",
    "solve": "u = np.linalg.solve(np.eye(6) * (1 - bad[{k}]), v[:6])\n"
             "v = v + u.max()",
    "index": "v = v + v[i + 40 * i * ibad[{k}] + 60 * ibad[{k}]]",
    "gather": "v = v[(np.arange(24) * 7) % 24 + 30 * ibad[{k}]]",
    "write": "u = v * 2\n"
             "u[i + 70 * ibad[{k}]] = v.sum()\n"
             "v = u * 0.5",
    "numerics": "v = fusec.check_numerics(v / (1.0 - bad[{k}]), 'part {k}')",
    "loop": "t = 0.0\n"
            "for j in range(12):\n"
            "    t = t * 0.5 + v[j + 50 * ibad[{k}]]\n"
            "v = v + t",
    "while": "t = v[0] * 0.0\n"
             "n = 0\n"
             "while n < 9:\n"
             "    t = t + np.sin(v[n + 80 * ibad[{k}]])\n"
             "    n += 1\n"
             "v = v + t",
    "loop with a library": "u = np.eye(3)\n"
                           "for j in range(4):\n"
                           "    u = np.linalg.inv((u + np.eye(3)) * (1 - bad[{k}]))\n"
                           "v = v + u[0, 0]",
    "branch": "if v[3] < 1e9:\n"
              "    v = v + v[i + 90 * ibad[{k}]]\n"
              "else:\n"
              "    v = v * 2",
    "raise": "if bad[{k}] > 0.5:\n"
             "    raise ValueError('part {k}')\n"
             "v = v + 1",
    "assert": "assert bad[{k}] < 0.5, 'part {k}'\n"
              "v = v - 1",
    "quotient": "v = v * (7 // (1 - ibad[{k}]))",
    "print": "fusec.print('part {k}', v[0], w[1])",
    "sort": "v = v + np.sort(v)[::-1] * bad[{k}]",
    "kernel": "v = np.sin(v) + np.cos(v) * (1 + bad[{k}])",
    "product": "v = v + (v[:16].reshape(4, 4) @ v[8:24].reshape(4, 4)).sum() * 1e-3",
    "argument": "a[:] = v * 0.25 + a",
    "element": "a[i] = v[1]",
    "variable": "c.assign_add(v[:4])",
    "another": "v, w = np.tanh(w), np.tanh(v) + 1",
}
CAN_FAIL = frozenset(PARTS) - {"print", "sort", "kernel", "product", "argument", "element",
                               "variable", "another"}


@dataclass
class FailingProgram:
    """``parts`` are names of `PARTS`, in order; ``failing`` the numbers of those that can fail."""

    source: str
    parts: list[str]
    function: Callable[..., Any]
    variable: fusec.Variable

    @property
    def failing(self) -> list[int]:
        return [k for k, part in enumerate(self.parts) if part in CAN_FAIL]

    def arguments(self, bad: tuple[int, ...] = ()) -> tuple[Any, ...]:
        """Fresh ones, with which the parts ``bad`` fail."""
        random = np.random.default_rng(1)
        chosen = np.zeros(len(self.parts))
        chosen[list(bad)] = 1.0
        return (random.uniform(0.5, 1.5, 24), random.uniform(0.5, 1.5, 24), np.ones(24), 2, chosen,
                chosen.astype(np.int64))


def failing_program(random: Random, length: int = 10) -> FailingProgram:
    """A program of so many random parts, of which at least three can fail."""
    while True:
        parts = [random.choice(sorted(PARTS)) for _ in range(length)]
        if sum(part in CAN_FAIL for part in parts) >= 3:
            break
    lines = ["def program(v, w, a, i, bad, ibad):"]
    for k, part in enumerate(parts):
        text = PARTS[part].format(k=k, e="np.eye(4) * 9")
        lines += [f"    {line}" for line in text.split("\n")]
        if random.random() < 0.4:
            lines.append("    v, w = w, v")
    source = "\n".join([*lines, "    return v, w, a.sum()", ""])
    name = f"<failing program {next(_numbers)}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    variable = fusec.Variable(np.zeros(4))
    names = {"np": np, "fusec": fusec, "c": variable}
    exec(compile(source, name, "exec"), names)
    return FailingProgram(source, parts, names["program"], variable)
