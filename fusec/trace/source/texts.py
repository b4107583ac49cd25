"""The texts that a code object may have been compiled from.

Files, notebook cells and the prompt of Python 3.13 are `linecache`'s; the text of ``python -c`` is
among the process's arguments, that of ``python - < file`` can be read again where standard input
is a file.  None is known to be the right one: `source.find_source` compares.
"""

from __future__ import annotations

import io
import itertools
import linecache
import os
import stat
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

_MOST = 1 << 24  # bytes of standard input
_brought: dict[str, list[list[str]]] = {}  # by file: texts of functions from other processes


def remember(file: str, lines: list[str]) -> None:
    """Note a text that a function from another process was compiled from."""
    known = _brought.setdefault(file, [])
    if lines not in known:
        known.append(lines)


def texts_of(code: CodeType, module_globals: dict[str, Any] | None) -> Iterator[list[str]]:
    """Lists of lines, the likeliest first.

    ``module_globals`` let `linecache` ask the module's loader (zip files).
    """
    file = code.co_filename
    known = linecache.getlines(file, module_globals)
    if known:
        yield known
    linecache.checkcache(file)  # its copy may be older than the import
    fresh = linecache.getlines(file, module_globals)
    if fresh and fresh is not known:
        yield fresh
    yield from _brought.get(file, ())
    if file == "<string>":
        yield from _of_command()
    elif file == "<stdin>":
        yield from _of_standard_input()


def _of_command() -> Iterator[list[str]]:
    """What follows ``-c`` in the command line, perhaps behind other letters: ``-Ic text``."""
    arguments = sys.orig_argv
    for before, text in itertools.pairwise(arguments):
        if before.startswith("-") and not before.startswith("--") and before.endswith("c"):
            yield _lines(text)
            return


def _of_standard_input() -> Iterator[list[str]]:
    try:
        found = os.fstat(0)
        if hasattr(os, "pread") and stat.S_ISREG(found.st_mode) and found.st_size <= _MOST:
            yield _lines(os.pread(0, found.st_size, 0).decode())
    except (OSError, UnicodeDecodeError):  # closed, or no text: there is none
        return


def _lines(text: str) -> list[str]:
    """As Python counts lines: `str.splitlines` knows more ends than it does."""
    return io.StringIO(text, newline=None).readlines()
