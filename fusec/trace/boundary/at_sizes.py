"""What a trace gave beside its graph, at the sizes of one call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fusec.ir.instantiate import Instantiation

from ..values.states import Computed, State, States
from ..values.storage import ViewStep
from .results import Output


def output_at(mapping: Instantiation, output: Output) -> Output:
    """A result leaf, with the views to take of it."""
    steps = tuple(step_at(mapping, step) for step in output.steps)
    return replace(output, steps=steps, value=mapping.data(output.value))


def step_at(mapping: Instantiation, step: ViewStep) -> ViewStep:
    return ViewStep(step.op, mapping.data(step.attrs), mapping.data(step.strides),
                    tuple(map(mapping.value, step.operands)))


def states_at(mapping: Instantiation, states: States) -> States:
    """The states before nodes that may raise."""
    return States([(mapping.node(node), _state_at(mapping, state)) for node, state in states.noted])


def _state_at(mapping: Instantiation, state: State) -> State:
    return State(
        [(assignment, tree, [_leaf_at(mapping, leaf) for leaf in leaves])
         for assignment, tree, leaves in state.assigned],
        [(number, mapping.value(value)) for number, value in state.written])


def _leaf_at(mapping: Instantiation, leaf: Any) -> Any:
    if type(leaf) is Computed:
        return Computed(mapping.value(leaf.value), leaf.is_array)
    return mapping.data(leaf)
