"""The text behind ``fusec.explain(f, *args)``: its passes, kernels and assumptions.

It reads the stages through small protocols, so that it imports none of them; see `Explanation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

from fusec.core.display.amounts import bytes_text, count_text
from fusec.core.display.notebook import Shown, folded, headline
from fusec.core.locations import places_text, titled
from fusec.core.records import dataclass
from fusec.ir.graph import Loc

from .broadcasts import SilentBroadcast
from .passes_report import BodyInfo, PassRun, body_text, passes_text
from .variable_records import VariableRecord, table

Direction = Literal["in", "out", "inout"]


class KernelOperand(NamedTuple):
    """An array that a kernel reads or writes: name, type (``f64[n]``), bytes moved, direction."""

    name: str
    dtype: str
    nbytes: int
    direction: Direction


class KernelInfo(Protocol):
    """One fused loop nest: the user's lines in it, its operands, scalar operations per element."""

    @property
    def name(self) -> str: ...
    @property
    def lines(self) -> Sequence[Loc]: ...
    @property
    def operands(self) -> Sequence[KernelOperand]: ...
    @property
    def ops(self) -> int: ...


class BoundaryInfo(Protocol):
    """An edge between two kernels that was not fused, and the reason.

    A plain string, written as it is, may stand in its place.
    """

    @property
    def producer(self) -> str: ...
    @property
    def consumer(self) -> str: ...
    @property
    def reason(self) -> str: ...


class ExternInfo(Protocol):
    """A library call: the function called, the user's line, why it is not in a kernel."""

    @property
    def name(self) -> str: ...
    @property
    def loc(self) -> Loc | None: ...
    @property
    def reason(self) -> str: ...


class ControlInfo(ExternInfo, Protocol):
    """A branch or loop: the user's line, how it runs and why, the passes of its sub-graphs."""

    @property
    def passes(self) -> Sequence[BodyInfo]: ...


class Assumed(NamedTuple):
    """Values that were read from Python while tracing: the trace holds as long as it stays so."""

    path: str
    value: str
    loc: Loc | None = None


@dataclass(frozen=True)
class Explanation(Shown):
    """The parts of an explanation; empty parts are said to be empty or left out."""

    function: str
    loc: Loc | None = None
    signature: str = ""
    trace_key: str = ""
    retrace: str = ""
    passes: Sequence[PassRun] = ()
    kernels: Sequence[KernelInfo] = ()
    boundaries: Sequence[BoundaryInfo | str] = ()
    externs: Sequence[ExternInfo] = ()
    control: Sequence[ControlInfo] = ()
    plan: str = ""
    threads: str = ""
    assumed: Sequence[Assumed] = ()
    devices: Sequence[str] = ()
    broadcasts: Sequence[SilentBroadcast] = ()
    variables: Sequence[VariableRecord] = ()
    products: Sequence[str] = ()

    def __str__(self) -> str:
        return explain_text(self)

    def html(self) -> str:
        summary, *sections = _sections(self)
        parts = [section.partition("\n")[::2] for section in sections]
        return headline(summary) + "".join(
            folded(title, text, title == "kernels") for title, text in parts)


def explain_text(parts: Explanation) -> str:
    """The full explanation, a titled section a part."""
    return "\n\n".join(_sections(parts))


def _sections(parts: Explanation) -> list[str]:
    """Title and lines of each part; the first is the summary, empty ones are left out."""
    kernels, externs = len(parts.kernels), len(parts.externs)
    summary = f"{count_text(kernels, 'kernel')}, {count_text(externs, 'library call')}"
    if parts.control:
        summary += f", {count_text(len(parts.control), 'branch or loop', 'branches and loops')}"
    place = f" ({parts.loc})" if parts.loc else ""
    sections = [
        _section(f"{parts.function}{place}: {summary}", []),
        _section("signature", _lines(parts.signature, _key(parts))),
        _section("why it was traced", _lines(parts.retrace)),
        _section("passes", passes_text(parts.passes).splitlines() if parts.passes else []),
        _section("kernels", _kernels(parts.kernels, bool(parts.control))),
        _section("not fused", _boundaries(parts.boundaries)),
        _section("library calls", [_extern(e) for e in parts.externs]),
        _section("narrow products on a GPU", parts.products),
        _section("branches and loops", [line for c in parts.control for line in _control(c)]),
        _section("broadcasts that make larger arrays", map(str, parts.broadcasts)),
        _section("Variables", table(parts.variables)),
        _section("devices", parts.devices),
        _section("plan", _lines(parts.plan)),
        _section("threads", _lines(parts.threads)),
        _section("assumed, and checked at each call", _assumed(parts.assumed)),
    ]
    head, *rest = sections
    return [head, *(section for section in rest if "\n" in section)]


def _key(parts: Explanation) -> str:
    return f"key: {parts.trace_key}" if parts.trace_key else ""


def _section(title: str, lines: Iterable[str]) -> str:
    return "\n".join([title, *(f"  {line}".rstrip() for line in lines)])


def _lines(*texts: str) -> list[str]:
    return [line for text in texts for line in text.splitlines()]


def _kernels(kernels: Sequence[KernelInfo], in_control: bool = False) -> list[str]:
    if not kernels and in_control:
        return ["none outside branches and loops"]
    if not kernels:
        return ["none: everything is a library call, a constant or an argument passed through"]
    return [line for kernel in kernels for line in kernel_lines(kernel)]


def kernel_lines(kernel: KernelInfo) -> list[str]:
    """A kernel: operations, bytes per operand with totals, and the user's lines it fuses."""
    loaded = sum(o.nbytes for o in kernel.operands if o.direction != "out")
    stored = sum(o.nbytes for o in kernel.operands if o.direction != "in")
    head = (f"{kernel.name}: {count_text(kernel.ops, 'operation')} per element, "
            f"{bytes_text(loaded)} in, {bytes_text(stored)} out")
    return [head, f"  fuses {_places(kernel.lines)}", *_operands(kernel.operands)]


def _operands(operands: Sequence[KernelOperand]) -> list[str]:
    names = max((len(o.name) for o in operands), default=0)
    types = max((len(o.dtype) for o in operands), default=0)
    return [
        f"  {o.direction:5} {o.name:{names}}  {o.dtype:{types}}  {bytes_text(o.nbytes)}"
        for o in operands
    ]


def _places(locs: Iterable[Loc]) -> str:
    return places_text((titled(loc.file), loc.line) for loc in locs) or (
        "no line of yours (made by fusec)")


def _boundaries(boundaries: Sequence[BoundaryInfo | str]) -> list[str]:
    return [
        b if isinstance(b, str) else f"{b.producer} -> {b.consumer}: {b.reason}" for b in boundaries
    ]


def _extern(extern: ExternInfo) -> str:
    return f"{extern.name}{f' at {extern.loc}' if extern.loc else ''}: {extern.reason}"


def _control(control: ControlInfo) -> list[str]:
    """How it runs, and a line a sub-graph: its passes, with what each rewrote."""
    return [_extern(control), *(f"  passes of {body_text(part)}" for part in control.passes)]


def _assumed(values: Sequence[Assumed]) -> list[str]:
    return [f"{v.path} = {v.value}{f' (read at {v.loc})' if v.loc else ''}" for v in values]
