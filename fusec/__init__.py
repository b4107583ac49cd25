"""fusec: a JIT compiler from traced NumPy graphs to fused kernels.

    import fusec, numpy as np

    @fusec.jit
    def f(x, y):
        return np.exp(-x) * y + 1

Everything heavy is imported when first used.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import checkout as checkout  # first: it lets a checkout's folders be found
from . import config, errors
from .errors import (
    CheckpointWarning,
    ConcreteValueError,
    DtypeWarning,
    FallbackWarning,
    FirstCallWarning,
    FusecError,
    InternalError,
    OverlapError,
    PlacementWarning,
    RetraceWarning,
    SideEffectWarning,
    TraceError,
    UnrolledWarning,
    UnsupportedError,
)

if TYPE_CHECKING:
    from . import random as random
    from .bench.measure import benchmark
    from .caches import clear_caches
    from .checkpoint import Checkpoint
    from .concrete_function import ConcreteFunction
    from .containers import container
    from .control_functions import cond, fori_loop, map, scan, switch, while_loop
    from .devices import devices
    from .explanation import explain
    from .function import Function
    from .gradients import (
        check_grads,
        custom_jvp,
        custom_vjp,
        grad,
        hessian,
        hvp,
        jacobian,
        jvp,
        stop_gradient,
        value_and_grad,
        vjp,
    )
    from .graph_function import GraphFunction
    from .inspect.history import history
    from .ir.admit import admit
    from .jit import jit
    from .magics import load_ipython_extension as load_ipython_extension
    from .printing import check_numerics, print
    from .profile import profile
    from .run_metadata import NodeStats, RunMetadata, RunOptions
    from .scopes import colocate_with, control_dependencies, device, name_scope
    from .specs import PYTHON_VALUE, TensorSpec
    from .trace_cache import no_retrace
    from .variable import Variable
    from .vectorize import vectorize
    from .wrapped_function import wrap_function

    class FusecValueError(FusecError, ValueError):
        """Made when it is first asked for, as for each other exception that NumPy raises."""

    class FusecTypeError(FusecError, TypeError): ...

    class FusecIndexError(FusecError, IndexError): ...

    class FusecKeyError(FusecError, KeyError): ...

    class FusecZeroDivisionError(FusecError, ZeroDivisionError): ...

    class FusecOverflowError(FusecError, OverflowError): ...

    class FusecAttributeError(FusecError, AttributeError): ...

__version__ = "0.1.0"
_LAZY = {
    "jit": "jit", "Function": "function", "TensorSpec": "specs", "PYTHON_VALUE": "specs",
    "no_retrace": "trace_cache", "cond": "control_functions", "switch": "control_functions",
    "while_loop": "control_functions", "fori_loop": "control_functions",
    "scan": "control_functions", "map": "control_functions",
    "ConcreteFunction": "concrete_function", "RunMetadata": "run_metadata",
    "RunOptions": "run_metadata", "NodeStats": "run_metadata",
    "name_scope": "scopes", "control_dependencies": "scopes", "colocate_with": "scopes",
    "device": "scopes",
    "admit": "ir.admit", "GraphFunction": "graph_function",
    "print": "printing", "vectorize": "vectorize", "check_numerics": "printing",
    "explain": "explanation", "benchmark": "bench.measure", "history": "inspect.history",
    "devices": "devices", "profile": "profile",
    "clear_caches": "caches", "Variable": "variable", "container": "containers",
    "Checkpoint": "checkpoint",
    "wrap_function": "wrapped_function",
    **dict.fromkeys(("grad", "value_and_grad", "vjp", "jvp", "jacobian", "hessian", "hvp",
                     "stop_gradient", "check_grads", "custom_jvp", "custom_vjp"), "gradients"),
    "load_ipython_extension": "magics",
}
__all__ = [
    "PYTHON_VALUE",
    "Checkpoint",
    "CheckpointWarning",
    "ConcreteFunction",
    "ConcreteValueError",
    "DtypeWarning",
    "FallbackWarning",
    "FirstCallWarning",
    "Function",
    "FusecError",
    "GraphFunction",
    "InternalError",
    "NodeStats",
    "OverlapError",
    "PlacementWarning",
    "RetraceWarning",
    "RunMetadata",
    "RunOptions",
    "SideEffectWarning",
    "TensorSpec",
    "TraceError",
    "UnrolledWarning",
    "UnsupportedError",
    "Variable",
    "admit",
    "benchmark",
    "check_grads",
    "check_numerics",
    "clear_caches",
    "colocate_with",
    "cond",
    "config",
    "container",
    "control_dependencies",
    "custom_jvp",
    "custom_vjp",
    "device",
    "devices",
    "errors",
    "explain",
    "fori_loop",
    "grad",
    "hessian",
    "history",
    "hvp",
    "jacobian",
    "jit",
    "jvp",
    "map",
    "name_scope",
    "no_retrace",
    "print",
    "profile",
    "random",
    "scan",
    "stop_gradient",
    "switch",
    "value_and_grad",
    "vectorize",
    "vjp",
    "while_loop",
    "wrap_function",
]


if not TYPE_CHECKING:  # checkers are to find names that are not there

    def __getattr__(name: str) -> Any:
        if name == "random":
            return importlib.import_module("fusec.random")
        module = _LAZY.get(name)
        if module is None:
            return _made_or_absent(name)
        value = getattr(importlib.import_module(f"fusec.{module}"), name)
        globals()[name] = value
        return value


def _made_or_absent(name: str) -> Any:
    """``FusecValueError`` and its like, which are made when they are asked for."""
    if name.startswith("Fusec") and (made := getattr(errors, name, None)) is not None:
        return made
    raise importlib.import_module("fusec.absent_names").absent(name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Importing the submodule ``fusec.jit`` must not hide the function of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _LAZY and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
