"""The `FUSEC_LOG` ladder: events inside fusec, a line each, on stderr.

Callers guard costly texts: ``if log.enabled(log.PASSES): log.write(log.PASSES, ...)``.
"""

from __future__ import annotations

import sys
import warnings

from fusec import config

SILENT, WARN, COMPILE, PASSES, CODE, LAUNCH = range(6)
_NAMES = ("silent", "warning", "compile", "pass", "code", "launch")

_level = SILENT
_lost = 0


def _set_level(level: int) -> None:
    global _level
    _level = level


config.on_change("log_level", _set_level, call_now=True)


def enabled(level: int) -> bool:
    """Whether events of that rung are written now."""
    return level <= _level


def write(level: int, text: str) -> None:
    """Write one event when its rung is on; lines after the first (graphs, kernels) are indented.

    One write call an event, so that events of several threads do not mix within a line.  A stream
    that is closed, full or gone fails no call: the next event that can be written says how many
    could not.
    """
    global _lost
    if level > _level:
        return
    first, *rest = text.split("\n")
    lost = f"({_lost} lines before this one could not be written) " if _lost else ""
    lines = [f"fusec {_NAMES[level]}: {lost}{first}", *(f"    {line}".rstrip() for line in rest)]
    try:
        sys.stderr.write("\n".join(lines) + "\n")
    except Exception:  # whatever the stream is
        _lost += 1
    else:
        _lost = 0


def warn(message: str | Warning, category: type[Warning], file: str, line: int) -> None:
    """Warn of a line of the program.  Filters may make the warning an exception, which is raised.

    A warning that cannot be shown (a closed stream) fails no call.
    """
    global _lost
    try:
        warnings.warn_explicit(message, category, file, line)
    except Warning:
        raise
    except Exception:  # of the stream that it is shown on
        _lost += 1
