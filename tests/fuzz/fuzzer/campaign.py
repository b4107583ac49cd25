"""Many programs in a few children; their outcomes, added up."""

from __future__ import annotations

import json
import os
import pickle
import selectors
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import vocabulary
from .child import AnyProgram, program_of, shorten

HANGS_AFTER = 60.0  # seconds without a sign of life
RECYCLED_AFTER = 2500  # programs; traces and kernels add up in a process
AT_ONCE = 20  # seeds a child is given ahead


@dataclass
class Summary:
    """The outcomes of a campaign so far."""

    programs: int = 0
    seconds: float = 0.0
    ops: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def add(self, shown: dict[str, Any]) -> None:
        self.programs += 1
        if "failure" in shown:
            self.failures.append(shown)
            return
        for name in ("ops", "rows", "checks", "refused"):
            getattr(self, name).update(shown[name])

    @property
    def never_reached(self) -> list[str]:
        """Functions, methods and ufuncs of the vocabulary that no program called and kept."""
        wanted = [code for code, _ in vocabulary.ufuncs()]
        wanted += [c.code for c in vocabulary.functions()]
        wanted += [f"ndarray{c.code}" for c in vocabulary.methods()]
        refused = {text.partition(":")[0] for text in self.refused}
        return [name for name in wanted if not self.ops[name] and name not in refused]

    def __str__(self) -> str:
        from fusec.ops import all_ops

        rows = [row.name for row in all_ops()]
        unused = [name for name in rows if not self.rows[name]]
        return "\n".join([
            f"{self.programs} programs in {self.seconds:.0f} s, {len(self.failures)} failures",
            f"  {sum(self.ops.values())} statements of {len(self.ops)} kinds; never reached: "
            f"{', '.join(self.never_reached) or 'none'}",
            f"  {len(rows) - len(unused)} of {len(rows)} rows of the registry; not reached: "
            f"{', '.join(unused) or 'none'}",
            f"  further checks: {_listed(self.checks, 20)}",
            f"  most frequent: {_listed(self.ops, 12)}",
            f"  rarest: {_listed(Counter(dict(self.ops.most_common()[-12:])), 12)}",
            f"  refused, and so taken out of programs: {sum(self.refused.values())}; "
            f"{_listed(self.refused, 8)}",
        ])


def _listed(counts: Counter[str], most: int) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.most_common(most))


class Child:
    """One worker process and the seeds that it was given and has not finished."""

    def __init__(self) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the child
        self.process = subprocess.Popen(CHILD, cwd=HERE, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors)
        self.waiting: list[str] = []
        self.done, self.buffer = 0, b""
        self.last_sign = time.monotonic()

    def give(self, seed: str) -> None:
        assert self.process.stdin is not None
        self.waiting.append(seed)
        try:
            self.process.stdin.write(f"{seed}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError:  # it has died: `heard` finds out at the end of its output
            return

    def heard(self) -> list[dict[str, Any]] | None:
        """Messages that have arrived; None at the end of them."""
        assert self.process.stdout is not None
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        if not data:
            return None
        self.last_sign = time.monotonic()
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def end(self) -> int:
        """Kill it, unless it has gone by itself; its exit status."""
        try:
            self.process.wait(1.0 if self.waiting else 0.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        return self.process.returncode


class Campaign:
    """Runs seeds until there are no more or the time is up."""

    def __init__(
        self, seeds: Iterator[str], jobs: int = 2, seconds: float = float("inf"),
        report: Any = None,
    ) -> None:
        self.seeds, self.jobs, self.report = seeds, jobs, report
        self.start = time.monotonic()
        self.end = self.start + seconds
        self.summary = Summary()
        self.selector = selectors.DefaultSelector()
        self.retry: list[str] = []

    def run(self) -> Summary:
        for _ in range(self.jobs):
            self._add_child()
        try:
            while self.selector.get_map():
                self._turn()
        finally:
            for key in list(self.selector.get_map().values()):
                key.data.end()
        return self.summary

    def _add_child(self) -> None:
        child = Child()
        self.selector.register(child.process.stdout, selectors.EVENT_READ, child)
        self._feed(child)

    def _feed(self, child: Child) -> None:
        """Seeds ahead of time; a child that has none left is let go."""
        while len(child.waiting) < AT_ONCE and child.done < RECYCLED_AFTER:
            seed = self._next()
            if seed is None:
                break
            child.give(seed)
            child.done += 1
        if not child.waiting:
            self._remove(child)
            if child.done >= RECYCLED_AFTER:
                self._add_child()

    def _next(self) -> str | None:
        if time.monotonic() > self.end:
            return None
        return self.retry.pop() if self.retry else next(self.seeds, None)

    def _remove(self, child: Child) -> None:
        self.selector.unregister(child.process.stdout)
        child.end()

    def _turn(self) -> None:
        for key, _ in self.selector.select(5.0):
            messages = key.data.heard()
            if messages is None:
                self._lost(key.data, "it died")
                continue
            for message in messages:
                self._take(key.data, message)
            self._feed(key.data)
        for key in list(self.selector.get_map().values()):
            if time.monotonic() - key.data.last_sign > HANGS_AFTER:
                self._lost(key.data, f"it hung for {HANGS_AFTER:.0f} s")

    def _take(self, child: Child, message: dict[str, Any]) -> None:
        if "seed" not in message:
            return
        child.waiting.remove(message["seed"])
        self._note(message)

    def _note(self, shown: dict[str, Any]) -> None:
        self.summary.add(shown)
        self.summary.seconds = time.monotonic() - self.start
        if self.report is not None:
            self.report(self.summary, shown)

    def _lost(self, child: Child, how: str) -> None:
        """The first seed that a dead child had not finished is to blame; the rest go on."""
        self._remove(child)
        if child.waiting:
            blamed, *rest = child.waiting
            self.retry += rest
            child.errors.seek(max(child.errors.seek(0, os.SEEK_END) - 6000, 0))
            said = child.errors.read().decode(errors="replace")
            self._note(died(blamed, f"{how} (exit status {child.process.returncode})", said))
        self._add_child()


HERE = Path(__file__).resolve().parents[1]
CHILD = [sys.executable, "-m", "fuzzer.child"]


def died(seed: str, how: str, said: str = "") -> dict[str, Any]:
    """The report of a program that took its process with it, shrunk in processes of its own."""
    report = {"seed": seed, "failure": f"the process running it: {how}", "traceback": said,
              "program": "", "now": "it does not die alone"}
    if takes_its_process_along(seed):
        return {**report, "now": "NumPy itself dies or hangs while the program is grown"}
    program = program_of(seed)
    if takes_its_process_along(program):
        found = shorten(program, lambda p: how if takes_its_process_along(p) else None, 60)
        report |= {"program": found.runnable, "now": how}
    return report


def takes_its_process_along(program: AnyProgram | str) -> bool:
    """Whether a process of its own dies of the program, or of growing that of a seed; or hangs."""
    try:
        done = subprocess.run([*CHILD, "--program"], cwd=HERE, input=pickle.dumps(program),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0
