"""``np.polyval``: NumPy's own source, or of many coefficients a loop of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..control.unrolling import UNROLL
from ..convert import in_python
from ..objects.tracing_hooks import TracingHooks
from ..operands.operands import as_traced
from ..values.handlers import entry, everywhere
from ..values.operations import traced_source

_SOURCE = entry(np.polyval)(traced_source(np.polyval))  # for calls by NumPy's own objects


@everywhere(np.polyval)
def _polyval(hooks: TracingHooks, p: Any, x: Any) -> Any:
    trace = hooks.trace
    if not isinstance(x, np.poly1d):
        coefficients = as_traced(trace, p)
        if coefficients.ndim == 1 and coefficients.shape[0] > UNROLL:
            return hooks.call(hooks.where, in_python.polynomial, coefficients, as_traced(trace, x))
    return _SOURCE(trace, p, x)
