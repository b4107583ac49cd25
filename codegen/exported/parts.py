"""An exported function as a back end gets it: parameters, results, and a plan for each kind of
sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from fusec.core.locations import Loc
from fusec.core.records import dataclass, field
from fusec.ir.sizes.size_questions import Question
from fusec.ir.types import TensorType

from ..plan.call_plan import CallPlan


class NoTextError(ValueError):
    """A number that follows from sizes by a function which nobody has written as text."""


@dataclass(frozen=True)
class CParameter:
    """An argument or a result in C: ``shape`` has names of size parameters, numbers, and texts of
    what follows from them; ``is_array`` is False of a number that is passed by value.

    A result whose size the data decides has the largest size, and ``counts``: by axis the number
    of the result that says how many elements there are; ``counted`` is of such a one the result
    and the axis."""

    name: str
    dtype: np.dtype
    shape: tuple[Any, ...]
    is_array: bool = True
    is_written: bool = False
    note: str = ""
    counts: tuple[tuple[int, int], ...] = ()
    counted: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class CField:
    """A field of the struct that holds a library's state: where it lies, and what it is at
    first, an array."""

    name: str
    offset: int
    value: Any

    @property
    def dtype(self) -> np.dtype:
        return self.value.dtype

    @property
    def end(self) -> int:
        return self.offset + int(self.value.nbytes)


def layout(fields: Sequence[CField]) -> tuple[int, int]:
    """Bytes and alignment of the struct."""
    align = max((f.dtype.alignment for f in fields), default=1)
    return -(-max((f.end for f in fields), default=0) // align) * align, align


@dataclass(eq=False)
class Variant:
    """The plan for sizes of one kind.

    ``symbols``: the size parameter of each symbol, ``numbers`` the values of those that specs give;
    ``fixed``: parameters that must have a value;
    ``equal``: pairs that must be the same; ``questions`` must have their answers for these sizes.
    ``arguments`` and ``results``: the parameter of each graph input, and output; inputs that no
    parameter gives are ``constants``, or ``fields`` of the state; ``assigned`` are the fields that
    outputs are written to at the end.  ``types`` are those of the parameters' arrays.
    """

    call_plan: CallPlan
    symbols: Mapping[str, int]
    numbers: Mapping[str, int]
    fixed: Sequence[tuple[int, int]]
    equal: Sequence[tuple[int, int]]
    questions: Sequence[Question]
    arguments: Mapping[int, int]
    results: Mapping[int, int]
    constants: Mapping[int, Any]
    types: Sequence[TensorType]
    programs: Mapping[Any, Any] = field(default_factory=dict)  # by step, statements
    fields: dict[int, CField] = field(default_factory=dict)
    assigned: dict[int, CField] = field(default_factory=dict)
    # Where sizes are symbols: inside of this further questions may be asked of them.
    reopened: Callable[[], AbstractContextManager[Any]] | None = None


    def symbol(self, name: str) -> str:
        """The symbol's value, in LLVM's words."""
        return f"%n{self.symbols[name]}" if name in self.symbols else str(self.numbers[name])


@dataclass(frozen=True)
class CheckFailure:
    """What a positive code says: the exception's text, and the line that raises it."""

    text: str
    loc: Loc | None


@dataclass(frozen=True)
class GivenResult:
    """A result of the Python function: the C function's result of that number, the argument of that
    number, or the ``value`` that it always is; ``text`` says so where it is none of C's results."""

    result: int | None = None
    argument: int | None = None
    value: Any = None
    text: str = ""


@dataclass(eq=False)
class ExportedFunction:
    """``sizes`` are the names of its size parameters, which come first, and ``axes`` where each is
    seen: the number of an argument, and the axis.  ``leaves``: of each argument its place among the
    leaves of the Python function's; ``text``: a line about it, ``loc``: where it begins; ``gives``:
    of each result leaf of the Python function's what it is."""

    name: str
    sizes: Sequence[str]
    arguments: Sequence[CParameter]
    results: Sequence[CParameter]
    variants: list[Variant]
    axes: Sequence[tuple[int, int]] = ()
    leaves: Sequence[int] = ()
    text: str = ""
    loc: Loc | None = None
    failures: list[CheckFailure] = field(default_factory=list)
    state_bytes: int = 0  # of the library's state, 0 where the function has none
    state_align: int = 1
    gives: Sequence[GivenResult] = ()

    @property
    def parameters(self) -> list[CParameter]:
        """Of arguments, then of results."""
        return [*self.arguments, *self.results]

    @property
    def has_shapes(self) -> bool:
        """Whether a result has axes."""
        return any(result.shape for result in self.results)

    @property
    def symbols(self) -> list[str]:
        """What C programs call."""
        suffixes = ["", "_sizes", *(["_shapes"] if self.has_shapes else []), "_dlpack", "_error"]
        return [f"{self.name}{suffix}" for suffix in suffixes]


ERRORS = {  # by code; positive codes are of checks that failed
    "CPU": (-1, "this CPU lacks instructions that the library needs"),
    "SIZES": (-2, "the library has no code for these sizes"),
    "WORKSPACE": (-3, "the workspace is NULL or has too few bytes"),
    "STATE": (-4, "the state is NULL, not aligned, or overlaps the workspace"),
}
OF_PARAMETER = {  # codes minus the number of the parameter
    "NULL": (-1000, "is NULL"),
    "MISALIGNED": (-2000, "is not aligned to its elements"),
    "OVERLAP": (-3000, "overlaps an array that the call writes"),
    "DTYPE": (-4000, "has another dtype"),
    "RANK": (-5000, "has another number of axes"),
    "SHAPE": (-6000, "has another size than the arrays before it, or than it must have"),
    "STRIDES": (-7000, "does not lie in C order without gaps"),
    "DEVICE": (-8000, "is not in the memory of the CPU"),
}
