"""Native branches and loops at the sizes of a call: the words of their blocks are substituted,
machine code is the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fusec.ir import Graph, Node, Value
from fusec.ir.instantiate import Instantiation

from .control_program import (
    ControlProgram,
    ErrorExit,
    HostSite,
    HostSize,
    HostValue,
    LoopNest,
    Word,
)
from .loop_ir import Param
from .specialise import LoopForm, LoopOperand


class StepNodes:
    """Nodes of steps at the sizes of a call, without the graphs that they are in and hold: what
    they read is stood in for by values of the same types."""

    def __init__(self, instantiation: Instantiation) -> None:
        self._at, self._stood_in = instantiation, dict[Value, Value]()

    def node(self, node: Node) -> Node:
        attrs = {name: self._at.data(value) for name, value in node.attrs.items()
                 if not isinstance(value, Graph)}
        return Node(node.op, [self._operand(value) for value in node.inputs],
                    tuple(map(self._at.type, node.types)), attrs, name=node.name, loc=node.loc,
                    device=node.device)

    def _operand(self, value: Value) -> Value:
        known = self._stood_in.get(value)
        if known is None:
            type_ = self._at.type(value.type)
            attrs = {"index": 0, "path": value.name, "type": type_}
            known = self._stood_in[value] = Node(
                "Input", (), (type_,), attrs, name=value.name).out()
        return known


def program_at(
    instantiation: Instantiation, program: ControlProgram, node: Node, nodes: StepNodes,
    structured: Callable[[], str],
) -> ControlProgram:
    """The program of ``node``, of these sizes."""
    return replace(
        program, node=node, structured=structured,
        words=[_word_at(instantiation, word) for word in program.words],
        nests=[_nest_at(instantiation, nest) for nest in program.nests],
        exits=[_exit_at(instantiation, exit_) for exit_ in program.exits],
        sites=[_site_at(instantiation, site, nodes) for site in program.sites])


def _word_at(instantiation: Instantiation, word: Word) -> Word:
    value = instantiation.data(word.value)
    return word if value is word.value else Word(word.kind, value)


def _nest_at(instantiation: Instantiation, nest: LoopNest) -> LoopNest:
    return LoopNest(form_at(instantiation, nest.largest), params_at(instantiation, nest.params),
                    nest.code, nest.fill)


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
    sizes = tuple(HostSize(size.axis, size.word, size.defines, instantiation.data(size.limit))
                  for size in value.sizes)
    return HostValue(value.word, instantiation.type(value.type),
                     instantiation.data(value.strides), sizes)


def params_at(instantiation: Instantiation, params: tuple[Param, ...]) -> tuple[Param, ...]:
    return tuple(Param(p.dtype, instantiation.data(p.value)) for p in params)


def form_at(instantiation: Instantiation, form: LoopForm) -> LoopForm:
    """The form; its nest, of which only the structure is read from here on, stays open."""
    return replace(
        form, extents=instantiation.data(form.extents), params=instantiation.data(form.params),
        operands=tuple(_operand_at(instantiation, operand) for operand in form.operands))


def _operand_at(instantiation: Instantiation, o: LoopOperand) -> LoopOperand:
    return LoopOperand(
        o.buffer, o.dtype, instantiation.data(o.offset), instantiation.data(o.strides), o.is_store,
        instantiation.data(o.gathered))


__all__ = ["StepNodes", "form_at", "params_at", "program_at"]
