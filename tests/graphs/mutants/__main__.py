"""Mutants in a child process, which a crash ends: the crash is told, and the next one goes
on: ``python tests/graphs/mutants -n 100000 --seed 0``, ``--only 123`` to see one.

The child writes the number that it begins with to a shared page.  ``--heap`` lets every
array of NumPy's end at a guard page as well.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[2])]
RECYCLED_AFTER = 20_000  # mutants; kernels add up in a process
MOST_MEMORY = 12 << 30  # bytes


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--mutants", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="the first number")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--only", nargs="*", type=int, help="show and run these here")
    parser.add_argument("--rows", nargs="*", help="of these ops alone")
    parser.add_argument("--heap", action="store_true", help="guard every array of NumPy's")
    parser.add_argument("--seeds", type=Path, help="the file that keeps traced graphs")
    parser.add_argument("--json", type=Path, help="write counts to this file")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def judge_of(chosen: argparse.Namespace) -> Any:
    import warnings

    import numpy as np

    from mutants.guards import guard_all_arrays
    from mutants.judge import Judge
    from mutants.seeds import seeds

    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    found = seeds(chosen.seeds)
    rows = [row for row in found if not chosen.rows or row in chosen.rows]
    if chosen.heap:
        guard_all_arrays()
    return Judge(found, rows)


def child(chosen: argparse.Namespace) -> None:
    """Numbers from the first one on, until it is old; a line for each failure, counts at the end.
    """
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = MOST_MEMORY if hard == resource.RLIM_INFINITY else min(MOST_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    judge = judge_of(chosen)
    with chosen.child.open("r+b") as file:
        page = mmap.mmap(file.fileno(), 4096)
    counts: Counter[str] = Counter()
    begin = time.monotonic()
    for number in range(chosen.seed, chosen.seed + min(chosen.mutants, RECYCLED_AFTER)):
        page[:8] = number.to_bytes(8, "little")
        try:
            outcome = judge.outcome(number)
        except BaseException as error:
            outcome = "failed"
            print(json.dumps({"number": number, "why": f"{type(error).__name__}: {error}"[:1500]}),
                  flush=True)
        counts[f"{judge.row(number)} {outcome}"] += 1
        if number % 50 == 0:
            text = json.dumps(counts).encode()
            (chosen.child.parent / "counts").write_bytes(text)
        if time.monotonic() - begin > chosen.seconds:
            break
    print(json.dumps({"counts": counts, "next": number + 1}), flush=True)


class Campaign:
    """Children one after the other, each from where the last one ended."""

    def __init__(self, chosen: argparse.Namespace, folder: Path) -> None:
        self.chosen, self.folder = chosen, folder
        self.page, self.counts = folder / "page", Counter[str]()
        self.page.write_bytes(bytes(4096))
        self.failures: list[dict[str, Any]] = []

    def run(self) -> None:
        chosen, at, begin = self.chosen, self.chosen.seed, time.monotonic()
        while at < chosen.seed + chosen.mutants:
            left = chosen.seconds - (time.monotonic() - begin)
            if left <= 0:
                break
            at = self._one(at, chosen.seed + chosen.mutants - at, left)
            spent = time.monotonic() - begin
            print(f"{at - chosen.seed} mutants, {(at - chosen.seed) / spent:.0f} a second, "
                  f"{len(self.failures)} failures", flush=True)

    def _one(self, first: int, count: int, seconds: float) -> int:
        command = [sys.executable, str(HERE), "--child", str(self.page), "--seed", str(first),
                   "-n", str(count), "--seconds", str(seconds), "--seeds", str(self.chosen.seeds)]
        command += ["--heap"] * self.chosen.heap
        command += ["--rows", *self.chosen.rows] if self.chosen.rows else []
        done = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert done.stdout is not None
        after = None
        for line in done.stdout:
            try:
                told = json.loads(line)
            except ValueError:
                continue
            if "counts" in told:
                self.counts.update(told["counts"])
                after = int(told["next"])
            else:
                self._failed(told)
        status = done.wait()
        if after is not None:
            return after
        number = int.from_bytes(self.page.read_bytes()[:8], "little")
        self._failed({"number": number, "why": f"the process ended with status {status}"})
        counts = self.folder / "counts"
        if counts.exists():
            self.counts.update(json.loads(counts.read_text()))
            counts.unlink()
        return number + 1

    def _failed(self, told: dict[str, Any]) -> None:
        self.failures.append(told)
        print(f"# {told['number']}: {told['why']}", flush=True)

    def summary(self) -> dict[str, Any]:
        outcomes: Counter[str] = Counter()
        rows: Counter[str] = Counter()
        for key, count in self.counts.items():
            row, outcome = key.split()
            outcomes[outcome] += count
            rows[row] += count
        return {"outcomes": dict(outcomes), "fewest of a row": min(rows.values(), default=0),
                "rows": len(rows), "failures": self.failures}


def show(chosen: argparse.Namespace) -> None:
    judge = judge_of(chosen)
    for number in chosen.only:
        graph, _ = judge.mutant(number)
        print(f"# {number}, of {judge.row(number)}\n{graph}", flush=True)
        try:
            print(judge.outcome(number))
        except BaseException:
            traceback.print_exc()


def main() -> int:
    chosen = arguments()
    with tempfile.TemporaryDirectory(prefix="fusec-mutants-") as folder:
        os.environ.setdefault("FUSEC_CACHE_DIR", str(Path(folder) / "cache"))
        chosen.seeds = chosen.seeds or Path(folder) / "seeds.json"
        if chosen.child is not None:
            child(chosen)
            return 0
        if chosen.only:
            show(chosen)
            return 0
        campaign = Campaign(chosen, Path(folder))
        campaign.run()
        summary = campaign.summary()
        print(json.dumps({k: v for k, v in summary.items() if k != "failures"}))
        if chosen.json is not None:
            chosen.json.write_text(json.dumps(summary | {"counts": campaign.counts}))
        return int(bool(campaign.failures))


if __name__ == "__main__":
    sys.exit(main())
