"""The CPU back end: loops of LLVM IR, called by address."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.ir import Node

from ..kernels.loop_ir import Kernel, Param
from ..kernels.specialise import LoopForm, specialise
from ..machine_code.native_backend import NativeBackend
from ..machine_code.native_nest import CompileStats, NativeNest, NestBlock
from ..plan.block_templates import OpenBlock
from . import abi, compile
from .scalars.scalar_ops import supports

if TYPE_CHECKING:
    from ..exported.parts import CField, ExportedFunction
    from ..machine_code.targets import CpuTarget
    from ..plan.control_program import ControlProgram
    from .exported.library import LibraryObjects

_LOOPS = "fusec.codegen.cpu.loops.program"
_LIBRARY = "fusec.codegen.cpu.exported.library"


class CpuBackend(NativeBackend):
    """See the module docstring."""

    name = "cpu"

    def supports(self, op: str, dtype: np.dtype) -> bool:
        return supports(op, dtype)

    def specialise(self, kernel: Kernel, strides: Sequence[tuple[int, ...]]) -> list[LoopForm]:
        return [specialise(kernel, nest, strides) for nest in kernel.nests]

    def compile(self, forms: Sequence[LoopForm], stats: CompileStats) -> list[NativeNest]:
        return compile.compile_forms(forms, stats)

    def block(self, form: LoopForm, params: tuple[Param, ...]) -> NestBlock:
        return abi.nest_block(form, params)

    def nest_on_disk(self, key: str, symbol: str, has_finish: bool) -> NativeNest | None:
        return compile.nest_on_disk(key, symbol, has_finish)

    def open_block(self, form: LoopForm, params: tuple[Param, ...]) -> OpenBlock:
        return abi.open_block(form, params)

    def compile_control(
        self, node: Node, strides: Sequence[tuple[int, ...]], stats: CompileStats
    ) -> ControlProgram:
        return _loops().compile_control(node, strides, stats)

    def library(
        self, name: str, functions: Sequence[ExportedFunction], fields: Sequence[CField],
        targets: Sequence[CpuTarget], threads: str,
    ) -> LibraryObjects:
        return importlib.import_module(_LIBRARY).library_objects(
            name, functions, fields, targets, threads)

    def clear(self) -> None:
        compile.clear_cache()
        if _LOOPS in sys.modules:
            sys.modules[_LOOPS].clear_cache()


def _loops() -> Any:
    """The compiler of loops: programs without any do not load it, a tenth of a first call."""
    from . import loops

    return loops


BACKEND = CpuBackend()
