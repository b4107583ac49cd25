"""The `FUSEC_LOG` ladder: what happens inside fusec, a line an event, on stderr.

Callers guard what is costly to format: ``if log.enabled(log.PASSES): log.write(log.PASSES, ...)``.
"""

from __future__ import annotations

import sys

from .. import config

SILENT, WARN, COMPILE, PASSES, CODE, LAUNCH = range(6)
_NAMES = ("silent", "warning", "compile", "pass", "code", "launch")

_level = SILENT


def _set_level(level: int) -> None:
    global _level
    _level = level


config.on_change("log_level", _set_level, call_now=True)


def enabled(level: int) -> bool:
    """Whether events of that rung are written now."""
    return level <= _level


def write(level: int, text: str) -> None:
    """Write one event when its rung is on; lines after the first (graphs, kernels) are indented.

    One write call an event, so that events of several threads do not mix within a line.
    """
    if level <= _level:
        first, *rest = text.split("\n")
        lines = [f"fusec {_NAMES[level]}: {first}", *(f"    {line}".rstrip() for line in rest)]
        sys.stderr.write("\n".join(lines) + "\n")
