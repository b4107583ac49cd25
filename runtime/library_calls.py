"""How library functions run in a plan: operands in NumPy's kinds, results in planned places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.errors import UnsupportedError
from fusec.ir import Node, TensorType
from fusec.ir.dims import bind, evaluator, resolve_attrs, symbols_of
from fusec.ops import get

if TYPE_CHECKING:
    from .plan import Place

Memory = Callable[[], np.ndarray]
# Arrays, memory for each result, and the symbols of sizes: results add those that they define.
LibraryRun = Callable[[Sequence[Any], Sequence[Memory], dict[str, int]], list[np.ndarray]]


def library_run(node: Node, targets: Sequence[Place]) -> LibraryRun:
    """How to run the node's library function; see `ExternStep`."""
    if node.op == "MatMul":
        return lambda arrays, memory, sizes: [np.matmul(arrays[0], arrays[1], out=memory[0]())]
    reference, attrs = get(node.op).reference, dict(node.attrs)
    types = [v.type for v in node.inputs]

    has_sizes = bool(symbols_of(tuple(v for k, v in attrs.items() if k != "results")))
    strides_of = [evaluator(place.strides) for place in targets]

    def run(
        arrays: Sequence[Any], memory: Sequence[Memory], sizes: dict[str, int]
    ) -> list[np.ndarray]:
        operands = [_in_kind(a, t) for a, t in zip(arrays, types, strict=True)]
        results = reference(*operands, **(resolve_attrs(attrs, sizes) if has_sizes else attrs))
        results = results if isinstance(results, tuple) else (results,)
        for place, result in zip(targets, results, strict=True):
            _check_result(node, np.asarray(result), place, sizes)
        return [_placed(result, strides(sizes), new, operands)
                for result, strides, new in zip(results, strides_of, memory, strict=True)]

    return run


def _placed(
    result: Any, strides: tuple[int, ...], memory: Memory, operands: Sequence[Any]
) -> np.ndarray:
    """The library's own fresh array where it lies as planned, else a copy in planned memory."""
    is_fresh = type(result) is np.ndarray and result.flags.owndata and result.flags.writeable
    if is_fresh and result.strides == strides and all(result is not o for o in operands):
        return result
    out = memory()
    np.copyto(out, result)
    return out


def _in_kind(operand: Any, type_: TensorType) -> Any:
    """An operand from a cell in the kind that NumPy would have: array, scalar, Python number."""
    if type_.is_weak:
        return operand.item() if isinstance(operand, np.generic) else operand
    return np.asarray(operand) if type_.kind == "array" else operand


def _check_result(node: Node, result: np.ndarray, out: Place, sizes: dict[str, int]) -> None:
    """Also binds the symbols that the result's sizes define."""
    if not bind(out.shape, result.shape, sizes):
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
