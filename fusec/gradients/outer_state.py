"""State that a function reads beside its arguments, where its derivative is computed later than its
result: `vjp` outside of a compiled function.

The way back computes forwards anew.  With another state than then it would be the derivative of
another result, so that it is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.dispatch.function import Function
from fusec.errors import unsupported, user_error
from fusec.ops.calls.host_calls import host_objects, is_generator

_CURE = ("call fusec.vjp and what it returns in one compiled function, which computes forwards "
         "once; or take fusec.grad")


class OuterState:
    """State that ``function`` reads from outside in a call, Variables among it, as it is now.

    Raises ``UnsupportedError`` where it draws random numbers from a generator that it does not
    make: it would draw others.
    """

    def __init__(self, function: Function, args: tuple[Any, ...]) -> None:
        concrete: Any = function.concrete(*args)
        if any(is_generator(o.held) for o in host_objects(concrete.graph) or ()):
            raise unsupported(
                "drawing random numbers in a function whose fusec.vjp is taken outside of a "
                "compiled one", cure=f"draw them outside and pass them; or {_CURE}")
        self.read = [(x, np.array(_value(x))) for x in concrete.executable.spec.captured]

    def check(self) -> None:
        """Raise ``RuntimeError`` where anything of it is something else than then."""
        for place, then in self.read:
            now = np.asarray(_value(place))
            if now.dtype != then.dtype or not np.array_equal(
                    now, then, equal_nan=then.dtype.kind in "fc"):
                raise user_error(
                    RuntimeError, "a Variable or array that the function reads has changed since "
                    "fusec.vjp: the derivative would be that of another result", None, _CURE)


def _value(place: Any) -> Any:
    return place() if callable(place) else place
