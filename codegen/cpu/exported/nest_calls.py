"""Kernels of an exported call: each of their nests is a call of its machine code."""

from __future__ import annotations

from fusec.core.records import replace
from fusec.errors import InternalError
from fusec.ir import Node
from fusec.ir.sizes.dims import Size
from fusec.ir.sizes.symbolic_numbers import stored

from ...exported.failures import failures_of
from ...kernels.loop_ir import Param
from ...kernels.specialise import LoopForm, tasks_of
from ...machine_code.native_nest import NONE, NestBlock
from ...structured.kernel_statements import NestUse, RunKernel
from ..abi import BYTES_OF_A_PARTIAL, BlockLayout, open_block
from ..emitter import literal, memory_type
from ..size_text import F64
from .call_text import CallText
from .workspace import CHECK, STATUS

MANY = 1 << 62
# In ns: work that one thread takes at a time, and below which one thread does all; a point's least.
GRAIN_NS, THRESHOLD_NS, LEAST_NS = 20_000.0, 32_768.0, 1e-3


def run_kernel(text: CallText, step: RunKernel) -> None:
    """The nests of a kernel in order, on the block that all kernels of the call use in turn."""
    addresses = [text.address(place) for place in step.places]
    checks = step.kernel.has_checks
    if checks:
        _clear_record(text)
    for use in step.nests:
        layout = BlockLayout.of(use.form)
        text.words = max(text.words, layout.size)
        fill_block(text, "%words", use.form, use.params)
        for number, operand in enumerate(use.form.operands):
            address = addresses[operand.buffer]
            if stored(operand.offset) != 0:
                address = text.em.offset(address, text.number(operand.offset))
            _store(text, "%words", number, f"ptr {address}")
        call_nest(text, use, "%words")
    if checks:
        _leave_if_failed(text, step)


def _clear_record(text: CallText) -> None:
    em = text.em
    for word, value in ((STATUS, 0), (1, 0), (CHECK, -1)):
        at = em.value(f"getelementptr i64, ptr %workspace, i64 {word}")
        em.line(f"store i64 {value}, ptr {at}")


def _leave_if_failed(text: CallText, step: RunKernel) -> None:
    em = text.em
    status = em.value("load i64, ptr %workspace")

    def code() -> str:
        at = em.value(f"getelementptr i64, ptr %workspace, i64 {CHECK}")
        return em.value(f"load i64, ptr {at}")

    text.fails(em.value(f"icmp ne i64 {status}, 0"), code, failures_of(_node_of(text, step)))


def _node_of(text: CallText, step: RunKernel) -> Node:
    """The node that a kernel is of."""
    for node in text.variant.call_plan.graph.nodes:
        if node.name == step.kernel.name:
            return node
    raise InternalError(f"no node is of the kernel {step.kernel.name}")


def fill_block(
    text: CallText, block: str, form: LoopForm, params: tuple[Param, ...], largest: bool = False
) -> None:
    """Store a nest's argument block, all but the addresses of its operands.

    ``largest``: the block of a nest in a loop, which writes sizes of the run by itself.
    """
    made, layout = open_block(form, params), BlockLayout.of(form)
    sized = dict(zip(made.slots, made.sizes, strict=True))
    numbered = {layout.param(k): param for k, param in enumerate(params)}
    for slot in range(len(form.operands), layout.size):
        if slot in sized:
            _store(text, block, slot, f"i64 {text.number(sized[slot])}")
        elif slot in numbered:
            _store_param(text, block, slot, numbered[slot], int(made.block.words[slot]))
        else:
            _store(text, block, slot, f"i64 {int(made.block.words[slot])}")
    if made.block.partials != NONE:
        tasks = text.number(tasks_at(form))
        _store(text, block, layout.task_count, f"i64 {tasks}")
        reductions = made.block.partial_bytes // BYTES_OF_A_PARTIAL
        place = text.workspace.block(tasks_at(form) * (BYTES_OF_A_PARTIAL * reductions))
        _store(text, block, layout.partial_results, f"ptr {place}")
    if made.block.status != NONE and not largest:
        text.workspace.may_fail = True
        record = text.em.value("getelementptr i64, ptr %workspace, i64 1")
        _store(text, block, layout.status, "ptr %workspace")
        _store(text, block, layout.record, f"ptr {record}")


def _store_param(text: CallText, block: str, slot: int, param: Param, bits: int) -> None:
    if stored(param.value) is param.value:
        _store(text, block, slot, f"i64 {bits}")
        return
    value = text.bits(param.value, param.dtype)
    _store(text, block, slot, "i64 0")
    _store(text, block, slot, f"{memory_type(param.dtype)} {value.text}")


def _store(text: CallText, block: str, slot: int, value: str) -> None:
    em = text.em
    em.line(f"store {value}, ptr {em.value(f'getelementptr i64, ptr {block}, i64 {slot}')}")


def tasks_at(form: LoopForm) -> Size:
    """The number of tasks, as an expression of the sizes of arguments."""
    return tasks_of(_at_arguments(form))


def _at_arguments(form: LoopForm) -> LoopForm:
    """The form with expressions of the sizes of arguments."""
    return replace(form, extents=tuple(map(stored, form.extents)))


def call_nest(text: CallText, use: NestUse, block: str) -> None:
    """Call a nest's code on its block."""
    em, form = text.em, use.form
    name, tasks = text.level.nest(form), text.number(tasks_at(form))
    text.externals.add(name)
    nest = open_block(form, use.params).block
    if text.threads == "none" or nest.in_order:
        em.line(f"call void @{name}(ptr {block}, i64 0, i64 {tasks})")
    else:
        parallel = f"{text.level.library}.parallel"
        text.externals.add(parallel)
        points = text.number(_at_arguments(form).points)
        em.line(f"call void @{parallel}(ptr @{name}, ptr {block}, i64 {tasks}, "
                f"i64 {_grain(text, nest, points, tasks)})")
    if form.mode == "flat":
        text.externals.add(f"{name}.finish")
        em.line(f"call void @{name}.finish(ptr {block}, i64 0, i64 1)")


def _grain(text: CallText, nest: NestBlock, points: str, tasks: str) -> str:
    """How many tasks a thread takes at a time: all, where they are little work."""
    em = text.em
    work = em.value(f"fmul double {em.value(f'sitofp i64 {points} to double')}, "
                    f"{literal(F64, max(nest.ns, LEAST_NS))}")
    many = em.value(f"sitofp i64 {tasks} to double")
    grain = em.value(f"fdiv double {em.value(f'fmul double {many}, {literal(F64, GRAIN_NS)}')}, "
                     f"{work}")
    few = em.value(f"fcmp olt double {work}, {literal(F64, THRESHOLD_NS)}")
    all_ = em.value(f"select i1 {few}, double {many}, double {grain}")
    em.declare("declare double @llvm.minnum.f64(double, double)")
    bounded = em.value(f"call double @llvm.minnum.f64(double {all_}, double {many})")
    together = nest.together
    groups = em.value(f"sdiv i64 {em.value(f'fptosi double {bounded} to i64')}, {together}")
    return em.mul(em.add(groups, 1), together) if together > 1 else em.add(groups, 1)
