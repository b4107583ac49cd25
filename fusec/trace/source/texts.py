"""The texts that a code object may have been compiled from.

`linecache` has files, notebook cells and the prompt of Python 3.13; the text of ``python -c`` is
among the process's arguments, that of ``python - < file`` is read again where standard input is a
file.  Any of them may have changed since: `source.find_source` compares.
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
_remembered: dict[str, list[list[str]]] = {}  # by file: texts of functions of other processes


def remember(file: str, lines: list[str]) -> None:
    """Note a text that a function from another process was compiled from."""
    texts = _remembered.setdefault(file, [])
    if lines not in texts:
        texts.append(lines)


def texts_of(code: CodeType, module_globals: dict[str, Any] | None) -> Iterator[list[str]]:
    """Lists of lines, the likeliest first.

    ``module_globals`` let `linecache` ask the module's loader (zip files).
    """
    file = code.co_filename
    cached = linecache.getlines(file, module_globals)
    if cached:
        yield cached
    linecache.checkcache(file)  # its copy may be older than the import
    reread = linecache.getlines(file, module_globals)
    if reread and reread is not cached:
        yield reread
    yield from _remembered.get(file, ())
    if file == "<string>":
        yield from _command_text()
    elif file == "<stdin>":
        yield from _standard_input_text()


def _command_text() -> Iterator[list[str]]:
    """The text after ``-c`` in the command line, or after several options in one: ``-Ic text``."""
    arguments = sys.orig_argv
    for before, text in itertools.pairwise(arguments):
        if before.startswith("-") and not before.startswith("--") and before.endswith("c"):
            yield _lines(text)
            return


def _standard_input_text() -> Iterator[list[str]]:
    try:
        status = os.fstat(0)
        if hasattr(os, "pread") and stat.S_ISREG(status.st_mode) and status.st_size <= _MOST:
            yield _lines(os.pread(0, status.st_size, 0).decode())
    except (OSError, UnicodeDecodeError):  # closed, or no text
        return


def _lines(text: str) -> list[str]:
    """Lines as Python counts them: `str.splitlines` splits at more characters."""
    return io.StringIO(text, newline=None).readlines()
