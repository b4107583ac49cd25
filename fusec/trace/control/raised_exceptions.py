"""Exceptions that the program raises while a branch or loop that data decides is traced.

Compiled code raises them where the run gets there, and assignments made by then stay (see
`states`); defects of the tracer, and refusals of fusec, are raised at once.
"""

from __future__ import annotations

from traceback import walk_tb
from typing import Any

from fusec.core.code_roles import is_on_behalf
from fusec.errors import FusecError, unsupported
from fusec.ir import Node, Value
from fusec.ir.sizes.dims import UndecidedSizeError
from fusec.ir.sizes.symbolic_numbers import Symbolic
from fusec.ops.calls.checks import PLAIN, describe_error

from ..choice.choice import unbound
from ..choice.flat_results import flat_results
from ..choice.half_choices import UnboundReads
from ..facts.error_states import CheckedValue, State, States
from ..facts.trees import flattened
from ..guards.places import Places
from ..operands.texts import without_values
from ..places.shared_results import linked
from ..values.array import TracedArray
from ..values.exception_handlers import check_caused, is_raised_there, raised_at
from ..values.operations import operation
from ..values.selected_arrays import Selected
from ..values.trace import Trace

_LIBRARIES = ("numpy", "optree")
_LEAF = flattened(0)[1]


def check_not(trace: Trace, test: Value, error: BaseException) -> None:
    """Raise the program's own ``error``, met while its code was traced, where the test holds."""
    if not is_programs(error):
        raise error
    trace.check(trace.emit("LogicalNot", test), as_checked(trace, error))


def is_programs(error: BaseException) -> bool:
    """Whether eager code raises it too: it is NumPy's, or the program's own.

    A recursion that data would end has no end while tracing: that one is not.
    """
    if isinstance(error, RecursionError):
        return False
    if not isinstance(error, Exception) and not is_raised_there(error):
        return False
    if getattr(error, "in_numpys_words", None) is not None:
        return True
    return not isinstance(error, (FusecError, UndecidedSizeError)) and _is_programs_own(error)


def free_variable(error: BaseException) -> str:
    """The variable of an outer function that Python raised it for, since it has no value."""
    where = raised_at(error)
    is_free = type(error) is NameError and where is not None and (
        error.name in where.tb_frame.f_code.co_freevars)
    return error.name if is_free else ""  # type: ignore[attr-defined]


def _is_programs_own(error: BaseException) -> bool:
    """Whether the program raised it, or Python or NumPy on its behalf: no defect of the tracer."""
    modules = [frame.f_globals for frame, _ in walk_tb(error.__traceback__)]
    return is_on_behalf(next(m for m in reversed(modules) if not _is_library(m)))


def _is_library(module_globals: dict[str, Any]) -> bool:
    return str(module_globals.get("__name__", "")).partition(".")[0] in _LIBRARIES


def as_checked(trace: Trace, raised: BaseException) -> BaseException:
    """The exception that compiled code raises for one that tracing met."""
    check_caused(trace, raised)
    error: BaseException = getattr(raised, "in_numpys_words", None) or raised
    name = free_variable(error)
    if name:  # of a part of the function
        error = unbound(name)
        trace.part(UnboundReads).add(name)
    if isinstance(error, StopIteration):  # the other side would go on for ever
        raise unsupported(
            "raising StopIteration where data decides (by next() of what has no more items, or by "
            "an iterator of the program's own)", loc=trace.loc,
            cure="give next() a default: next(items, None), or loop with while")
    without_values(error)
    if describe_error(error) is None:
        raise unsupported(
            f"raising {type(error).__name__} with {_kept_by_no_node(error)} in a branch that data "
            f"decides", loc=trace.loc, cure="raise it with numbers and texts",
        ) from error
    return error


def _kept_by_no_node(error: BaseException) -> str:
    kind = next((type(x) for x in error.args if type(x) not in PLAIN), None)
    if kind is None:
        return "attributes that are no numbers or texts"
    return "a size" if kind is Symbolic else f"an argument of type {kind.__name__}"


@operation
def note_state(trace: Trace, node: Node, state: State | None = None) -> None:
    """``node`` may raise: the program's assignments by now, or in ``state``, stay.

    A node in a branch or loop that data decides is none of the graph's own: there it is those
    before the outermost one."""
    state = state_now(trace) if state is None else state
    if state is not None:
        trace.part(States).noted.append((node, state))


@operation
def state_now(trace: Trace) -> State | None:
    """The assignments by now; None: there are none, the place is inside of several branches, or
    they could not be put together after a call (they may be later)."""
    world = trace.world
    changed = trace.part(Places).before or world.containers.held
    if len(trace.record.regions) > 1 or not (changed or trace.record.journal):
        return None
    effects = world.containers.effects()
    written = [(s.origin, s.value) for s in trace.feeds.storages
               if s is not None and s.version > 0 and s.origin is not None]
    if not effects and not written:
        return None
    try:
        parts = _parts(trace, [value for _, value in effects])
    except FusecError:
        return None
    return State([(assignment, tree, [_noted(x) for x in leaves])
                  for (assignment, _), (leaves, tree) in zip(effects, parts, strict=True)], written)


def _parts(trace: Trace, values: list[Any]) -> list[tuple[list[Any], Any]]:
    """The leaves and structure of each; mostly they are leaves."""
    if all(map(_is_leaf, values)):
        return [([value], _LEAF) for value in values]
    return [flat_results(trace, value) for value in linked(trace, values, None)[0]]


def _is_leaf(value: Any) -> bool:
    return type(value) in (bool, int, float, str) or (
        type(value) is TracedArray and not isinstance(value.storage, Selected))


def _noted(leaf: Any) -> Any:
    return CheckedValue(leaf.value, leaf.is_array) if type(leaf) is TracedArray else leaf
