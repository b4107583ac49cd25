"""A control node as a compiled function: its structured program, printed and compiled."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

from fusec import config
from fusec.codegen.cpu.abi import nest_block, open_block
from fusec.codegen.cpu.compile import compile_forms
from fusec.codegen.cpu.emitter import with_weights
from fusec.codegen.structured.memory import Strides
from fusec.codegen.structured.program import StructuredProgram, build_program
from fusec.codegen.structured.verify import verify
from fusec.core import locks
from fusec.core.display import progress
from fusec.ir import Node
from fusec.ops.calls.subgraph_ops import lane_count

from ...machine_code import unpredictable
from ...machine_code.code_cache import CodeCache
from ...machine_code.llvm import NativeCode, compile_ir
from ...machine_code.native_nest import CompileStats
from ...plan.control_program import ControlProgram, LoopNest
from .frame import Frame
from .polls import BUDGET_NS, before_work
from .printer import print_block

NAME = "run"
LOOP_SPEED = 3  # LLVM's own pipeline, its vectoriser included: scalar loops are emitted as they are
BRANCH_SPEED = 2  # code that runs once
# An unrolled loop of many branches makes a long function that is no hot loop, and LLVM's time grows
# faster than its length: 2.8 MB of text took 8.5 s at speed 3, 4.5 s at this one.
LONG_TEXT, LONG_SPEED = 500_000, 1

_codes: CodeCache[str, NativeCode] = CodeCache()
_lock = locks.Lock()


def compile_control(
    node: Node, strides: Sequence[Strides], stats: CompileStats
) -> ControlProgram:
    """The node as one function; ``strides`` are those of its operands in bytes.

    Raises `NotNativeError` where a part can only run step by step.
    """
    start = time.perf_counter()
    progress.stage(f"native code of {node.name}")
    program = build_program(node, strides)
    if config.verify:
        verify(program)
    frame = printed(program)
    stats.codegen_ms += 1e3 * (time.perf_counter() - start)
    codes = compile_forms([use.largest for use in frame.nests], stats)
    code = _compiled(frame, LOOP_SPEED if frame.has_loops else BRANCH_SPEED, stats)
    nests = [LoopNest(use.largest, use.params, native, nest_block, open_block)
             for use, native in zip(frame.nests, codes, strict=True)]
    return ControlProgram(node, code.address(NAME), code, frame.words, nests, program.exits,
                          program.copied, program.sites, frame.passed,
                          lambda: build_program(node, strides), program.may_outgrow,
                          program.is_divisible, frame.lanes_together,
                          "; ".join(dict.fromkeys(frame.lanes)))


def printed(program: StructuredProgram, is_noted: bool = False) -> Frame:
    """The function's frame with all statements; ``is_noted``: which lines are of which statement is
    noted in ``em.of_lines``."""
    frame = Frame(program.exits, outer=program.outer, has_loops=program.has_loops,
                  lane_count=lane_count(program.node))
    frame.em.origins = {} if is_noted else None
    if program.is_divisible:
        before_work(frame, str(BUDGET_NS + 1))  # other threads have lanes to do
    print_block(frame, program.body)
    return frame


def _compiled(frame: Frame, speed: int, stats: CompileStats) -> NativeCode:
    text = _module(frame)
    links = frame.em.links  # the text has their symbols, which depend on their contents
    key = hashlib.sha256(text.encode()).hexdigest()
    with _lock:
        code = _codes.get(key)
        if code is None:
            start = time.perf_counter()
            progress.stage(f"LLVM on {len(text):,} characters of a loop or branch",
                           is_long=len(text) > LONG_TEXT)
            speed = LONG_SPEED if len(text) > LONG_TEXT else LOOP_SPEED if links else speed
            code = _codes.add(key, compile_ir(text, speed, links))
            stats.llvm_ms += 1e3 * (time.perf_counter() - start)
        return code


def clear_cache() -> None:
    """Forget compiled functions; plans keep those that they use."""
    with _lock:
        _codes.clear()


def _module(frame: Frame) -> str:
    em, function = frame.em, frame.text(NAME)
    parts = [*sorted(em.declarations), *em.functions.values(), function]
    if frame.lanes and frame.lanes_together == 1:
        parts.insert(0, unpredictable.MARK)
    return with_weights("\n\n".join(parts))


__all__ = ["compile_control"]
