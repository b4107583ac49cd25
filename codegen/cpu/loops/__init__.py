"""Native loops: a ``Loop`` or ``Cond`` of the graph as one compiled function.

`compile_control` emits the whole structure, sub-graphs inside sub-graphs: scalars live in
registers, arrays that a loop carries are updated in place, fused kernels are called without
leaving native code.  What does not fit raises `NotNativeError` with the reason, and runs step by
step instead.
"""

from __future__ import annotations

from .program import compile_control

__all__ = ["compile_control"]
