"""Native branches and loops at the sizes of a call: the words of their blocks are substituted,
machine code is the same."""

from __future__ import annotations

from collections.abc import Callable

from fusec.core.records import replace
from fusec.ir import Graph, Node, Value
from fusec.ir.lazy_values import lazy
from fusec.ir.sizes.dims import Size
from fusec.ir.sizes.instantiate import Instantiation

from ..kernels.loop_ir import Param
from ..kernels.specialise import LoopForm
from ..machine_code.native_nest import NestBlock
from .block_templates import form_at, params_at
from .control_program import (
    ControlProgram,
    ErrorExit,
    HostSite,
    HostSize,
    HostValue,
    LoopNest,
    StructuredText,
    Word,
)


class StepNodes:
    """Nodes of steps at the sizes of a call, without the graphs that they are in and hold: what
    they read is stood in for by values of the same types."""

    def __init__(self, instantiation: Instantiation) -> None:
        self._at, self._stood_in = instantiation, dict[Value, Value]()

    def node(self, node: Node) -> Node:
        attrs = {name: self._at.data(value) for name, value in node.attrs.items()
                 if not isinstance(value, Graph)}
        return node.with_(
            inputs=map(self._operand, node.inputs), types=map(self._at.type, node.types),
            attrs=attrs, control_inputs=())

    def _operand(self, value: Value) -> Value:
        known = self._stood_in.get(value)
        if known is None:
            type_ = self._at.type(value.type)
            attrs = {"index": 0, "path": value.name, "type": type_}
            known = self._stood_in[value] = Node(
                "Input", (), (type_,), attrs, name=value.name).out()
        return known


class ProgramAtSizes(ControlProgram):
    """``pattern`` at the sizes of a call.

    Fields of `ControlProgram` that sizes decide are properties here: most calls read few of them.
    """

    def __init__(
        self, pattern: ControlProgram, to: Instantiation, nodes: StepNodes,
        structured: Callable[[], StructuredText],
    ) -> None:
        self.pattern, self._at, self._nodes = pattern, to, nodes
        self.address, self.code, self.copied = pattern.address, pattern.code, pattern.copied
        self.passed, self.structured = pattern.passed, structured
        self.is_divisible, self.together, self.lanes = (
            pattern.is_divisible, pattern.together, pattern.lanes)
        self.called = {}

    @lazy
    def node(self) -> Node:
        return self._nodes.node(self.pattern.node)

    @property
    def kinds(self) -> Node:
        return self.pattern.node

    @property
    def words(self) -> list[Word]:  # type: ignore[override]
        return [_word_at(self._at, word) for word in self.pattern.words]

    @property
    def size(self) -> int:
        return self.pattern.size

    @lazy
    def by_kind(self) -> dict[str, list[tuple[int, Size]]]:
        found = dict(self.pattern.by_kind)
        for kind in self.pattern.kinds_with_sizes:
            found[kind] = [(at, self._at.data(value)) for at, value in found[kind]]
        return found

    @lazy
    def nests(self) -> list[LoopNest]:
        return [NestAtSizes(nest, self._at) for nest in self.pattern.nests]

    @lazy
    def exits(self) -> list[ErrorExit]:  # type: ignore[override]
        return [_exit_at(self._at, exit_) for exit_ in self.pattern.exits]

    @lazy
    def sites(self) -> list[HostSite]:  # type: ignore[override]
        return [_site_at(self._at, site, self._nodes) for site in self.pattern.sites]


class NestAtSizes(LoopNest):
    """``pattern`` at the sizes of a call."""

    def __init__(self, pattern: LoopNest, to: Instantiation) -> None:
        vars(self).update(pattern=pattern, to=to, code=pattern.code, fill=pattern.fill)

    pattern: LoopNest
    to: Instantiation

    @lazy
    def largest(self) -> LoopForm:
        return form_at(self.to, self.pattern.largest)

    @property
    def params(self) -> tuple[Param, ...]:
        return params_at(self.to, self.pattern.params)

    @lazy
    def block(self) -> NestBlock:
        if not self.pattern.largest.is_static:
            return self.fill(self.largest, self.params)
        return self.pattern.open_block.at_sizes(self.to)


def _word_at(instantiation: Instantiation, word: Word) -> Word:
    value = instantiation.data(word.value)
    return word if value is word.value else Word(word.kind, value)


def _exit_at(instantiation: Instantiation, exit_: ErrorExit) -> ErrorExit:
    """Of its node only what sizes do not decide is read."""
    size = instantiation.data(exit_.size)
    return exit_ if size is exit_.size else replace(exit_, size=size)


def _site_at(instantiation: Instantiation, site: HostSite, nodes: StepNodes) -> HostSite:
    return replace(
        site, node=nodes.node(site.node),
        operands=tuple(_host_value_at(instantiation, value) for value in site.operands),
        results=tuple(_host_value_at(instantiation, value) for value in site.results))


def _host_value_at(instantiation: Instantiation, value: HostValue) -> HostValue:
    sizes = tuple(HostSize(size.axis, size.word, size.defines, instantiation.data(size.limit),
                           size.is_guessed)
                  for size in value.sizes)
    return HostValue(value.word, instantiation.type(value.type),
                     instantiation.data(value.strides), sizes)


__all__ = ["ProgramAtSizes", "StepNodes"]
