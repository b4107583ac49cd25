"""Kernels that a program runs: each nest's kernel as a function that the one block calls.

A nest's text speaks of a grid of blocks; here their number is a parameter, and the one block does
them in turn.  It has as many threads as each nest's blocks have.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fusec.codegen.backend import NotNativeError
from fusec.codegen.cuda.compiled_nests import CudaForm, fixed_argument, raw_bits
from fusec.codegen.structured.memory import Constant, Register, View
from fusec.codegen.structured.statements import NestUse, RunKernel

from ..kernels.kernel_sources import WrittenKernel
from ..kernels.launch_plan import Layout, Slot
from .frame import LoopFrame, require_plain

THREADS = 256
MOST_POINTS = 1 << 16  # of a nest: more take longer in one block than a launch over all costs
_WORDS = {"blockIdx.x": "my_block", "gridDim.x": "all_blocks", "threadIdx.x": "my_x",
          "threadIdx.y": "my_y", "blockDim.x": "all_x", "blockDim.y": "all_y"}
_HEAD = re.compile(r'extern "C" __global__ void __launch_bounds__\(\d+\) (\w+)\(')


def run_kernel(frame: LoopFrame, statement: RunKernel) -> None:
    """Its nests in order; numbers are passed through words."""
    places = [_operand(frame, x) for x in statement.operands]
    words = {}
    for result in statement.results:
        if isinstance(result, Register):
            require_plain(result.dtype)
            words[result] = frame.word_address(frame.word())
        places.append(words[result] if isinstance(result, Register) else frame.place(result))
    frame.join()
    for use in statement.nests:
        _run(frame, use, CudaForm(use.form, statement.kernel), places)
    for result, word in words.items():
        frame.values[result] = frame.load(result.dtype, word)


def _operand(frame: LoopFrame, x: Register | Constant | View) -> str:
    if isinstance(x, View):
        return frame.place(x)
    require_plain(x.dtype)
    address = frame.word_address(frame.word())
    frame.store(address, frame.operand(x))
    return address


def _run(frame: LoopFrame, use: NestUse, form: CudaForm, places: Sequence[str]) -> None:
    if use.exit >= 0:
        raise NotNativeError("a kernel that checks in a loop on a CUDA device")
    if not form.is_static:
        raise NotNativeError("a kernel of sizes that only the run knows, on a CUDA device")
    if form.points > MOST_POINTS:
        raise NotNativeError("a kernel too large for one block of a CUDA device")
    memory: dict[str, str] = {}
    for written in frame.functions_of(form):
        layout = written.geometry(form.loops)
        if layout.threads[0] * layout.threads[1] != THREADS or layout.scratch:
            raise NotNativeError("a kernel that needs more than one block of a CUDA device")
        if layout.partials and "partials" not in memory:
            memory["partials"] = frame.address("temp", layout.partials)
        frame.shared = max(frame.shared, layout.shared)
        args = [_argument(frame, slot, form, layout, places, memory) for slot in written.slots]
        _call(frame, written, layout, [
            f"i32({arg})" if param.kind == "int32" else arg
            for arg, param in zip(args, written.kernel.params, strict=True)])


def _call(
    frame: LoopFrame, written: WrittenKernel, layout: Layout, args: Sequence[str]
) -> None:
    blocks = frame.number("number", layout.blocks)
    wide = frame.number("number", layout.threads[0])
    with frame.em.block(f"for (int block = 0; block < int({blocks}); ++block)"):
        frame.em.line(f"{written.kernel.name}(block, int({blocks}), int({wide}), "
                      f"{', '.join(args)});")
        frame.join()


def _argument(
    frame: LoopFrame, slot: Slot, form: CudaForm, layout: Layout, places: Sequence[str],
    memory: dict[str, str],
) -> str:
    """The text of a parameter: an address, or a number that the host passes."""
    kind = str(slot[0])
    if kind == "operand":
        operand = form.loops.operands[int(slot[1])]
        return f"{places[operand.buffer]} + {frame.size(operand.offset)}"
    if kind in memory:
        return memory[kind]
    params = [raw_bits(p, {}) for p in form.kernel.params]
    return frame.number("number", fixed_argument(slot, form.loops, params, layout))


def device_function(written: WrittenKernel) -> str:
    """A kernel's text as a function of the number of a block, of blocks, and of threads in x."""
    text = _HEAD.sub(r"__device__ __noinline__ void \1(const int my_block, const int all_blocks, "
                     r"const int all_x, ", written.text, count=1)
    head, brace, body = text.partition("{\n")
    for word, name in _WORDS.items():
        body = body.replace(word, name)
    threads = ("  const int my_x = int(threadIdx.x) % all_x, my_y = int(threadIdx.x) / all_x;\n"
               "  const int all_y = int(blockDim.x) / all_x;\n"
               "  static_cast<void>(my_x), static_cast<void>(my_y), static_cast<void>(all_y);\n")
    return head + brace + threads + body
