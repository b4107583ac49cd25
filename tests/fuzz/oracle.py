"""NumPy with fusec's own math functions, so that whole programs can be compared bit for bit.

A math function has one bit pattern wherever it is computed, so a compiled function of that one
operation tells the bits inside every program.  Its accuracy is tested elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import fusec
from fusec.codegen.kernels import reference
from fusec.codegen.python.python_source import kernel_source

NAMES = ("exp", "tanh", "sin", "log")


def _single(name: str) -> Callable[[Any], Any]:
    ufunc = getattr(np, name)
    compiled = fusec.jit(lambda x: ufunc(x))

    def function(x: Any) -> Any:
        if np.asarray(x).dtype.kind == "f":
            return compiled(x)
        return ufunc(x)

    return function


class OwnNumpy:
    """``np`` with `NAMES` replaced."""

    def __init__(self) -> None:
        for name in NAMES:
            setattr(self, name, _single(name))

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


OWN = OwnNumpy()


@contextmanager
def own_functions_in_reference() -> Iterator[None]:
    """The reference interpreter with the same functions."""
    table = reference.scalar_functions()
    before = {name: table[name] for name in NAMES}
    table.update({name: getattr(OWN, name) for name in NAMES})
    try:
        yield
    finally:
        table.update(before)


def run_source(kernel: Any, buffers: Any) -> None:
    """The kernel's readable source as plain Python, with the same functions."""
    import warnings

    text = kernel_source(kernel).replace("import numpy as np\n", "", 1)
    scope: dict[str, Any] = {"np": OWN}
    exec(compile(text, "<fuzz kernel>", "exec"), scope)
    defined = [v for v in scope.values() if type(v) is type(run_source)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        defined[-1](*buffers)
