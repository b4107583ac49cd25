"""Scopes of a traced program: names, order and places of the nodes that are made inside.

Data dependence already orders everything that can be observed, so a program needs none of them to
be right.  Names make graphs readable; control edges and places are kept by every pass, which the
verifier checks.  Outside of a traced function names and order do nothing; a place holds there for
functions that are called and for Variables that are made.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from typing import Any

from fusec.errors import unsupported, user_error
from fusec.ir import Loc, Node
from fusec.ir.device_names import DeviceName
from fusec.ops import get
from fusec.ops.build import Builder
from fusec.state import device_context
from fusec.state.variable import Variable
from fusec.trace.operands.operands import as_traced
from fusec.trace.values.trace import Trace, current, user_frame

from .device_scopes import (
    ANYWHERE,
    DeviceScope,
    Together,
    agreed,
    checked_name,
    inside,
    item_of,
    name_of,
)
from .devices import DeviceInfo

Where = Callable[[], Loc | None]
_RUNS_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_SENDS = {None: None, "exact": "", "bfloat16": "bfloat16"}

_NO_VALUES = (type(None), str, bytes, dict, DeviceName, DeviceInfo)
_NAME = re.compile(r"[A-Za-z_][\w.-]*(/[A-Za-z_0-9][\w.-]*)*/?\Z")


class _Entered(threading.local):
    """The scopes from before each entry of a scope; threads may share the scope."""

    def __init__(self) -> None:
        self.before: list[tuple[Builder, Any]] = []


class _Scope:
    """A context manager that sets something of the builder of the trace that is running."""

    field: str

    def __init__(self) -> None:
        self._entered = _Entered()

    def value(self, trace: Trace) -> Any:
        raise NotImplementedError

    def __enter__(self) -> None:
        trace = current()
        if trace is not None:
            value = self.value(trace)
            self._entered.before.append((trace.builder, getattr(trace.builder, self.field)))
            setattr(trace.builder, self.field, value)

    def __exit__(self, *error: object) -> None:
        if self._entered.before:
            builder, before = self._entered.before.pop()
            setattr(builder, self.field, before)


class name_scope(_Scope):
    """``with fusec.name_scope("layer1"):``: names of nodes made inside begin with ``layer1/``.

    Scopes nest.  Raises ``ValueError`` for a malformed name.
    """

    field = "scope"

    def __init__(self, name: str) -> None:
        super().__init__()
        if not isinstance(name, str) or not _NAME.match(name):
            raise user_error(ValueError, f"{name!r} is no name of a scope", None,
                             "letters, digits, _, . and -, and / between scopes")
        self.name = name.rstrip("/")

    def value(self, trace: Trace) -> str:
        return f"{trace.builder.scope}{self.name}/"


class control_dependencies(_Scope):
    """``with fusec.control_dependencies([a, b]):``: nodes made inside run after ``a`` and ``b``.

    They are values of the traced program; numbers and arguments are there before everything.
    Inside of a branch or loop they must be of the same side or body.
    """

    field = "control_inputs"

    def __init__(self, values: Sequence[Any]) -> None:
        super().__init__()
        if not isinstance(values, (list, tuple)):
            raise user_error(TypeError, "control_dependencies takes a list of values", None,
                             "control_dependencies([a, b])",
                             values=[("given", type(values).__name__)])
        self.values = tuple(values)

    def value(self, trace: Trace) -> tuple[Node, ...]:
        nodes = [as_traced(trace, value).value.node for value in self.values]
        dependencies = [node for node in nodes if not get(node.op).is_given]
        began = trace.record.regions[-1] if trace.record.regions else 0
        if any(node.id < began for node in dependencies):
            raise unsupported(
                "control_dependencies in a branch or loop on a value of outside", loc=trace.loc,
                cure="put the with statement around the branch or loop")
        return tuple(dict.fromkeys((*trace.builder.control_inputs, *dependencies)))


class _Place(_Scope, ContextDecorator):
    """A scope that says where nodes are to be, in a trace and around calls."""

    field = "devices"

    def __call__(self, func: Any) -> Any:
        """The function within the scope; raises ``TypeError`` for one whose body runs later."""
        if getattr(getattr(func, "__code__", None), "co_flags", 0) & _RUNS_LATER:
            raise user_error(
                TypeError, f"{func.__qualname__} is a generator or a coroutine: its body runs when "
                f"the scope that decorates it has been left", None,
                "put the with statement into the function")
        return super().__call__(func)

    def within(self, scope: DeviceScope | None, where: Where) -> DeviceScope | None:
        """The scope that it makes where ``scope`` is around it; ``where`` gives the user's line."""
        raise NotImplementedError

    def value(self, trace: Trace) -> DeviceScope | None:
        around: Any = trace.builder.devices
        return self.within(around, lambda: trace.loc)

    def __enter__(self) -> None:
        if current() is not None:
            super().__enter__()
        else:
            device_context.enter(self.within(device_context.entered().scope, user_frame), self)

    def __exit__(self, *error: object) -> None:
        if self._entered.before:
            super().__exit__(*error)
        else:
            device_context.leave(self)


class device(_Place):
    """``with fusec.device("/device:CPU:1"):``: where the nodes made inside are to be.

    ``spec`` is the name of a device, whole (``/job:localhost/task:0/device:CPU:1``) or in part
    (``/device:CPU:*``, ``CPU:1``), one of `fusec.devices`, or a *device function*: it is called
    while tracing for each node that is made, with its ``op``, ``name``, ``inputs`` (``name``,
    ``dtype``, ``shape``) and ``loc``, and gives a name, or None where it has nothing to say.  Parts
    that a name leaves out are those of the scope around it; the number of a device only if the type
    is the same.  None forgets the scopes around.

    ``sends="bfloat16"``: float32 values that are made inside lose the lower 16 of their bits where
    they go to another device, for half the time of sending; ``"exact"`` ends that inside of such a
    scope.

    Outside of traced functions it is around the calls made inside, which have traces of their own
    for each scope, and Variables live on the device in whose scope they are made.  Scopes are of a
    thread and of a task of asyncio.  It decorates functions as well.

    Raises ``ValueError`` for malformed names and formats, and, when it is entered, for a name that
    no device has; ``TypeError`` for other specs.
    """

    def __init__(self, spec: Any, *, sends: str | None = None) -> None:
        super().__init__()
        trace = current()
        loc = trace.loc if trace else None
        self.item = None if spec is None else item_of(spec, loc)
        if type(sends) not in (str, type(None)) or sends not in _SENDS:
            raise user_error(
                ValueError, f"values cannot be sent as {sends!r}", loc, "give one of the formats",
                values=[("formats", ", ".join(repr(each) for each in _SENDS if each))])
        self.sends = _SENDS[sends]

    def __repr__(self) -> str:
        sends = "" if self.sends is None else f", sends={self.sends or 'exact'!r}"
        return f"<fusec.device {None if self.item is None else str(self.item)!r}{sends}>"

    def within(self, scope: DeviceScope | None, where: Where) -> DeviceScope | None:
        if self.item is None:
            return inside(None, ANYWHERE, self.sends)
        item = self.item
        if isinstance(item, DeviceName) and scope is not None:
            item = agreed(checked_name(item, scope.name or ANYWHERE, where), scope.beside, where)
        elif isinstance(item, DeviceName):
            item = checked_name(item, ANYWHERE, where)
        return inside(scope, item, self.sends)

    def checked_now(self) -> DeviceScope | None:
        """The scope that it would make if it were entered now, outside of a trace."""
        return self.within(device_context.entered().scope, user_frame)

    def scope_now(self) -> DeviceScope | None:
        """The same where that has been checked before."""
        scope: DeviceScope | None = device_context.entered().scope
        return inside(scope, self.item, self.sends) if self.item is not None else (
            inside(None, ANYWHERE, self.sends))


def own_scope(spec: Any) -> device:
    """The scope that ``fusec.jit(device=...)`` says; raises as `device` does, and for functions."""
    return device(name_of(spec))


class colocate_with(_Place):
    """``with fusec.colocate_with(a):``: nodes made inside are on the device that ``a`` is on.

    ``a`` is a value of the traced program, whose device may not be decided yet, or a Variable,
    outside of traced functions, too.  Scopes of devices around it are forgotten; one inside says
    more of the device of both.  Raises ``ValueError`` where such a scope contradicts, ``TypeError``
    where ``a`` is neither.
    """

    def __init__(self, value: Any) -> None:
        super().__init__()
        if isinstance(value, _NO_VALUES):
            trace = current()
            raise user_error(
                TypeError, "colocate_with takes a value of the program, or a Variable",
                trace.loc if trace else None, "a device by its name is fusec.device(name)",
                values=[("given", f"{type(value).__name__} {value!r}"[:200])])
        self.like = value

    def __repr__(self) -> str:
        return f"<fusec.colocate_with {getattr(self.like, 'title', type(self.like).__name__)}>"

    def within(self, scope: DeviceScope | None, where: Where) -> DeviceScope | None:
        if isinstance(self.like, Variable):
            name = checked_name(name_of(self.like.device), ANYWHERE, where)
            return inside(scope, Together(name, "", self.like.title))
        trace = current()
        node = None if trace is None else as_traced(trace, self.like).value.node
        if node is None or node.op == "Const":  # which is on every device
            return scope
        place, anchor = device_context.parts_of(node.device)
        return inside(scope, Together(name_of(place), anchor or node.name, node.name))
