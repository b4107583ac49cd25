"""`fusec.print` and `fusec.check_numerics`: effects of compiled functions, at run time."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.trace.library.host_calls import printed
from fusec.trace.operands.operands import as_traced
from fusec.trace.values.trace import current


def print(
    *args: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: bool = False
) -> None:
    """``print`` of the values of every call, in program order, also in branches and loops.

    ``sep``, ``end`` and ``flush`` are those of Python's.  ``file`` is written when the code
    runs (None: ``sys.stdout`` of then).  Arrays, numbers, text, and lists and tuples of them
    print as in Python, other objects as they are at that time.
    Outside compiled functions it is Python's own ``print``.
    """
    trace = current()
    if trace is None:
        builtins.print(*args, sep=sep, end=end, file=file, flush=flush)
        return
    printed(trace, args, {"sep": sep, "end": end, "file": file, "flush": flush})


def check_numerics(x: Any, message: str = "") -> Any:
    """``x`` itself; raises ``FloatingPointError`` if it holds infinities or NaN.

    The error's text is ``message``, when the code runs.
    """
    error = FloatingPointError(f"{message or 'an array'}: infinity or NaN")
    trace = current()
    if trace is None:
        if not np.isfinite(x).all():
            raise error
        return x
    if type(message) is not str:
        raise unsupported("check_numerics with a message that is no text", loc=trace.loc)
    holds = np.isfinite(as_traced(trace, x)).all()
    trace.check(as_traced(trace, holds).value, error)
    return x
