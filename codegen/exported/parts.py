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


@dataclass(frozen=True)
class CParameter:
    """An argument or a result in C: ``shape`` has names of size parameters, numbers, and texts of
    what follows from them; ``is_array`` is False of a number that is passed by value."""

    name: str
    dtype: np.dtype
    shape: tuple[Any, ...]
    is_array: bool = True
    is_written: bool = False
    note: str = ""


@dataclass(eq=False)
class Variant:
    """The plan for sizes of one kind.

    ``symbols``: the size parameter of each symbol, ``numbers`` the values of those that specs give;
    ``fixed``: parameters that must have a value;
    ``equal``: pairs that must be the same; ``questions`` must have their answers for these sizes.
    ``arguments`` and ``results``: the parameter of each graph input, and output; inputs that no
    parameter gives are ``constants``.  ``types`` are those of the parameters' arrays.
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


@dataclass(eq=False)
class ExportedFunction:
    """``sizes`` are the names of its size parameters, which come first, and ``axes`` where each is
    seen: the number of an argument, and the axis.  ``leaves``: of each argument its place among the
    leaves of the Python function's; ``text``: a line about it, ``loc``: where it begins."""

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

    @property
    def parameters(self) -> list[CParameter]:
        """Of arguments, then of results."""
        return [*self.arguments, *self.results]


ERRORS = {  # by code; positive codes are of checks that failed
    "CPU": (-1, "this CPU lacks instructions that the library needs"),
    "SIZES": (-2, "the library has no code for these sizes"),
    "WORKSPACE": (-3, "the workspace is NULL or has too few bytes"),
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
