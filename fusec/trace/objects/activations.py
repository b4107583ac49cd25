"""Calls of jitted functions in a traced program: those in progress, their arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field
from fusec.ir import TensorType

from ..choice.merge import Disagreement, is_traced, joined, same
from ..facts.layout import Strides
from ..operands.operands import as_traced
from ..values.array import TracedArray
from ..values.trace import Trace

_NUMBERS = (int, float, complex, np.number)


@dataclass(frozen=True)
class ReturnedLeaf:
    """A leaf that the function returns as a value of the graph."""

    type: TensorType
    strides: Strides


@dataclass
class RecursiveFunction:
    """A function that calls itself, while its body is traced."""

    name: str
    structure: Any = None
    results: list[Any] | None = None  # what it is supposed to return; None: not known yet
    raises: bool = False
    aliases: bool = False  # an array that it returns may be an argument, or older
    changed: bool = False
    asked: bool = False  # whether the body calls itself
    fp: str | None = None  # how it rounds, where what is around it may round otherwise

    @property
    def types(self) -> tuple[TensorType, ...]:
        return tuple(r.type for r in self.results or () if type(r) is ReturnedLeaf)

    def suppose(self, structure: Any, results: list[Any]) -> None:
        """The body has returned this: go on until it returns the supposed type."""
        if self.results is not None and structure == self.structure:
            results = [_joined(a, b) for a, b in zip(self.results, results, strict=True)]
            if all(a is b for a, b in zip(self.results, results, strict=True)):
                return
        self.structure, self.results, self.changed = structure, results, True


@dataclass
class Activation:
    """A call of a jitted function in the program that is traced."""

    function: Callable[..., Any]
    arguments: Arguments
    regions: int  # branches and loops around it
    recursive: RecursiveFunction | None = None  # of which this is the body


class Activations(list[Activation]):
    """Of a trace: the calls in progress, the traced function's own first."""

    def of(self, function: Callable[..., Any]) -> Iterator[Activation]:
        """Those of a function, the innermost first: in the body that is traced, and the bodies of
        functions around it."""
        is_inside = True
        for activation in reversed(self):
            if activation.function == function and (is_inside or activation.recursive is not None):
                yield activation
            is_inside = is_inside and activation.recursive is None

    @property
    def is_in_body(self) -> bool:
        """Whether a body is traced, which may not be the last attempt at it."""
        return any(activation.recursive is not None for activation in self)


@dataclass
class Arguments:
    """The arguments of a call: the leaves of tuples, traced ones and others."""

    leaves: list[Any]
    structure: Any
    traced: list[TracedArray] = field(init=False)

    def __post_init__(self) -> None:
        self.traced = [x for x in self.leaves if is_traced(x)]

    @classmethod
    def of(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        leaves: list[Any] = []
        return cls(leaves, _taken_apart((args, tuple(kwargs.items())), leaves))

    def are_like(self, other: Arguments) -> bool:
        """Whether the body is the same for both."""
        return self.structure == other.structure and all(
            _are_like(a, b) for a, b in zip(self.leaves, other.leaves, strict=True))

    def with_numbers(self, trace: Trace) -> Arguments:
        """The same with numbers as values of the graph, known ones too; truths stay known."""
        return Arguments([as_traced(trace, x) if isinstance(x, _NUMBERS) and not is_traced(x)
                          and type(x) is not bool else x for x in self.leaves], self.structure)

    def with_traced(self, values: list[TracedArray]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same call of other values."""
        news = iter(values)
        leaves = iter([next(news) if is_traced(x) else x for x in self.leaves])
        args, named = _put_together(self.structure, leaves)
        return args, dict(named)


def _taken_apart(x: Any, leaves: list[Any]) -> Any:
    """The structure of tuples; their items are added to the leaves.  Lists and dicts are leaves:
    the program may know them by another name."""
    if type(x) is tuple:
        return tuple(_taken_apart(item, leaves) for item in x)
    leaves.append(x)
    return None


def _put_together(structure: Any, leaves: Any) -> Any:
    if structure is None:
        return next(leaves)
    return tuple(_put_together(part, leaves) for part in structure)


def _are_like(a: Any, b: Any) -> bool:
    if is_traced(a) and is_traced(b):
        return a.type == b.type and a.is_array == b.is_array
    return same(a, b)


def _joined(supposed: Any, actual: Any) -> Any:
    """A leaf that holds both."""
    if type(supposed) is not ReturnedLeaf or type(actual) is not ReturnedLeaf:
        is_same = type(supposed) is not ReturnedLeaf and same(supposed, actual)
        return supposed if is_same else actual
    try:
        type_ = joined(supposed.type, actual.type)
    except Disagreement:
        return actual
    lies_alike = supposed.strides in ((), actual.strides)
    if type_ == supposed.type and lies_alike:
        return supposed
    return ReturnedLeaf(type_, supposed.strides if lies_alike else ())
