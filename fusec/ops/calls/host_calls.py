"""Calls of the user's own Python objects, at run time and in program order: random numbers, prints,
warnings, summaries.

``HostCall(order, *operands)`` has an effect.  Its last result is the *order*, which the next such
call reads: an array of rank 0 that stands for the state of everything outside the graph, so data
dependence alone keeps the program's order, also through branches and loops, whose graphs update it.

Attributes: ``action`` (a key of `ACTIONS`), ``target`` (the object, or where the call puts it),
``method``, ``form`` and ``named`` (the arguments, as in `fusec.ops.calls.library`), ``results``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.errors import InternalError
from fusec.ir import Graph, TensorType

from ..admission.row_admissions import HOST
from ..registry import Op, Types, register
from .library import decode

ORDER = TensorType(np.dtype(np.int64), (), "array")


class HostObject(str):
    """An object of the user's: a name in the text form, which also knows where the object is.

    It is ``held`` itself, or leaf number ``leaf`` of the call's arguments, or the object that the
    call has put into slot number ``slot``.
    """

    __slots__ = ("held", "leaf", "slot")
    held: Any
    leaf: int
    slot: int

    @classmethod
    def of(cls, name: str, *, held: Any = None, leaf: int = -1, slot: int = -1) -> HostObject:
        host_object = cls(name)
        host_object.held, host_object.leaf, host_object.slot = held, leaf, slot
        return host_object

    def object_in(self, context: HostContext) -> Any:
        """The object in this call; None before the call has made it."""
        if self.leaf >= 0:
            return context.leaves[self.leaf]
        return context.objects.get(self.slot) if self.slot >= 0 else self.held


class HostContext:
    """The context that host calls of one call of a compiled function share; ``prints``: of lines
    and warnings so far, ``repeated``: of these that were done before the call was taken back."""

    __slots__ = ("leaves", "objects", "prints", "repeated")

    def __init__(self, leaves: Sequence[Any] = ()) -> None:
        self.leaves = leaves
        self.objects: dict[int, Any] = {}
        self.prints = self.repeated = 0


class _Contexts(threading.local):
    def __init__(self) -> None:
        self.stack = [HostContext()]


_contexts = _Contexts()


def context() -> HostContext:
    """The context of the innermost call that is running in this thread."""
    return _contexts.stack[-1]


class host_calls:
    """A call with these argument leaves is running."""

    __slots__ = ("_context", "_stack")

    def __init__(self, leaves: Sequence[Any]) -> None:
        self._context, self._stack = HostContext(leaves), _contexts.stack

    def __enter__(self) -> None:
        self._stack.append(self._context)

    def __exit__(self, *_: object) -> None:
        self._stack.pop()


# ----------------------------------------------------------------------------------------- actions


def _found(value: Any, here: HostContext) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_found(item, here) for item in value)
    return value.object_in(here) if type(value) is HostObject else value


def _arguments(
    arrays: Sequence[Any], form: Any, named: Any, here: HostContext
) -> tuple[list[Any], dict[str, Any]]:
    args = [_found(value, here) for value in decode(form, arrays)]
    return args, {p[1]: _found(decode(p[2], arrays), here) for p in named[1:]}


def _draw(target: Any, method: str, args: list[Any], kwargs: dict[str, Any], _: Any) -> Any:
    return getattr(target, method)(*args, **kwargs)


def _change(target: Any, method: str, args: list[Any], kwargs: dict[str, Any], _: Any) -> Any:
    """The changed copy of the first argument."""
    changed = np.array(args[0], order="K")
    getattr(target, method)(changed, *args[1:], **kwargs)
    return changed


def _make(
    target: HostObject, method: str, args: list[Any], kwargs: dict[str, Any], here: HostContext
) -> tuple[()]:
    here.objects[target.slot] = getattr(np.random, method)(*args, **kwargs)
    return ()


def _print(
    target: Any, method: str, args: list[Any], kwargs: dict[str, Any], here: HostContext
) -> tuple[()]:
    return show_once(here, print, *args, **kwargs)


def _warn(
    target: Any, method: str, args: list[Any], kwargs: dict[str, Any], here: HostContext
) -> tuple[()]:
    return show_once(here, target, *args, **kwargs)


def show_once(
    here: HostContext, function: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> tuple[()]:
    """Print, warn or record; not again where the call is repeated that has done it."""
    if here.repeated:
        here.repeated -= 1
    else:
        here.prints += 1
        function(*args, **kwargs)
    return ()


ACTIONS: dict[str, Callable[..., Any]] = {
    "draw": _draw, "change": _change, "make": _make, "print": _print, "warn": _warn,
    "record": _warn,
}
SHOWN = ("print", "warn", "record")  # those for people, which have an order of their own


def _reference(
    order: Any, *arrays: Any, action: str, target: str, method: str, form: Any, named: Any,
    results: Any,
) -> Any:
    here = context()
    if type(target) is not HostObject:
        raise InternalError(f"{target!r} is the name of an object in a graph that was parsed, "
                            f"which cannot be run")
    receiver: Any = target if action == "make" else target.object_in(here)
    args, kwargs = _arguments(arrays, form, named, here)
    result = ACTIONS[action](receiver, method, args, kwargs, here)
    if result is None or type(result) is tuple:
        return np.asarray(order)
    return result, np.asarray(order)


def prepared(attrs: Mapping[str, Any]) -> Callable[[Sequence[Any]], Any]:
    """The call as a function of its operands, for loops; None stands for no result.

    Draws and summaries with plain arguments, the usual ones, skip the reading of the form.
    """
    action, target, method = attrs["action"], attrs["target"], attrs["method"]
    named = attrs["named"][1:]
    forms = [*attrs["form"][1:], *(pair[2] for pair in named)]
    if action not in ("draw", *SHOWN) or not all(map(_is_flat, forms)):
        return lambda arrays: _last_but_order(_reference(0, *arrays, **attrs))
    count, names, act = len(forms) - len(named), [pair[1] for pair in named], ACTIONS[action]

    def call(arrays: Sequence[Any]) -> Any:
        values = [arrays[f[1]] if type(f) is tuple else f for f in forms]
        keywords = dict(zip(names, values[count:], strict=True)) if names else {}
        here = context()
        result = act(target.object_in(here), method, values[:count], keywords, here)
        return None if type(result) is tuple else result

    return call


def _is_flat(form: Any) -> bool:
    """Whether it is an operand or a literal."""
    return form[0] == "operand" if type(form) is tuple else type(form) is not HostObject


def _last_but_order(results: Any) -> Any:
    return results[0] if type(results) is tuple else None


def _infer(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    return tuple(attrs["results"])


register(Op(
    name="HostCall", kind="extern", infer=_infer, reference=_reference, stateful=True, cost=1000.0,
    may_raise=True, raises="often", takes="i", admits=HOST,
    doc="Calls an object of the user's: a random generator, print. attrs: action, target, method, "
        "form, named, results.",
))


# --------------------------------------------------------------------------------- taking it back


def host_objects(graph: Graph) -> list[HostObject] | None:
    """The objects that a graph's host calls use, those of its sub-graphs too; None: no calls."""
    targets: dict[int, HostObject] = {}
    calls = 0
    graphs = [graph]
    while graphs:
        for node in graphs.pop().nodes:
            graphs += [g for g in node.attrs.values() if isinstance(g, Graph)]
            if node.op == "HostCall":
                calls += 1
                targets[id(node.attrs["target"])] = node.attrs["target"]
    return [o for o in targets.values() if type(o) is HostObject] if calls else None


class Mark:
    """The state of the outside world at a moment of a call, to which it can be taken back.

    Generators get their state back; printed lines are not printed again.
    """

    def __init__(self, objects: Sequence[HostObject]) -> None:
        self.context = context()
        self.prints = self.context.prints
        values = [o.object_in(self.context) for o in objects]
        self.states = [(g, generator_state(g)) for g in values if is_generator(g)]

    def restore(self) -> None:
        self.context.repeated = self.context.prints - self.prints
        for generator, state in self.states:
            set_generator_state(generator, state)


def is_generator(x: Any) -> bool:
    """Whether it is a ``np.random.Generator`` or ``RandomState``; does not import ``np.random``."""
    kind = type(x)
    return kind.__module__ in ("numpy.random._generator", "numpy.random.mtrand") and (
        kind.__name__ in ("Generator", "RandomState"))


def generator_state(generator: Any) -> Any:
    if type(generator).__name__ == "Generator":
        return generator.bit_generator.state
    return generator.get_state(legacy=False)


def set_generator_state(generator: Any, state: Any) -> None:
    if type(generator).__name__ == "Generator":
        generator.bit_generator.state = state
    else:
        generator.set_state(state)


def called_on_host(attrs: Mapping[str, Any]) -> str:
    """The name that the user called: ``np.random.normal``, ``rng.normal``, ``fusec.print``."""
    action, target, method = attrs["action"], attrs["target"], attrs["method"]
    if action in SHOWN:
        return "fusec.print" if action == "print" else str(target)
    return f"np.random.{method}" if action == "make" else f"{target}.{method}"
