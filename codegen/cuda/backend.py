"""The CUDA back end: nests as CUDA C++, compiled and launched by a driver."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.codegen.backend import Backend, Strides
from fusec.codegen.structured.not_native import NotNativeError
from fusec.codegen.structured.program import build_program
from fusec.core import locks
from fusec.ir import Node
from fusec.ir.lazy_values import lazy
from fusec.ops import get
from fusec.ops.calls.scalar_calls import CALLS
from fusec.ops.rows.windows import is_made_anywhere

from ..kernels.kernel_nodes import (
    is_control_of,
    is_of_kernels,
    is_small_control,
    why_not_control,
)
from ..kernels.loop_ir import Kernel
from ..kernels.specialise import specialise
from ..machine_code.code_cache import CodeCache
from ..machine_code.native_nest import CompileStats
from ..plan.control_program import ControlCode
from .compiled_nests import CudaForm, LoadedKernel, NestCall, NestKernels, code_key
from .driver.driver import Driver
from .joined_call import JoinedCall
from .kernels.joined_nests import index_of, write_joined
from .kernels.kernel_sources import WrittenKernel, module_of, write_form
from .lanes.lane_nodes import lanes_refusal
from .lanes.lane_program import lane_program
from .persistent import choice
from .persistent.program import persistent_program
from .programs.program import launched_program
from .programs.program_text import LibraryAt
from .scalars.scalar_functions import refusal as scalar_refusal
from .scalars.scalar_ops import supports


class CudaBackend(Backend):
    """Kernels for the devices of one driver, which is made when something is first compiled."""

    def __init__(self, name: str, make_driver: Callable[[], Driver]) -> None:
        self.name, self._make_driver = name, make_driver
        self.kernels: CodeCache[tuple, NestKernels] = CodeCache()
        self._lock = locks.Lock()

    @lazy
    def driver(self) -> Driver:
        """The driver, which compiles and launches its kernels, and owns their memory."""
        return self._make_driver()

    def supports(self, op: str, dtype: np.dtype) -> bool:
        return supports(op, dtype)

    def has_kernel(self, node: Node) -> bool:
        """Elementwise nodes, but for scalar functions that have no CUDA C++; branches and loops
        of these."""
        if node.attrs.get("lanes"):
            return not self.refusal(node)
        is_one = (is_of_kernels(node) or is_made_anywhere(node)) and not self.refusal(node)
        return is_one or is_control_of(node, self.has_kernel)

    def refusal(self, node: Node) -> str:
        if node.attrs.get("lanes"):
            return lanes_refusal(node, self.refusal)
        if get(node.op).is_control:
            return why_not_control(node, self.has_kernel)
        inside = node.attrs["body"].nodes if node.op == "Fused" else (node,)
        called = (n.attrs["function"] for n in inside if get(n.op).scalar in CALLS)
        return next(filter(None, map(scalar_refusal, called)), "")

    def leaves_whole(self, node: Node) -> bool:
        return is_small_control(node)

    def specialise(self, kernel: Kernel, strides: Sequence[Strides]) -> list[CudaForm]:
        return [CudaForm(specialise(kernel, nest, strides), kernel) for nest in kernel.nests]

    def compile(self, forms: Sequence[CudaForm], stats: CompileStats) -> list[NestCall]:
        if not forms:
            return []
        driver = self.driver
        keys = [code_key(form) for form in forms]
        with self._lock:
            known = {key: kernels for key in keys if (kernels := self.kernels.get(key))}
            missing = {k: f for k, f in zip(keys, forms, strict=True) if k not in known}
            stats.compiled += len(missing)
            stats.reused += len(forms) - len(missing)
            if missing:
                for key, kernels in _loaded(missing, driver, stats).items():
                    known[key] = self.kernels.add(key, kernels)
            return [NestCall(f, known[k], self.driver_for(f.kernel))
                    for k, f in zip(keys, forms, strict=True)]

    def driver_for(self, kernel: Kernel) -> Any:
        """The driver for one kernel of a program, which says whose fault a launch is."""
        return self.driver

    def joined(self, forms: Sequence[CudaForm], stats: CompileStats) -> JoinedCall:
        """The nests of one kernel, that `may_be_joined`, as one launch."""
        index = index_of(form.index for form in forms)
        start, driver = time.perf_counter(), self.driver
        made = write_joined([form.loops for form in forms], index)
        emitted = time.perf_counter()
        loaded = driver.compile(made.module)
        stats.codegen_ms += 1e3 * (emitted - start)
        stats.add(driver.compiler, 1e3 * (time.perf_counter() - emitted))
        return JoinedCall(forms, made, loaded, self.driver_for(forms[0].kernel))

    def compile_control(
        self, node: Node, strides: Sequence[Strides], stats: CompileStats
    ) -> ControlCode:
        """One kernel that does all of it, or text that launches its kernels."""
        program = build_program(node, strides)
        if program.may_outgrow:
            raise NotNativeError("a result of any size, on a CUDA device")
        if node.attrs.get("lanes"):
            return lane_program(program, strides, self, stats)
        reason = ""
        if choice.forced != "launched":
            try:
                return persistent_program(program, strides, self, stats)
            except NotNativeError as error:
                reason = str(error)
        try:
            return launched_program(program, strides, self, stats, reason)
        except NotNativeError as error:
            raise NotNativeError(f"{error}{reason and f'; as one kernel: {reason}'}") from error

    def library_at(self, node: Node) -> LibraryAt:
        """The device's function for a library call in a program: see `ProgramText`."""
        raise NotNativeError(f"a call of Python, of {node.op}, in a loop on a CUDA device")

    def wait(self) -> None:
        self.driver.synchronize()

    def clear(self) -> None:
        with self._lock:
            self.kernels.clear()


def _loaded(
    forms: dict[tuple, CudaForm], driver: Driver, stats: CompileStats
) -> dict[tuple, NestKernels]:
    """All forms in one module."""
    start = time.perf_counter()
    written: dict[tuple, list[WrittenKernel]] = {
        key: write_form(form.loops, form.index, f"nest_{number}")
        for number, (key, form) in enumerate(forms.items())}
    module = module_of([w for each in written.values() for w in each])
    emitted = time.perf_counter()
    loaded = driver.compile(module)
    stats.codegen_ms += 1e3 * (emitted - start)
    stats.add(driver.compiler, 1e3 * (time.perf_counter() - emitted))
    return {key: NestKernels(LoadedKernel(loaded, w.kernel, w) for w in each)
            for key, each in written.items()}
