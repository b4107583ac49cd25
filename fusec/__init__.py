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

from fusec.core import checkout as checkout  # first: it lets a checkout's folders be found

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
    from fusec.api.caches import clear_caches
    from fusec.api.control_functions import cond, fori_loop, map, scan, switch, while_loop
    from fusec.api.cuda_export import export_cuda
    from fusec.api.explanation import explain
    from fusec.api.exports import export_c, wheel_stub
    from fusec.api.magics import load_ipython_extension as load_ipython_extension
    from fusec.api.onnx_export import to_onnx
    from fusec.api.printing import check_numerics, print
    from fusec.api.profile import profile
    from fusec.api.training.replicate import replicate
    from fusec.api.training.train import train
    from fusec.api.vectorize import vectorize
    from fusec.compiled.concrete_function import ConcreteFunction
    from fusec.compiled.graph_function import GraphFunction
    from fusec.compiled.reports.history import history
    from fusec.compiled.run_metadata import NodeStats, RunMetadata, RunOptions
    from fusec.compiled.trace_cache import no_retrace
    from fusec.core.program_errors import SavedProgramError, WorkerLostError
    from fusec.dispatch.function import Function
    from fusec.dispatch.jit import jit
    from fusec.dispatch.loading import LoadedFunction, LoadedProgram, load
    from fusec.dispatch.saving import save
    from fusec.dispatch.wrapped_function import wrap_function
    from fusec.distributed.cluster.cluster import cluster
    from fusec.ops.graphs.admit import admit
    from fusec.placement.devices import devices
    from fusec.placement.scopes import colocate_with, control_dependencies, device, name_scope
    from fusec.signature.specs import PYTHON_VALUE, TensorSpec
    from fusec.state.checkpoint import Checkpoint
    from fusec.state.containers import container
    from fusec.state.variable import Variable

    from . import inputs as inputs
    from . import random as random
    from . import summary as summary
    from .bench.measure import benchmark
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
    from .gradients.lanes.vmap import vmap

    class FusecValueError(FusecError, ValueError):
        """Made when it is first asked for, as for each other exception that NumPy raises."""

    class FusecTypeError(FusecError, TypeError): ...

    class FusecIndexError(FusecError, IndexError): ...

    class FusecKeyError(FusecError, KeyError): ...

    class FusecZeroDivisionError(FusecError, ZeroDivisionError): ...

    class FusecOverflowError(FusecError, OverflowError): ...

    class FusecAttributeError(FusecError, AttributeError): ...

__version__ = "0.1.0"
# Public names by the module that has them, which is imported when one is first asked for.
_MODULES = {
    "dispatch.jit": "jit", "dispatch.function": "Function",
    "dispatch.wrapped_function": "wrap_function",
    "signature.specs": "TensorSpec PYTHON_VALUE", "compiled.trace_cache": "no_retrace",
    "compiled.concrete_function": "ConcreteFunction", "compiled.graph_function": "GraphFunction",
    "compiled.run_metadata": "RunMetadata RunOptions NodeStats",
    "compiled.reports.history": "history",
    "placement.scopes": "name_scope control_dependencies colocate_with device",
    "placement.devices": "devices", "ops.graphs.admit": "admit",
    "state.variable": "Variable", "state.containers": "container",
    "state.checkpoint": "Checkpoint",
    "api.control_functions": "cond switch while_loop fori_loop scan map",
    "api.printing": "print check_numerics", "api.vectorize": "vectorize",
    "api.onnx_export": "to_onnx",
    "api.explanation": "explain", "api.profile": "profile", "api.caches": "clear_caches",
    "api.magics": "load_ipython_extension", "api.training.train": "train",
    "api.exports": "export_c wheel_stub", "api.cuda_export": "export_cuda",
    "bench.measure": "benchmark", "api.training.replicate": "replicate",
    "gradients.lanes": "vmap", "distributed.cluster.cluster": "cluster",
    "dispatch.saving": "save", "dispatch.loading": "load LoadedFunction LoadedProgram",
    "core.program_errors": "SavedProgramError WorkerLostError",
    "gradients": "grad value_and_grad vjp jvp jacobian hessian hvp stop_gradient check_grads "
                 "custom_jvp custom_vjp",
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names.split()}
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
    "LoadedFunction",
    "LoadedProgram",
    "NodeStats",
    "OverlapError",
    "PlacementWarning",
    "RetraceWarning",
    "RunMetadata",
    "RunOptions",
    "SavedProgramError",
    "SideEffectWarning",
    "TensorSpec",
    "TraceError",
    "UnrolledWarning",
    "UnsupportedError",
    "Variable",
    "WorkerLostError",
    "admit",
    "benchmark",
    "check_grads",
    "check_numerics",
    "clear_caches",
    "cluster",
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
    "export_c",
    "export_cuda",
    "fori_loop",
    "grad",
    "hessian",
    "history",
    "hvp",
    "inputs",
    "jacobian",
    "jit",
    "jvp",
    "load",
    "map",
    "name_scope",
    "no_retrace",
    "print",
    "profile",
    "random",
    "replicate",
    "save",
    "scan",
    "stop_gradient",
    "summary",
    "switch",
    "to_onnx",
    "train",
    "value_and_grad",
    "vectorize",
    "vjp",
    "vmap",
    "wheel_stub",
    "while_loop",
    "wrap_function",
]


if not TYPE_CHECKING:  # checkers are to find names that are not there

    def __getattr__(name: str) -> Any:
        if name in ("inputs", "random", "summary"):
            return importlib.import_module(f"fusec.{name}")
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
    if name.startswith("_"):  # inspectors ask every module for some; the search takes milliseconds
        raise AttributeError(f"module 'fusec' has no attribute {name!r}")
    raise importlib.import_module("fusec.api.absent_names").absent(name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Importing the submodule ``fusec.jit`` must not hide the function of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _LAZY and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
