"""Checks: nodes that raise the program's own exception where a condition does not hold.

A check has an effect, so passes neither remove nor move it; a branch or loop that holds one has an
effect too.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType, MemberDescriptorType
from typing import Any

import numpy as np

from fusec import errors
from fusec.core.program_errors import SavedProgramError
from fusec.errors import FusecError
from fusec.ir import Node, TensorType

from ..admission.admission import ANYTHING, BY_PASSES, Admission, require
from ..registry import REAL, Op, Types, get, register

PLAIN = (str, int, float, complex, bool, type(None))  # attributes of nodes, which have texts
_HEAP_TYPE = 1 << 9  # of ``__flags__``: the class is made by a ``class`` statement
SAVED_ERROR = f"{SavedProgramError.__module__}.{SavedProgramError.__qualname__}"
_classes: dict[str, Any] = {}


Description = tuple[Any, ...]  # the name of a class, arguments, and what else there is


# What the classes' own ``__init__`` takes out of the arguments.
_KEPT_APART: dict[type[BaseException], tuple[str, ...]] = {
    OSError: ("filename", "filename2"), ImportError: ("name", "path"), NameError: ("name",)}


def describe_error(error: BaseException) -> Description | None:
    """An exception as plain data, its class by name; None if its arguments are no plain data."""
    state = () if isinstance(error, FusecError) else tuple(_attributes(error))
    if not all(type(a) in PLAIN for a in (*error.args, *(value for _, value in state))):
        return None
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else (
        f"{kind.__module__}.{kind.__qualname__}")
    _classes[name] = kind
    cause = None if error.__cause__ is None else describe_error(error.__cause__)
    return (name, tuple(error.args), state, cause) if state or cause else (name, tuple(error.args))


def _attributes(error: BaseException) -> Iterator[tuple[str, Any]]:
    """Its attributes besides its arguments, in slots as well (``axis`` of NumPy's `AxisError`,
    ``filename``)."""
    yield from vars(error).items()
    for builtin, names in _KEPT_APART.items():
        if isinstance(error, builtin):
            yield from ((name, getattr(error, name)) for name in names
                        if getattr(error, name) is not None)
    for base in type(error).__mro__:
        for name, slot in vars(base).items():
            if type(slot) is MemberDescriptorType and base.__flags__ & _HEAP_TYPE:
                try:
                    yield name, slot.__get__(error)
                except AttributeError:  # nothing was assigned
                    continue


def make_error(error: Description) -> BaseException:
    """The exception that `describe_error` described in this process.

    Its own ``__init__`` has run and may take other arguments than those that it keeps.
    """
    name, args, *rest = error
    kind = _classes[name]
    has_own = type(kind.__init__) is FunctionType or type(kind.__new__) is FunctionType
    is_whole = issubclass(kind, FusecError) or (kind is _known_class(name) and not any(rest[:1]))
    if has_own and not is_whole:
        exception = next(c for c in kind.__mro__ if "__new__" in vars(c) and type(
            c.__new__) is not FunctionType).__new__(kind, *args)
        exception.args = args
    else:
        exception = kind(*args)
    if rest:
        state, cause = rest
        for name, value in state:
            object.__setattr__(exception, name, value)
        if cause is not None:
            exception.__cause__ = make_error(cause)
    return exception


def infer_check(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    return (TensorType(np.dtype(np.bool_), (), "scalar"),)


def check_reference(holds: Any, error: Description) -> Any:
    if not holds:
        raise make_error(error)
    return np.bool_(True)


def verify_reference(holds: Any, error: Any = None) -> Any:
    """As `check_reference`; without ``error`` the condition alone, as kernels compute it."""
    return check_reference(holds, error) if error is not None else np.bool_(holds)


def ran_reference(result: Any) -> Any:
    return np.bool_(True)


def is_check(node: Node) -> bool:
    """Whether the node does nothing but raise."""
    row = get(node.op)
    return row.stateful and row.checks != ""


def has_effects(node: Node) -> bool:
    """Whether running the node does more than give its results."""
    row = get(node.op)
    if row.stateful:
        return True
    return row.kind == "call" and any(
        get(op).stateful for graph in node.graphs for op in graph.ops)


def may_raise(node: Node) -> bool:
    """Whether the node may raise, or a check that its kernel does."""
    if node.op == "Fused":
        return any(map(may_raise, node.attrs["body"].nodes))
    return has_effects(node) or get(node.op).may_raise


def _admitted(node: Node) -> None:
    condition = node.inputs[0].type
    require(condition.dtype.kind == "b" and not condition.shape, f"it checks {condition}")
    _admitted_error(node.attrs["error"], 8)


def _known_class(name: Any) -> Any:
    """The class of that name among those that every process has."""
    if type(name) is not str:
        return None
    if name == "numpy.linalg.LinAlgError":
        return np.linalg.LinAlgError
    if name.startswith("numpy.exceptions."):
        return getattr(np.exceptions, name.removeprefix("numpy.exceptions."), None)
    if name == SAVED_ERROR:
        return SavedProgramError
    own = getattr(errors, name.removeprefix("fusec.errors."), None) if (
        name.startswith("fusec.errors.")) else None
    if own is not None:
        return own if isinstance(own, type) and issubclass(own, FusecError) else None
    return getattr(builtins, name, None)


def is_known_error(error: Sequence[Any]) -> bool:
    """Whether every process can make what `describe_error` described of its arguments alone:
    attributes are then those that its class makes of them."""
    name, arguments, *rest = error
    kind = _known_class(name)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        return False
    attributes = dict(rest[0]) if rest else {}
    return not attributes or attributes == dict(_attributes(kind(*arguments)))


def _admitted_error(error: Any, depth: int) -> None:
    """An exception of Python's own, described by plain data, which can be made of it."""
    require(type(error) is tuple and len(error) in (2, 4) and depth > 0, "its error is none")
    name, args, *rest = error
    kind = _known_class(name)
    require(isinstance(kind, type) and issubclass(kind, Exception),
            f"{name!r} is no exception of Python's, NumPy's or fusec's own",
            "raise a built-in exception there")
    require(type(args) is tuple and all(type(a) in PLAIN for a in args),
            "the arguments of its error are no plain data")
    require(not rest or rest[0] == (), "its error has attributes of its own")
    if rest and rest[1] is not None:
        _admitted_error(rest[1], depth - 1)
    try:
        kind(*args)
    except Exception as raised:
        require(False, f"{name} cannot be made of {args}: {raised}")
    _classes[name] = kind


register(Op(
    name="Check", kind="extern", arity=1, infer=infer_check, reference=check_reference,
    stateful=True, may_raise=True, checks="condition", takes="?",
    admits=Admission({"error": ANYTHING}, rule=_admitted),
    doc="Raises where its operand is false; attrs: error: the exception's class and arguments.",
))
register(Op(
    name="Verify", kind="elementwise", arity=1, scalar="verify", infer=infer_check,
    reference=verify_reference, stateful=True, may_raise=True, takes="?", admits=BY_PASSES,
    doc="A Check that a kernel makes; where its operand is false the call is repeated through "
        "NumPy, which raises. attrs: error.",
))
register(Op(
    name="Ran", kind="extern", arity=1, infer=infer_check, reference=ran_reference, stateful=True,
    checks="call", takes=REAL + "c", called="a library call", admits=Admission({}),
    doc="Keeps a call that nothing reads the results of, as it may raise; true.",
))
