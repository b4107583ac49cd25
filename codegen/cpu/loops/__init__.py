"""Native loops: a ``Loop`` or ``Cond`` of the graph as one compiled function.

`compile_control` prints the node's structured program as LLVM IR, for which kernels are other
functions that it calls.  A node that does not fit raises `NotNativeError` with the reason, and runs
step by step.
"""

from __future__ import annotations

from .program import compile_control

__all__ = ["compile_control"]
