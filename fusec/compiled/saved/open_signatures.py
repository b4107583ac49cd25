"""The signatures beside one whose sizes are open: of sizes of 1, which NumPy broadcasts.

A symbol of a graph stands for 2 and more.  A batch of one row is usual where functions are served,
so a function of open sizes is saved for these as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from fusec.compiled.sizes.dynamic_function import OpenFunction
from fusec.errors import FusecError, InternalError
from fusec.signature.specs import TensorSpec
from fusec.trace.control.raised_exceptions import is_programs
from fusec.trace.facts.trees import mapped

from .signature_form import Concrete, compiler_of

MOST_OPEN = 2  # sizes: each further one doubles the signatures


def with_sizes_of_one(function: OpenFunction) -> Iterator[Concrete]:
    """The function for each combination of open sizes that are 1, those that can be traced."""
    names = sorted(function.graph_symbols)
    if len(names) > MOST_OPEN:
        return
    for count in range(1, len(names) + 1):
        for ones in itertools.combinations(names, count):
            try:
                yield compiler_of(function).concrete(*_specs(function, frozenset(ones)))
            except FusecError as error:  # the program is for larger sizes alone
                if isinstance(error, InternalError):
                    raise
            except Exception as error:
                if not is_programs(error):
                    raise


def _specs(function: OpenFunction, ones: frozenset[str]) -> Any:
    """The arguments' specs, with these sizes 1."""
    types = iter([leaf.input for leaf in function.argument_leaves if leaf.input >= 0])

    def spec(given: Any) -> Any:
        if not isinstance(given, TensorSpec):
            return given
        type_ = function.graph.inputs[next(types)].type
        if type_.kind != "array":  # a number: Python's where it is one
            one = type_.dtype.type(1)
            return one.item() if type_.is_weak else one
        shape = type_.shape
        return TensorSpec([1 if str(size) in ones else own for size, own in zip(
            shape, given.shape or (), strict=True)], given.dtype)

    return mapped(spec, function.structured_inputs)
