"""What calls with arrays of a device ask of its back end: arrays of the device's library, and the
kernels of a plan ready to be launched on them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    from fusec.codegen.plan.call_plan import CallPlan
    from fusec.codegen.structured.still_views import PlacesOfCall
    from fusec.ir import Node


class ResidentArrays(Protocol):
    """Arrays of a device that the program has itself, as arguments and results, beside what
    `DeviceArrays` does.

    ``kind`` is the class of the results.
    """

    kind: type

    def bring_as_it_lies(self, array: np.ndarray) -> Any:
        """As `bring`, with the strides that it has."""

    def lent(self, array: Any) -> np.ndarray:
        """An argument as plans take it."""

    def shown(self, value: Any) -> Any:
        """A result as the program gets it."""

    def wait_for(self, stream: Any) -> None:
        """Until a stream of theirs has done what it was asked."""

    def call(self) -> AbstractContextManager[None]:
        """What is around a call."""

    def prepared(
        self, call_plan: CallPlan, numbers: int, places: PlacesOfCall
    ) -> PreparedKernels | str:
        """The kernels of a plan that has nothing else; or why they cannot be prepared.

        ``numbers``: how many of its cells are numbers that calls give.
        """


class PreparedKernels(Protocol):
    """The steps of a plan, kernels ready to be launched at addresses, and what text that does so
    names.

    ``names``: see `cupy_arrays`.  ``parts`` are segments of launches, whose
    ``bases`` are the arrays and blocks whose addresses a launch takes, copies, and library calls,
    which make the arrays ``called``; ``products`` are launches of a library that may refuse them;
    ``constants`` are those that a base may be; ``nbytes`` is the
    block that a call borrows, ``numbers`` how
    many cells hold numbers that it gives, ``status`` where in the block checks note that they
    failed, or -1, ``words`` how many of it a call looks at, ``cleared`` from where to where it is
    to be 0.  ``is_watched``: ``wait()`` is for a loop that may run long.  ``text`` says for people
    how they are launched.
    """

    names: dict[str, Any]
    parts: Sequence[Any]
    called: Collection[tuple[str, int]]
    products: Collection[Any]
    constants: Sequence[np.ndarray]
    nbytes: int
    numbers: int
    status: int
    words: int
    cleared: tuple[int, int]

    @property
    def is_watched(self) -> bool: ...

    def address(self, place: Any) -> tuple[tuple[str, int], int]:
        """The base of a value that kernels read or write, and the bytes after its address."""

    def function(self, node: Node) -> Any:
        """The library's function for a call."""

    def around(self, node: Node) -> Any:
        """What makes a context for the call; None: it needs none."""

    def outside(self, is_packed: bool) -> Any:
        """A function that gives a pointer to a copy there of an array from outside, which has no
        gaps, or as it lies."""

    def constant(self, array: np.ndarray) -> Any:
        """A function that gives an array there with these elements."""

    def over(self, array: np.ndarray) -> Any:
        """An array that is there as the library has arrays."""

    @property
    def text(self) -> str: ...
