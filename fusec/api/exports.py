"""Functions that leave the process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fusec.compiled.exports.c_library import write_library
from fusec.compiled.exports.wheel import write_wheel
from fusec.dispatch.function import Function
from fusec.dispatch.jit import jit

if TYPE_CHECKING:
    from fusec.compiled.exports.c_library import CLibrary


def export_c(
    functions: Mapping[str, tuple[Any, Sequence[Any]]], path: str | os.PathLike[str],
    levels: Sequence[str] = ("v3", "v4"), threads: str = "none",
) -> CLibrary:
    """Write functions as a library for C: ``lib<name>.so``, ``lib<name>.a`` and ``<name>.h``.

    ``functions``: by its name in C, a function (jitted or not) and the specs of its arguments:
    `TensorSpec` s, whose open sizes become parameters, and values of the others.  ``path`` is the
    folder; its last part is the library's name.  ``levels``: those of x86-64's psABI (``"v2"``,
    ``"v3"``, ``"v4"``) that there is code for; a library asks the CPU at its first call, and gives
    an error where it has less.  ``("aarch64",)`` makes a library for that machine.  ``threads``:
    ``"none"``; ``"pool"``: the library's own, which all such libraries of a process share; or
    ``"callback"``: the caller's, who gives a function that runs tasks in parallel.

    No compiler and no linker are needed.  Results have the bits of the same function here, but for
    products of matrices, which a BLAS computes here.  Arrays and numbers that a function reads from
    outside are kept as they are now.  docs/export-c.md has more.

    Raises `UnsupportedError` with every part, of all functions, that needs Python: library calls,
    callbacks, random generators, state that outlives the call; `ValueError` for names, levels and
    threads that there are not, and the functions' own errors.
    """
    compiled = {name: compiler_of(given) for name, given in functions.items()}
    return write_library(compiled, path, levels, threads)


def wheel_stub(path: str | os.PathLike[str], version: str = "0.1") -> Path:
    """Write a Python package over a library of `export_c`, and a wheel of it: the wheel's path.

    ``path`` is the library's folder.  The package lies in ``python/<name>`` there, the wheel beside
    the library; both need NumPy alone, and run where the library runs.  A function of the package
    takes the arguments of the C function, arrays of NumPy's, and gives the results of the Python
    function, a tuple where there are several; it raises the Python program's exceptions.
    ``version``: the package's.

    Raises `ValueError` for a folder without such a library, for a version that is none, and for
    results that are neither arrays nor numbers, texts or None.
    """
    return write_wheel(path, version)


def compiler_of(given: Any) -> tuple[Any, Any]:
    """That of a function, jitted or not, and its specs, of a pair of these."""
    function, specs = given
    jitted: Any = function if isinstance(function, Function) else jit(function)
    return jitted._compiler, specs
