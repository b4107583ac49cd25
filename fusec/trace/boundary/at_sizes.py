"""What a trace gave beside its graph, at the sizes of one call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fusec.ir.instantiate import Instantiation

from ..values.states import Computed, State, States
from ..values.storage import ViewStep
from .results import Output


def output_at(found: Instantiation, output: Output) -> Output:
    """A result leaf, with the views to take of it."""
    steps = tuple(step_at(found, step) for step in output.steps)
    return replace(output, steps=steps, value=found.data(output.value))


def step_at(found: Instantiation, step: ViewStep) -> ViewStep:
    return ViewStep(step.op, found.data(step.attrs), found.data(step.strides),
                    tuple(map(found.value, step.operands)))


def states_at(found: Instantiation, states: States) -> States:
    """The states before nodes that may raise."""
    return States([(found.node(node), _state_at(found, state)) for node, state in states.noted])


def _state_at(found: Instantiation, state: State) -> State:
    return State(
        [(assignment, tree, [_leaf_at(found, leaf) for leaf in leaves])
         for assignment, tree, leaves in state.assigned],
        [(number, found.value(value)) for number, value in state.written])


def _leaf_at(found: Instantiation, leaf: Any) -> Any:
    if type(leaf) is Computed:
        return Computed(found.value(leaf.value), leaf.is_array)
    return found.data(leaf)
