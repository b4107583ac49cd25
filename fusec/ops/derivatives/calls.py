"""Calls of libraries in rules: a node's arguments, and new calls.

A library's row keeps its call as plain data (`library`); rules read it as a Python call
of terms, and make further calls the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.ir import TensorType, Value

from ..calls.library import decode
from .protocol import Site
from .terms import Term

Shape = Sequence[Any]


def arguments(site: Site, names: str, skipped: int = 0) -> dict[str, Any]:
    """The arguments of a call by name: terms, lists and tuples of terms, and plain data.

    ``names`` are those of the function's parameters, in order; ``skipped`` positions before them
    name the function itself.
    """
    operands = site.operands
    given = [decode(form, operands) for form in site.attrs["form"][1 + skipped:]]
    keywords = {pair[1]: decode(pair[2], operands) for pair in site.attrs["named"][1:]}
    return {**dict(zip(names.split(), given, strict=False)), **keywords}


def call(
    like: Term, op: str, *args: Any, results: Sequence[TensorType], **named: Any
) -> list[Term]:
    """The results of a call of a library's row; terms among its arguments are its operands."""
    operands: list[Any] = []
    form = ("tuple", *(_form(arg, operands) for arg in args))
    pairs = ("tuple", *(("tuple", k, _form(v, operands)) for k, v in named.items()))
    first = like.builder.emit(op, *operands, form=form, named=pairs, results=tuple(results))
    return [Term(like.builder, value) for value in first.node.outputs]


def _form(argument: Any, operands: list[Any]) -> Any:
    if isinstance(argument, Term):
        operands.append(argument.value)
        return ("operand", len(operands) - 1)
    if isinstance(argument, tuple | list):
        tag = "tuple" if isinstance(argument, tuple) else "list"
        return (tag, *(_form(item, operands) for item in argument))
    return argument


def array(dtype: np.dtype, shape: Shape) -> TensorType:
    """The type of a result: an array, or of rank 0 a NumPy scalar."""
    return TensorType(np.dtype(dtype), tuple(shape), "array" if len(shape) else "scalar")


def by_values(site: Site, found: Mapping[Value, Term]) -> list[Term | None]:
    """Cotangents of operands, each value's at the first operand that it is: the engine adds up."""
    left = dict(found)
    return [left.pop(x.value, None) for x in site.operands]
