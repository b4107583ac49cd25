"""The errors for infinities and NaN that a call makes: the node, its line, the index, operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.core.display.amounts import count_text
from fusec.core.locations import GradientLoc
from fusec.errors import FusecError, user_error
from fusec.ir import Node, Value
from fusec.ops.calls.users_names import operand_title, users_name
from fusec.ops.graphs.origins import Origin
from fusec.passes.pipeline import CONTRACTING

from .pass_search import FoundPass

_CURE = "keep operands away from there, as np.where(x > 0, x, 1) does before np.log"
_DIVIDED = "keep divisors away from 0, as np.where(x == 0, 1, x) does"
_TOO_LARGE = "its operands are finite: scale them, as x - x.max() does before np.exp"
_LARGE = 100.0  # of operands, from where on an infinity is more than the dtype holds
_STRICT = 'fusec.jit(f, fp="strict") rounds each operation as NumPy does'
_ANY_FP = 'scale the operands, or keep them away from there: fp="strict" has this pass, too'

def of_origin(name: str, origin: Origin) -> FusecError:
    """The error for an element that a node of the program made."""
    return _of_node(name, origin, [], _cure(origin))


def _cure(origin: Origin) -> str:
    if origin.node.op == "Div":
        return _DIVIDED
    largest = max((float(np.max(np.abs(x), initial=0.0)) for _, x in origin.operands), default=0.0)
    return _TOO_LARGE if np.isinf(origin.value) and _LARGE <= largest < np.inf else _CURE


def of_pass(name: str, made: FoundPass) -> FusecError:
    """The error for an element that a node made after a pass, and none of the program's own."""
    part = f" of the sub-graph {made.part!r}" if made.part else ""
    return _of_node(
        name, made.origin,
        [f"only the fused form makes it, from the pass {made.name!r}{part} on: run node by node, "
         "NumPy has finite numbers"], _STRICT if made.name in CONTRACTING else _ANY_FP)


def _of_node(name: str, origin: Origin, notes: list[str], cure: str) -> FusecError:
    node = origin.node
    part = ", in the derivative of this line," if isinstance(node.loc, GradientLoc) else ""
    called = f"a cast to {node.types[0].dtype}" if node.op == "Cast" else users_name(node)
    title = (f"{name}: {called} (node {node.name}){part} made "
             f"{_kind(origin.value)}{_at(origin.index)}")
    loops = [_iteration(loop, number) for loop, number in origin.iterations]
    return user_error(
        FloatingPointError, title, node.loc, cure, [*loops, *notes],
        values=[*_operands(origin), ("result", _result(origin))])


def of_compiled_code(
    name: str, output: Value, index: tuple[int, ...], value: Any, numpys: Any, kernel: Node
) -> FusecError:
    """The error for an element that compiled code alone makes."""
    return user_error(
        FloatingPointError,
        f"{name}: only the fused form, kernel {kernel.name}, made {_kind(value)}{_at(index)} of "
        f"{output.name}", output.node.loc, _STRICT,
        values=[("fused", repr(value.item())), ("node by node", repr(numpys.item()))])


def of_unknown(name: str, reason: Exception) -> FusecError:
    """The error for a call that cannot be run again."""
    return user_error(
        FloatingPointError, f"{name}: a result holds an infinity or NaN, of finite arguments",
        None, "look at its parts with fusec.check_numerics(x)",
        [f"the node is not known: run again through NumPy, the call raised {reason!r}"])


def _kind(value: Any) -> str:
    return "NaN" if np.isnan(value) else "an infinity"


def _at(index: tuple[int, ...]) -> str:
    return f" at [{', '.join(map(str, index))}]" if index else ""


def _iteration(loop: Node, number: int) -> str:
    where = "" if loop.loc is None else f" at {loop.loc}"
    return f"in iteration {number}, counted from 0, of the loop{where}"


def _result(origin: Origin) -> str:
    if not origin.shape:
        return repr(origin.value.item())
    return f"{origin.value.item()!r}, {count_text(origin.count, 'such element')} of " \
           f"{int(np.prod(origin.shape))}"


def _operands(origin: Origin) -> list[tuple[str, str]]:
    return [(operand_title(value, origin.node), _shown(x)) for value, x in origin.operands]


def _shown(x: Any) -> str:
    """A number, or the extent of an array's elements."""
    array = np.asarray(x)
    if array.size == 1:
        return repr(array.reshape(-1)[0].item())
    kind = f"{array.dtype}[{','.join(map(str, array.shape))}]"
    if not array.size or array.dtype.kind == "c":
        return kind
    return f"{kind}, from {array.min().item()!r} to {array.max().item()!r}"
