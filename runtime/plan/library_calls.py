"""How library functions run in a plan: operands in NumPy's kinds, results in planned places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fusec.codegen.backend import DeviceArrays
from fusec.codegen.structured.calls.call_statements import NodeCall
from fusec.codegen.structured.memory import View
from fusec.errors import UnsupportedError
from fusec.ir import Node
from fusec.ir.lazy_values import lazy
from fusec.ir.sizes.bindings import Bindings, attrs_evaluator, bind, evaluator
from fusec.ir.sizes.dims import symbols_of
from fusec.ops import get
from fusec.ops.calls.library import LIBRARY, LibraryCall, call_text, decode, leaves_of, run_call

Memory = Callable[[], np.ndarray]
Bind = Callable[[str, Any], str]  # a name, in the text of a plan, for an object
# The same for what a function makes of data at the sizes of a plan.
BindData = Callable[[str, Any, Callable[[Any], Any]], str]


def call_expression(
    node: Node, operands: Sequence[str], bind_name: Bind, bind_data: BindData
) -> str:
    """A library call as Python text; attributes that hold sizes of the run are computed each time.

    Operands are in NumPy's kinds already.
    """
    attrs, listed, row = node.attrs, ", ".join(operands), LIBRARY.get(node.op)
    reference, items = get(node.op).reference, tuple(attrs.items())
    if symbols_of(tuple(v for k, v in items if k != "results")):
        return f"{bind_data('call', items, lambda x: _sized(reference, x))}(sizes, {listed})"
    if row is None:
        return f"{bind_data('call', items, lambda x: partial(reference, **dict(x)))}({listed})"
    forms = attrs["form"], attrs["named"]
    if row.writes:
        return f"{bind_data('call', forms, lambda x: _written(row, *x))}({listed})"
    return call_text(row, *forms, operands, bind_name,
                     lambda form: bind_data("constant", form, lambda x: decode(x, ())))


def _sized(reference: Callable[..., Any], items: Any) -> Callable[..., Any]:
    attrs_at = attrs_evaluator(dict(items))
    return lambda sizes, *arrays: reference(*arrays, **attrs_at(sizes))


def _written(row: LibraryCall, form: Any, named: Any) -> Callable[..., Any]:
    return lambda *arrays: run_call(row, arrays, form, named)


class LibraryRun:
    """What the results of a library call must be: ``settle`` takes one that does not lie as
    planned."""

    def __init__(self, step: NodeCall) -> None:
        self.step = step

    @property
    def node(self) -> Node:
        return self.step.node

    @lazy
    def places(self) -> list[tuple[View, Callable[[Bindings], tuple[int, ...]]]]:
        """The targets, with what evaluates their strides."""
        return [(place, evaluator(place.strides)) for place in self.step.results]

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
        check_result(self.node, result, place, sizes)
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
    if type(base) is not np.ndarray or base.base is not None:
        return False
    for o in operands:  # noqa: SIM110  # a generator would double the time
        if base is o or (type(o) is np.ndarray and base is o.base):
            return False
    return True


class HostCopies:
    """Operands and results of a call of NumPy's whose arrays are a device's."""

    def __init__(self, arrays: DeviceArrays) -> None:
        self.arrays = arrays

    def fetched(self, operand: Any) -> Any:
        is_there = isinstance(operand, np.ndarray) and self.arrays.is_there(operand)
        return self.arrays.fetch(operand) if is_there else operand

    def brought(self, result: Any, made: Sequence[Callable[[], Any]]) -> list[Any]:
        """The results in the memory that these functions give, or in fresh memory there."""
        results = [result] if len(made) == 1 and type(result) is np.ndarray else leaves_of(result)
        return [self._brought(np.asarray(one), memory()) for one, memory in zip(
            results, made, strict=True)]

    def _brought(self, result: np.ndarray, memory: Any) -> Any:
        if memory is None:
            return self.arrays.bring(np.ascontiguousarray(result))
        if self.arrays.is_there(memory):
            self.arrays.write(memory, np.ascontiguousarray(result, dtype=memory.dtype))
        else:
            memory[...] = result
        return memory


def nothing() -> None:
    """Memory of a result whose size the call decides: the library makes it."""


def check_result(node: Node, result: Any, out: View, sizes: dict[str, int]) -> None:
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
