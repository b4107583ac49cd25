"""Random programs, NumPy against everything fusec makes of them: ``make fuzz N=20000 SEED=0``.

A failure is printed as a program that shows it; its seed alone makes it again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--programs", type=int, default=2000, help="how many (2000)")
    parser.add_argument("--control", action="store_true",
                        help="programs with branches, loops, views and element updates")
    parser.add_argument("--stateful", action="store_true",
                        help="those with globals, closures, objects and containers as well")
    parser.add_argument("--sizes", action="store_true",
                        help="those with arrays that loops shrink and grow")
    parser.add_argument("--six-sizes", action="store_true",
                        help="those that one function runs at six sizes, which may be refused")
    parser.add_argument("--seed", default="0", help="the first seed, or 'random' (0)")
    parser.add_argument("--only", nargs="*", help="run these seeds here, without a child")
    parser.add_argument("--jobs", type=int, default=2, help="children (2)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after that long")
    parser.add_argument("--save", type=Path, help="write each failure's program to this folder")
    parser.add_argument("--json", type=Path, help="write the counts to this file")
    return parser.parse_args()


def first_seed(text: str) -> int:
    """``random`` is a number drawn now, printed so that it can be had again."""
    return int(text) if text != "random" else int.from_bytes(os.urandom(4), "big") << 20


class Progress:
    """A line now and then, and every failure at once."""

    def __init__(self, save: Path | None) -> None:
        self.save, self.last = save, time.monotonic()

    def __call__(self, summary: Any, shown: dict[str, Any]) -> None:
        if "failure" in shown:
            self._failed(shown)
        if time.monotonic() - self.last > 10:
            self.last = time.monotonic()
            rate = summary.programs / max(summary.seconds, 1e-9)
            print(f"{summary.programs} programs, {rate:.0f} a second, {len(summary.failures)} "
                  f"failures, {len(summary.ops)} kinds of statements", flush=True)

    def _failed(self, shown: dict[str, Any]) -> None:
        print(f"\n# ---- seed {shown['seed']}: {shown['failure']}\n# shrunk: {shown['now']}\n"
              f"{shown['program']}# ----\n", flush=True)
        if self.save is not None:
            self.save.mkdir(parents=True, exist_ok=True)
            text = f"# {shown['failure']}\n# {shown['now']}\n{shown['program']}"
            notes = "".join(f"# {line}\n" for line in shown["traceback"].splitlines())
            (self.save / f"seed{shown['seed']}.py").write_text(text + notes)


def main() -> int:
    from fuzzer.campaign import Campaign
    from fuzzer.child import judged

    chosen = arguments()
    progress = Progress(chosen.save)
    if chosen.only:
        shown = [judged(seed) for seed in chosen.only]
        for each in shown:
            print(each["seed"], each.get("failure", "agrees"))
            progress._failed(each) if "failure" in each else None
        return int(any("failure" in each for each in shown))
    start = first_seed(chosen.seed)
    kinds = {"s": chosen.stateful, "w": chosen.sizes, "z": chosen.six_sizes, "c": chosen.control}
    kind = next((letter for letter, is_chosen in kinds.items() if is_chosen), "")
    print(f"seeds {kind}{start} to {kind}{start + chosen.programs - 1}", flush=True)
    seeds: Iterator[str] = (kind + str(n) for n in itertools.count(start))
    campaign = Campaign(itertools.islice(seeds, chosen.programs), chosen.jobs, chosen.seconds,
                        progress)
    summary = campaign.run()
    print(summary)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps({
            "programs": summary.programs, "failures": [f["seed"] for f in summary.failures],
            "ops": summary.ops, "rows": summary.rows, "checks": summary.checks,
            "refused": summary.refused}))
    return int(bool(summary.failures))


if __name__ == "__main__":
    if "FUSEC_CACHE_DIR" in os.environ:
        sys.exit(main())
    with tempfile.TemporaryDirectory(prefix="fusec-fuzz-") as cache:
        os.environ["FUSEC_CACHE_DIR"] = cache
        sys.exit(main())
