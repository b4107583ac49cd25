"""A branch or loop as one kernel of one block."""

from __future__ import annotations

import time
from collections.abc import Sequence

from fusec import config
from fusec.codegen.backend import NotNativeError
from fusec.codegen.cuda.module import CudaKernel, CudaModule, CudaParam
from fusec.codegen.structured.memory import Strides
from fusec.codegen.structured.program import build_program
from fusec.codegen.structured.statements import Block, NestUse, RunKernel, blocks_of
from fusec.codegen.structured.verify import verify
from fusec.ir import Node

from ...machine_code.native_nest import CompileStats
from ...plan.control_program import ControlCode
from ..driver.driver import Driver
from ..kernels.kernel_sources import source_of
from ..kernels.kernel_texts import KernelTexts
from ..scalars.scalar_functions import definition
from .frame import LoopFrame
from .kernels import THREADS, device_function
from .printer import print_block
from .run import LoopCall

NAME = "run"
MOST_PARAMETERS = 400  # of 4 KiB that a launch may pass
# Elements that a copy between two places of one array moves, from the end that is safe.
_MOVE = """\
template <class T> FUSEC_INLINE void move_elements(char *to, const char *from, i64 count) {
  const i64 size = sizeof(T);
  if (to < from) {
    for (i64 i = 0; i < count; ++i) store<T>(to + i * size, load<T>(from + i * size));
  } else {
    for (i64 i = count - 1; i >= 0; --i) store<T>(to + i * size, load<T>(from + i * size));
  }
}"""


def compile_control(
    node: Node, strides: Sequence[Strides], driver: Driver, stats: CompileStats
) -> ControlCode:
    """The node as a kernel of one block; raises `NotNativeError` where one does not suffice."""
    start = time.perf_counter()
    program = build_program(node, strides)
    if program.may_outgrow:
        raise NotNativeError("a result of any size")
    if config.verify:
        verify(program)
    nests = _nests(program.body)
    frame = LoopFrame(program.exits, program.outer, THREADS if nests else 1)
    print_block(frame, program.body)
    module = _module(frame)
    emitted = time.perf_counter()
    loaded = driver.compile(module)
    stats.codegen_ms += 1e3 * (emitted - start)
    stats.add(driver.compiler, 1e3 * (time.perf_counter() - emitted))
    call = LoopCall(program, frame, driver, loaded, module.kernels[0])
    return ControlCode(node, call, nests, program.copied, KernelTexts(module),
                       lambda: str(build_program(node, strides)))


def _nests(block: Block) -> list[NestUse]:
    """All nests that statements run, those inside of others included."""
    found: list[NestUse] = []
    for x in block:
        if isinstance(x, RunKernel):
            found += x.nests
        for inner in blocks_of(x):
            found += _nests(inner)
    return found


def _module(frame: LoopFrame) -> CudaModule:
    params = [CudaParam("words", "pointer", is_written=True), CudaParam("numbers", "pointer")]
    params += [CudaParam(f"a{k}", "pointer", is_written=kind != "operand")
               for k, (kind, _) in enumerate(frame.addresses)]
    if len(params) > MOST_PARAMETERS:
        raise NotNativeError("a loop with more arrays than a CUDA kernel takes")
    written = [w for each in frame.nests.values() for w in each]
    math = [*(r for w in written for r in w.math), *frame.em.math]
    functions = [*(f for w in written for f in w.functions), *map(definition, frame.em.functions)]
    source = source_of(math, [_MOVE, *map(device_function, written), _text(frame, params)],
                       functions)
    shared = sum(w.kernel.static_shared for w in written)
    kernel = CudaKernel(NAME, tuple(params), frame.threads, frame.threads > 1, shared)
    return CudaModule(source, (kernel,))


def _text(frame: LoopFrame, params: Sequence[CudaParam]) -> str:
    listed = ", ".join(f"{'' if p.is_written else 'const '}char *{p.name}" for p in params)
    return "\n".join([
        f'extern "C" __global__ void __launch_bounds__({frame.threads}) {NAME}({listed}) {{',
        *(f"  {line}" for line in frame.head), *frame.em.lines, "}"])
