"""Products and transforms of a loop as launches, which its queue joins with those of kernels: a
sequence that comes again is one CUDA graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fusec.ir import Node

from ..driver.bound_launches import BoundLaunch
from ..launches import Filled
from ..programs.program_call import ProgramCall
from .direct_call import DirectCall, direct_call
from .matrix_product import Laid
from .refusals import LibraryRefusedError

_REMEMBERED = 32  # combinations of addresses
# An array: its address, then shape, strides and dtype; or a number.
Place = Any
Plain = Callable[[Sequence[Place], Sequence[Place]], None]


class CallInLoop:
    """``call(operands, results, of)``: one library call of a program; ``plainly`` does what is not
    asked of a library directly, when all that was asked for before is on its way."""

    def __init__(self, node: Node, driver: Any, plainly: Plain) -> None:
        self.node, self.driver, self.plainly = node, driver, plainly
        self._direct: list[DirectCall | None] = []  # when it is known: how arrays lie is the code's
        self._bound: dict[tuple[int, ...], BoundLaunch] = {}

    def __call__(
        self, operands: Sequence[Place], results: Sequence[Place], of: ProgramCall
    ) -> None:
        direct = self._found(operands, results)
        if direct is None:
            of.queue.flush()
            self.plainly(operands, results)
            return
        where = (*(x[0] for x in (*operands, *results)), of.lent(direct.nbytes))
        launch = self._bound.get(where)
        if launch is None:
            if len(self._bound) >= _REMEMBERED:
                self._bound.clear()
            ask = partial(self._ask, direct, operands, results)
            launch = self._bound[where] = BoundLaunch(
                self.driver, Filled(ask, (1, 1, 1), (1, 1, 1), where, 0))
        of.queue.add([launch])

    def _ask(
        self, direct: DirectCall, operands: Sequence[Place], results: Sequence[Place], grid: Any,
        block: Any, words: tuple[int, ...], shared_mem: int, stream: Any,
    ) -> None:
        """As CuPy's functions are called."""
        try:
            direct.ask(stream, *words)
        except LibraryRefusedError:
            if self.driver.is_capturing(stream):
                raise
            self.plainly(operands, results)

    def _found(self, operands: Sequence[Place], results: Sequence[Place]) -> DirectCall | None:
        """How it is asked for; None: it is not, or no more, or the result is an operand."""
        arrays = (*operands, *results)
        if len(results) != 1 or any(type(x) is not tuple for x in arrays) or (
                results[0][0] in [x[0] for x in operands]):
            return None
        if not self._direct:
            self._direct.append(self._made([x[1] for x in operands], results[0][1]))
        (direct,) = self._direct
        return None if direct is None or direct.library.refused else direct

    def _made(self, operands: Sequence[Any], result: Any) -> DirectCall | None:
        """One that may refuse a matrix is waited for, as what `plainly` does."""
        shape, strides, dtype = result
        direct = direct_call(self.driver, self.node, [Laid(*x[:2]) for x in operands],
                             operands[0][2], (Laid(shape, strides), dtype))
        return None if direct is None or direct.words else direct
