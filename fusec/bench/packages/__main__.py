"""``python -m fusec.bench.packages [PACKAGE ...] [--markdown PAGE]``: the survey."""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .earth import EARTH
from .measure import Finding, measured
from .page import render, verdict
from .signals import SIGNALS
from .space import SPACE

PACKAGES = {**EARTH, **SPACE, **SIGNALS}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 where results differ or a package cannot be imported."""
    parser = argparse.ArgumentParser(prog="python -m fusec.bench.packages", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", choices=[*PACKAGES, []])
    parser.add_argument("--markdown", type=Path, help="write the page to this file")
    parser.add_argument("--here", action="store_true", help="in this process, as lines of JSON")
    options = parser.parse_args(arguments)
    names = options.packages or list(PACKAGES)
    if options.here:
        for name in names:
            for function in PACKAGES[name].calls:
                finding = measured(name, PACKAGES[name], function)
                print(json.dumps(dataclasses.asdict(finding)), flush=True)
        return 0
    findings, is_whole = survey(names)
    if options.markdown:
        options.markdown.write_text(render(findings))
    return int(not is_whole or any(f.problem for f in findings))


def survey(names: Sequence[str]) -> tuple[list[Finding], bool]:
    """Every package in its own process, with a line for each function; and whether all ran."""
    findings, is_whole = [], True
    for name in names:
        command = [sys.executable, "-m", "fusec.bench.packages", "--here", name]
        process = subprocess.run(command, capture_output=True, text=True)
        for line in process.stdout.splitlines():
            if line.startswith('{"package"'):
                findings.append(Finding(**json.loads(line)))
                print(_line(findings[-1]), flush=True)
        if process.returncode:
            is_whole = False
            print(f"{name}: stopped\n{process.stderr}", file=sys.stderr)
    return findings, is_whole


def _line(f: Finding) -> str:
    detail = f"{f.refusal} {f.place}" if f.refusal else f.problem or f"{f.speedup:.2f}x"
    return f"{f.package:20} {f.function:45} {verdict(f):8} {detail}"


if __name__ == "__main__":
    sys.exit(main())
