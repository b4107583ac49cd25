"""How library functions run in a plan: operands in NumPy's kinds, results in planned places."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.errors import UnsupportedError
from fusec.ir import Node
from fusec.ir.bindings import attrs_evaluator, bind, evaluator
from fusec.ir.dims import symbols_of
from fusec.ops import get
from fusec.ops.library import LIBRARY, call_text, leaves_of, run_call

if TYPE_CHECKING:
    from fusec.codegen.schedule import Place

Memory = Callable[[], np.ndarray]
Bind = Callable[[str, Any], str]  # a name, in the text of a plan, for an object


class LibraryRun:
    """How a node's library function runs in a plan: as Python text, and what its results must be.

    Operands are in NumPy's kinds already; ``settle`` takes a result that does not lie as planned.
    """

    def __init__(self, node: Node, targets: Sequence[Place]) -> None:
        self.node = node
        self.places = [(place, evaluator(place.strides)) for place in targets]

    def expression(self, operands: Sequence[str], bind_name: Bind) -> str:
        """The call; attrs that hold sizes are computed each time."""
        attrs, reference = dict(self.node.attrs), get(self.node.op).reference
        listed = ", ".join(operands)
        if symbols_of(tuple(v for k, v in attrs.items() if k != "results")):
            attrs_at = attrs_evaluator(attrs)

            def sized(sizes: dict[str, int], *arrays: Any) -> Any:
                return reference(*arrays, **attrs_at(sizes))

            return f"{bind_name('call', sized)}(sizes, {listed})"
        row = LIBRARY.get(self.node.op)
        if row is not None and not row.writes:
            return call_text(row, attrs["form"], attrs["named"], operands, bind_name)
        if row is not None:
            def written(*arrays: Any) -> Any:
                return run_call(row, arrays, attrs["form"], attrs["named"])

            return f"{bind_name('call', written)}({listed})"
        return f"{bind_name('call', functools.partial(reference, **attrs))}({listed})"

    def settle(
        self, number: int, result: Any, operands: Sequence[Any], memory: Memory,
        sizes: dict[str, int],
    ) -> np.ndarray:
        """The library's own fresh array where it lies as planned, else a copy in planned memory.

        Also binds the symbols that the result's sizes define.
        """
        place, strides_at = self.places[number]
        if isinstance(result, (tuple, list)):
            (result,) = leaves_of(result)
        _check_result(self.node, result, place, sizes)
        if type(result) is np.ndarray and result.strides == strides_at(sizes) and (
                result.flags.writeable and self._is_its_own(result, operands)):
            return result
        out = memory()
        np.copyto(out, result)
        return out

    def _is_its_own(self, result: np.ndarray, operands: Sequence[Any]) -> bool:
        """Whether nothing else shows its memory: a view that is the only result keeps that alive,
        as it does in NumPy."""
        if result.flags.owndata:
            return all(result is not o for o in operands)
        return len(self.places) == 1 and is_unshared(result, *operands)


def is_unshared(view: np.ndarray, *operands: Any) -> bool:
    """Whether a view that a library returned shows an array of its own, which nothing else
    references."""
    base: Any = view.base
    return type(base) is np.ndarray and base.base is None and all(
        base is not o and (type(o) is not np.ndarray or base is not o.base) for o in operands)


def _check_result(node: Node, result: Any, out: Place, sizes: dict[str, int]) -> None:
    """Also binds the symbols that the result's sizes define."""
    if not isinstance(result, (np.ndarray, np.generic)):
        result = np.asarray(result)
    if result.shape != out.shape and not bind(out.shape, result.shape, sizes):
        raise UnsupportedError(
            f"the size of a result of {node.op} depends on the data: it is {result.shape} here, "
            f"{out.shape} was compiled", loc=node.loc,
            cure="call it before or after the compiled function",
        )
    if result.dtype != out.dtype:
        raise UnsupportedError(
            f"the dtype of a result of {node.op} depends on the data: it is {result.dtype} here, "
            f"{out.dtype} was compiled", loc=node.loc,
            cure="call it before or after the compiled function")
