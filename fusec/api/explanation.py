"""``fusec.explain``: passes, kernels and assumptions of a function, and reasons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusec.compiled.reports.explain import Explanation
from fusec.dispatch.function import Function
from fusec.dispatch.jit import jit


def explain(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """The compilation of ``f(*args)``: passes, kernels, nodes not fused and why, assumptions.

    ``f`` may be jitted or plain; it is compiled for these arguments but not run.  With Dask's
    arrays among these: its stages, barriers, what travels between blocks, and memory.
    """
    f = getattr(f, "function", f)  # of a bound method
    function = f if isinstance(f, Function) else jit(f)
    bound = function.of_instance(args[0]) if args else None
    if bound is not None:  # Model.step, with the instance that it was called on
        function, args = bound, args[1:]
    args, kwargs = function._without_labels(args, kwargs)
    split = function._split(*args, **kwargs)
    if split is not None:  # Dask's arrays
        explanation: Explanation = split.explanation
        return explanation
    return function.concrete(*args, **kwargs).explanation(function.__name__)
