"""A trace's results beside its graph, at the sizes of one call."""

from __future__ import annotations

from dataclasses import replace

from fusec.ir.sizes.instantiate import Instantiation

from ..values.storage import ViewStep
from .results import ResultLeaf


def output_at(mapping: Instantiation, output: ResultLeaf) -> ResultLeaf:
    """A result leaf, with the views to take of it."""
    steps = tuple(step_at(mapping, step) for step in output.steps)
    return replace(output, steps=steps, value=mapping.data(output.value))


def step_at(mapping: Instantiation, step: ViewStep) -> ViewStep:
    return ViewStep(step.op, mapping.data(step.attrs), mapping.data(step.strides),
                    tuple(map(mapping.value, step.operands)))
