"""Persistent kernels in prepared calls: a launch whose arguments are addresses of the call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fusec.codegen.structured.memory import View, is_zero
from fusec.core.records import dataclass

from ...structured.calls.call_statements import NodeCall
from ..kernels.launch_plan import Layout
from .persistent_call import PersistentProgram
from .program_kernel import KernelArgument

_OF_CALLS = frozenset({"fresh", "lent"})  # memory of sizes that only the call knows


@dataclass(frozen=True)
class PreparedLoop:
    """A branch or loop of a call, launched with this ``layout``; ``copies``: the results that begin
    as copies, with the operand of each.

    ``state`` and ``scratch`` are bytes that it needs beside its arrays, the former 0 at first.
    """

    step: NodeCall
    program: PersistentProgram
    layout: Layout
    copies: tuple[tuple[View, View | np.ndarray], ...]

    @property
    def state(self) -> int:
        made = self.program.made
        return 8 * made.state_words if ("state",) in made.arguments else 0

    @property
    def scratch(self) -> int:
        return self.program.made.scratch_bytes

    @property
    def may_leave(self) -> bool:
        """Whether an exit, or the host, may end it."""
        return bool(self.program.made.exits)

    @property
    def has_exits(self) -> bool:
        """Whether a check in it may fail."""
        return any(number >= 0 for number in self.program.made.exits)

    @property
    def is_watched(self) -> bool:
        return ("flag",) in self.program.made.arguments

    def arguments(
        self, address: Callable[[View], Any], own: Callable[[str], Any]
    ) -> Iterator[Any]:
        """Those of the launch: of arrays and numbers an ``address``; "state", "exit", "scratch" and
        "flag" are the call's ``own``."""
        for argument in self.program.made.arguments.values():
            yield self._argument(argument, address, own)

    def _argument(
        self, argument: KernelArgument, address: Callable[[View], Any], own: Callable[[str], Any]
    ) -> Any:
        kind, *rest = argument.source
        if kind in ("operand", "input"):
            return address(self.step.operands[rest[0]])
        if kind in ("target", "result"):
            return address(self.step.results[rest[0]])
        if kind == "bound":
            return int(self.step.operands[rest[0]])
        return own(kind) if argument.of is None else argument.of({})


def _begins_its_memory(place: Any) -> bool:
    return isinstance(place, View) and not place.views and (
        is_zero(place.offset) and is_zero(place.element))


def _is_copied(operand: Any) -> bool:
    """Whether it lies as its copy."""
    return isinstance(operand, View) and not operand.views and not operand.is_cell and (
        operand.is_dense)


def prepared_loop(step: NodeCall) -> PreparedLoop | str:
    """The loop of a step, or why calls cannot have it."""
    run, name = step.run, step.node.op
    program = getattr(run.program, "code", None) if run is not None else None
    if run is None or not isinstance(program, PersistentProgram):
        return f"{name} is a program of its own"
    made = program.made
    if any(source[0] in _OF_CALLS for source in made.arguments) or any(
            grid.is_of_call for grid in made.grids):
        return f"sizes of {name} are known when it runs"
    read = [o for n, o in enumerate(step.operands)
            if ("operand", n) in made.arguments or n in made.numbers]
    if step.saved or not all(_begins_its_memory(o) for o in (*read, *step.results)):
        return f"{name} changes what a call has to keep, or reads a part of an array"
    copies = []
    for number, source in enumerate(program.copied):
        target = step.results[number]
        if source < 0 or target.is_cell:
            continue
        operand = step.operands[source]
        if isinstance(operand, View) and operand.key == target.key:
            continue  # in place
        if not target.is_dense or not (isinstance(operand, np.ndarray) or _is_copied(operand)):
            return f"{name} begins with a copy of elements that lie apart"
        copies.append((target, operand))
    if any(target.memory.origin == "operand" for target in step.results):
        return f"{name} changes what a call has to keep"
    blocks, threads, shared = program.layout_of(step.operands)
    layout = Layout(blocks, (threads, 1), 0, shared=shared)
    return PreparedLoop(step, program, layout, tuple(copies))
