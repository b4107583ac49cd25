"""`custom_vjp` and `custom_jvp`: functions whose derivative the program gives itself.

Names and order of arguments are those of JAX.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, Generic, ParamSpec, TypeVar

from fusec.errors import user_error, users_own
from fusec.trace.values.differentiation import Differentiated
from fusec.trace.values.trace import Trace, current

from .point import called
from .rules import RuleCall, backward_rule, forward_rule
from .transformed_functions import check_callable

P = ParamSpec("P")
R = TypeVar("R")


class _Custom(Generic[P, R]):
    """A function with a rule: that of the plain function where nobody asks for derivatives."""

    name = ""
    maker = ""  # the method that takes the rule

    def __init__(self, f: Callable[P, R], nondiff_argnums: Sequence[int] = ()) -> None:
        check_callable(self.name, f)
        functools.update_wrapper(self, f)
        self.python = f
        self.nondiff_argnums = tuple(nondiff_argnums)

    def __repr__(self) -> str:
        return f"<fusec.{self.name} of {getattr(self.python, '__qualname__', self.python)}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function's result."""
        trace = current()
        if trace is None:
            return self.python(*args, **kwargs)
        level = trace.part(Differentiated)
        if not level.times:
            return called(trace, self.python, args, kwargs)
        self._check_rule(trace)
        call = RuleCall(trace, f"{self.name} of {getattr(self.python, '__name__', 'a function')}",
                        self._positional(trace, args, kwargs), self.nondiff_argnums)
        with level.more(-1):  # in the rule, calls of the function are plain ones
            return self._differentiated(call)

    def _check_rule(self, trace: Trace) -> None:
        raise NotImplementedError

    def _differentiated(self, call: RuleCall) -> Any:
        raise NotImplementedError

    def _without_rule(self, trace: Trace) -> Exception:
        return user_error(
            TypeError, f"{self!r} has no rule", trace.loc, f"give it one: f.{self.maker}")

    def _positional(
        self, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        """The arguments by position, with defaults: rules are called with these."""
        bound = inspect.signature(self.python).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise user_error(
                TypeError, f"{self.name} of a function with keyword-only arguments", trace.loc,
                "make them positional", values=[("arguments", ", ".join(bound.kwargs))])
        return bound.args


class custom_vjp(_Custom[P, R]):
    """A function whose backward pass the program gives: a decorator.

    ``f.defvjp(fwd, bwd)``: ``fwd(*args)`` gives ``(result, residuals)``, and ``bwd(residuals,
    cotangents)`` a tuple of the arguments' cotangents, from those of the result; each has the
    structure, shapes and dtypes of its argument, or is None for zero.  Arguments at the positions
    ``nondiff_argnums`` are given to ``bwd`` first, ``bwd(*them, residuals, cotangents)``, and have
    no cotangents.  Where nobody asks for derivatives ``f`` itself runs.  Forward mode transposes
    ``bwd``, which is linear in the cotangents.

    Raises ``TypeError`` and ``ValueError`` for results of the rule that do not fit, and
    ``UnsupportedError`` where ``f`` reads a variable of the derivative from outside of its
    arguments, or the rule writes to memory older than its call.
    """

    name, maker = "custom_vjp", "defvjp(fwd, bwd)"
    forward: Callable[..., Any] | None = None
    backward: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Give the rule: ``fwd(*args)`` and ``bwd(residuals, cotangents)``."""
        check_callable("custom_vjp", fwd)
        check_callable("custom_vjp", bwd)
        self.forward, self.backward = fwd, bwd

    def _check_rule(self, trace: Trace) -> None:
        if self.forward is None:
            raise self._without_rule(trace)

    def _differentiated(self, call: RuleCall) -> Any:
        return backward_rule(call, self.forward, self.backward)


class custom_jvp(_Custom[P, R]):
    """A function whose tangents the program gives: a decorator.

    ``f.defjvp(jvp)``: ``jvp(primals, tangents)`` gives ``(result, tangent)``, the latter linear in
    the tangents; both arguments are tuples.  Arguments at the positions ``nondiff_argnums`` come
    first, ``jvp(*them, primals, tangents)``.  ``f.defjvps(by_x, by_y, ...)`` takes a function for
    each argument, ``by_x(tangent, result, *args)``, or None for zero.  Where nobody asks for
    derivatives ``f`` itself runs.  Reverse mode transposes the rule.  Raises as `custom_vjp` does.
    """

    name, maker = "custom_jvp", "defjvp(jvp)"
    rule: Callable[..., Any] | None = None

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Give the rule ``jvp(primals, tangents)``; also a decorator."""
        check_callable("custom_jvp", jvp)
        self.rule = jvp
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Give the rule as ``jvps``, a function (or None for zero) for each argument."""
        if self.nondiff_argnums:
            raise users_own(TypeError(
                "defjvps of a function with nondiff_argnums: use defjvp(jvp)"))
        self.rule = functools.partial(_by_arguments, self, jvps)

    def _check_rule(self, trace: Trace) -> None:
        if self.rule is None:
            raise self._without_rule(trace)

    def _differentiated(self, call: RuleCall) -> Any:
        return forward_rule(call, self.rule)


def _by_arguments(
    f: custom_jvp, jvps: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    """The sum of the contributions of all arguments."""
    result = f(*primals)
    parts = [jvp(tangent, result, *primals)
             for jvp, tangent in zip(jvps, tangents, strict=True) if jvp is not None]
    return result, sum(parts[1:], parts[0]) if parts else result * 0
