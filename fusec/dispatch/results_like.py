"""``like=``: results as arrays of the library that an argument's are of.

Source of the exchange: ``from_dlpack`` of the array API standard, "Data interchange mechanisms".
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fusec.errors import user_error
from fusec.signature.foreign_arguments import is_taken
from fusec.trace.call.foreign_arrays import public_name
from fusec.trace.call.signature import Signature
from fusec.trace.facts.trees import flattened, mapped

Maker = Callable[[np.ndarray], Any]


def conversion(
    signature: Signature, name: str, args: tuple, kwargs: dict[str, Any],
) -> Callable[[Any], Any] | None:
    """What makes a call's result of the kind of argument ``name``; None where that is NumPy's.

    Raises ``TypeError`` where the library of the argument makes no arrays of others.
    """
    try:
        bound = signature.parameters.bind(*args, **kwargs)
    except TypeError:  # the call says it better
        return None
    bound.apply_defaults()
    tree: Any = bound.arguments[name]
    for leaf in flattened(tree)[0]:
        if is_taken(type(leaf)):
            return partial(_converted, _maker_of(leaf, name))
    return None


def _maker_of(x: Any, name: str) -> Maker:
    """``from_dlpack`` of the library that an array is of."""
    if getattr(type(x), "__module__", "").partition(".")[0] == "jaxlib":
        return _lasting(sys.modules["jax"].numpy.from_dlpack)
    find = getattr(x, "__array_namespace__", None)
    home: Any = sys.modules.get(type(x).__module__.partition(".")[0]) if find is None else find()
    make: Maker | None = getattr(home, "from_dlpack", None)
    if make is None and any(c.__module__ == "torch" for c in type(x).__mro__):
        make = sys.modules["torch"].from_dlpack
    if make is None:
        raise user_error(
            TypeError, f"like={name!r}: argument {name} is a {public_name(type(x))}, which no "
            f"result can be made into", None, "leave like= out: results are NumPy's arrays")
    return make


def _lasting(from_dlpack: Maker) -> Maker:
    """Arrays of JAX never change, and a result may be an argument's memory, which can."""
    return lambda x: from_dlpack(x.copy())


def _converted(make: Maker, result: Any) -> Any:
    """A result's arrays and NumPy's numbers by ``make``; copies of what others cannot show."""
    def of(leaf: Any) -> Any:
        if isinstance(leaf, np.generic):
            return make(np.array(leaf))
        if type(leaf) is np.ndarray:
            return make(leaf if _can_be_shown(leaf) else leaf.copy())
        return leaf

    return mapped(of, result)


def _can_be_shown(x: np.ndarray) -> bool:
    """By DLPack, which has no read-only arrays and counts strides in elements; torch ends the
    process where one of these is negative."""
    return x.flags.writeable and all(n >= 0 and n % x.itemsize == 0 for n in x.strides)
