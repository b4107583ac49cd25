"""Branches, loops and other steps that no nest computes, as one kernel each: `..persistent`."""

from __future__ import annotations

from fusec.core.records import dataclass

from ...exported.failures import failures_of_exit
from ...exported.parts import CheckFailure
from ...structured.calls.call_statements import NodeCall
from ...structured.memory import View, is_zero
from ...structured.not_native import NotNativeError
from ...structured.program import StructuredProgram
from ..persistent.launch_shape import LaunchShape
from ..persistent.program import printed, written
from ..persistent.program_kernel import ProgramKernel

_UNLIMITED = 1 << 30


@dataclass(frozen=True)
class ExportedLoop:
    """A step's kernel.  ``blocks``: as many as it has use for, of those that the device has room
    for at once; ``copies``: the results, by number, that begin as copies of an operand."""

    step: NodeCall
    made: ProgramKernel
    blocks: int
    threads: int
    shared: int
    copies: tuple[tuple[int, int], ...]

    @property
    def failures(self) -> list[CheckFailure]:
        """By number of the exit what is said."""
        made = []
        for exit_ in self.made.program.exits:
            failures = failures_of_exit(exit_)
            texts = dict.fromkeys(f.text for f in failures)
            made.append(CheckFailure(", or ".join(texts), failures[0].loc))
        return made

    @property
    def state_bytes(self) -> int:
        return 8 * self.made.state_words


class _AnyDevice:
    """The room that a device has, which is asked for at the launch."""

    def resident_blocks(self, *launch: object) -> int:
        return _UNLIMITED


def skipped_where_failed(text: str) -> str:
    """The kernel's text with two more parameters, the words of checks and how many they are: where
    one has failed it does nothing, for what it would read may keep it running for ever."""
    head, mark, body = text.partition(") {\n")
    return (f"{head}{', ' if not head.endswith('(') else ''}const char *checks, i64 count{mark}"
            "  for (i64 k = 0; k < count; ++k) if (load<i64>(checks + 8 * k) != 0) return;\n"
            f"{body}")


def exported_loop(step: NodeCall, program: StructuredProgram, stem: str) -> ExportedLoop:
    """The kernel; ``stem`` begins the names of its functions.  Raises `NotNativeError` for what one
    kernel cannot do."""
    made = printed(program, stem)
    kernel = written(made, stem).kernel
    if any(source[0] in ("fresh", "lent") for source in made.arguments) or not all(
            grid.form.is_static for grid in made.grids):
        raise NotNativeError("a size that only the run knows, on a CUDA device")
    for source in made.arguments:
        places = {"operand": step.operands, "input": step.operands}.get(source[0])
        if places is not None and not _begins_its_memory(places[source[1]]):
            raise NotNativeError("an operand within an array, on a CUDA device")
    blocks, threads, shared = LaunchShape(made, _AnyDevice(), None, kernel).at({})
    return ExportedLoop(step, made, blocks, threads, shared, tuple(_copies(step, program)))


def _copies(step: NodeCall, program: StructuredProgram) -> list[tuple[int, int]]:
    copies = []
    for number, source in enumerate(program.copied):
        target = step.results[number]
        if source < 0 or target.is_cell:
            continue
        operand = step.operands[source]
        if isinstance(operand, View):
            if operand.memory is target.memory:
                continue
            if operand.views or not operand.is_dense or operand.is_cell:
                raise NotNativeError("a copy of elements that lie apart, on a CUDA device")
        copies.append((number, source))
    return copies


def _begins_its_memory(place: object) -> bool:
    return isinstance(place, View) and is_zero(place.offset) and is_zero(place.element)


__all__ = ["ExportedLoop", "exported_loop"]
