"""How library functions run in a plan: operands in NumPy's kinds, results in planned places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.errors import UnsupportedError
from fusec.ir import Node, TensorType
from fusec.ir.dims import bind, evaluator, resolve_attrs, symbols_of
from fusec.ops import get
from fusec.ops.library import LIBRARY, leaves_of, prepare

if TYPE_CHECKING:
    from .plan import Place

Memory = Callable[[], np.ndarray]
# Arrays, memory for each result, and the symbols of sizes: results add those that they define.
LibraryRun = Callable[[Sequence[Any], Sequence[Memory], dict[str, int]], list[np.ndarray]]


def library_run(node: Node, targets: Sequence[Place]) -> LibraryRun:
    """How to run the node's library function; see `ExternStep`."""
    if node.op == "MatMul":
        return lambda arrays, memory, sizes: [np.matmul(arrays[0], arrays[1], out=memory[0]())]
    function = _function(node)
    kinds = [_kind(v.type) for v in node.inputs]
    places = [(place, evaluator(place.strides), place.strides if place.is_static else None)
              for place in targets]

    def run(
        arrays: Sequence[Any], memory: Sequence[Memory], sizes: dict[str, int]
    ) -> list[np.ndarray]:
        operands = [kind(a) for kind, a in zip(kinds, arrays, strict=True)]
        results = function(operands, sizes)
        done = []
        for (place, strides_at, strides), result, new in zip(places, results, memory, strict=True):
            _check_result(node, result, place, sizes)
            planned = strides_at(sizes) if strides is None else strides
            done.append(_placed(result, planned, new, operands))
        return done

    return run


def _function(node: Node) -> Callable[[list[Any], dict[str, int]], tuple[Any, ...]]:
    """The results for operands; attrs that hold sizes are computed each time."""
    attrs, reference = dict(node.attrs), get(node.op).reference
    if symbols_of(tuple(v for k, v in attrs.items() if k != "results")):
        return lambda operands, sizes: _as_tuple(
            reference(*operands, **resolve_attrs(attrs, sizes)))
    if node.op in LIBRARY:
        call = prepare(LIBRARY[node.op], attrs["form"], attrs["named"])
        return lambda operands, sizes: leaves_of(call(operands))
    return lambda operands, sizes: _as_tuple(reference(*operands, **attrs))


def _as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def _placed(
    result: Any, strides: tuple[int, ...], memory: Memory, operands: Sequence[Any]
) -> np.ndarray:
    """The library's own fresh array where it lies as planned, else a copy in planned memory."""
    if type(result) is np.ndarray and result.strides == strides:
        flags = result.flags
        if flags.owndata and flags.writeable and all(result is not o for o in operands):
            return result
    out = memory()
    np.copyto(out, result)
    return out


def _kind(type_: TensorType) -> Callable[[Any], Any]:
    """Makes of an operand, perhaps from a cell, what NumPy would have: array, scalar, number."""
    if type_.is_weak:
        return lambda x: x.item() if isinstance(x, np.generic) else x
    if type_.kind == "array":
        return lambda x: x if type(x) is np.ndarray else np.asarray(x)
    return lambda x: x


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
