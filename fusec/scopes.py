"""Scopes of a traced program: names, order and places of the nodes that are made inside.

Data dependence already orders everything that can be observed, so a program needs none of them to
be right.  Names make graphs readable; control edges and places are kept by every pass, which the
verifier checks.  Outside of a traced function they do nothing.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any

from fusec.ir import Node
from fusec.ops import get
from fusec.ops.build import Builder
from fusec.trace.operands.operands import as_traced
from fusec.trace.values.trace import Trace, current

from .errors import unsupported, user_error

_NAME = re.compile(r"[A-Za-z_][\w.-]*(/[A-Za-z_0-9][\w.-]*)*/?\Z")


class _Entered(threading.local):
    """What stood there before each time that a scope was entered; threads may share the scope."""

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

    Scopes nest.  Raises ``ValueError`` for what is no name.
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
    """``with fusec.control_dependencies([a, b]):``: what is made inside runs after ``a`` and ``b``.

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


class colocate_with(_Scope):
    """``with fusec.colocate_with(a):``: what is made inside is on the device that ``a`` is on."""

    field = "device"

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.like = value

    def value(self, trace: Trace) -> str:
        return as_traced(trace, self.like).value.node.device
