"""`TensorSpec` and `PYTHON_VALUE`: specs of arguments."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fusec.errors import user_error, users_own


class TensorSpec:
    """A dtype and a shape that an argument must have.

    ``None`` in the shape is any size; ``TensorSpec(None)`` is any shape.  ``name`` is shown where
    the argument is spoken of.  Raises ``TypeError`` for a malformed dtype or shape, and for dtypes
    that nothing is compiled for (objects, texts, dates); ``ValueError`` for a shape with negative
    or fractional sizes.
    """

    __slots__ = ("dtype", "name", "shape")

    def __init__(
        self, shape: Sequence[int | None] | None, dtype: Any = np.float64, name: str | None = None,
    ) -> None:
        self.shape = None if shape is None else tuple(map(_size, _sizes(shape)))
        self.dtype, self.name = _compiled(np.dtype(dtype)), name

    @classmethod
    def like(cls, array: Any) -> TensorSpec:
        """The spec of arrays that have the dtype and shape of this one."""
        example = np.asarray(array)
        return cls(example.shape, example.dtype)

    def admits(self, arg: Any) -> bool:
        """Whether an argument ``arg`` has this dtype and shape."""
        array = np.asarray(arg)
        return array.dtype == self.dtype and self.admits_shape(array.shape)

    def admits_shape(self, shape: tuple[int, ...]) -> bool:
        """Whether an array of this ``shape`` fits."""
        return self.shape is None or (len(shape) == len(self.shape) and all(
            size is None or size == d for size, d in zip(self.shape, shape, strict=True)))

    def example(self, sizes: Iterator[int] | None = None) -> np.ndarray:
        """An array of this type; unknown sizes are the next of ``sizes``, or 2.

        Raises ``ValueError`` for a spec of any shape, which describes more than one graph.
        """
        return np.zeros(shape_of(self, sizes), self.dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and (
            (self.shape, self.dtype, self.name) == (other.shape, other.dtype, other.name))

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.name))

    def __repr__(self) -> str:
        dims = "..." if self.shape is None else ", ".join(
            "?" if d is None else str(d) for d in self.shape)
        return f"TensorSpec([{dims}], {self.dtype})"


def shape_of(spec: TensorSpec, sizes: Iterator[int] | None) -> tuple[int, ...]:
    """That of an example."""
    if spec.shape is None:
        raise users_own(ValueError(
            f"{spec} has no number of axes, so it describes no one graph: give it a shape"))
    sizes = itertools.repeat(2) if sizes is None else sizes
    return tuple(next(sizes) if d is None else d for d in spec.shape)


def _sizes(shape: Any) -> Any:
    if hasattr(shape, "__iter__"):
        return shape
    raise user_error(
        TypeError, "a TensorSpec needs a shape", None,
        "give a tuple: (3,) for one axis of 3 elements, () for a number, None for any shape",
        values=[("given", repr(shape))])


def _compiled(dtype: np.dtype) -> np.dtype:
    if dtype.kind in "biufc":
        return dtype
    raise user_error(
        TypeError, "a TensorSpec needs a dtype of booleans or numbers", None,
        "convert the array first, or leave the argument to Python: fusec.PYTHON_VALUE",
        values=[("given", repr(dtype))])


def _size(size: Any) -> int | None:
    """A size of a shape; numbers that are no sizes are the caller's error."""
    if size is None:
        return None
    try:
        number = size.__index__()
    except AttributeError:
        number = -1
    if number < 0:
        raise users_own(ValueError(
            f"{size!r} is no size: a shape has integers from 0 on, and None for any size"))
    return int(number)


class _PythonValue:
    """The class of `PYTHON_VALUE`; pickling and copying give the one instance."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "PYTHON_VALUE"

    def __reduce__(self) -> str:
        return "PYTHON_VALUE"


PYTHON_VALUE = _PythonValue()
"""In an ``input_signature``: a Python value, and a trace for each."""


def checked_specs(specs: Any) -> tuple[Any, ...]:
    """The ``input_signature`` that a user gave.

    Raises ``TypeError`` for anything but a sequence of specs, lists, tuples and dicts of them.
    """
    if not isinstance(specs, (list, tuple)):
        raise _no_spec(specs, "input_signature", "give a tuple of TensorSpecs, one an argument")
    for position, spec in enumerate(specs):
        _check(spec, f"input_signature[{position}]")
    return tuple(specs)


def _check(spec: Any, path: str) -> None:
    if isinstance(spec, TensorSpec) or spec is PYTHON_VALUE:
        return
    if any_length(spec):
        spec = spec[:1]
    if not isinstance(spec, (list, tuple, dict)):
        raise _no_spec(spec, path, "give a TensorSpec, PYTHON_VALUE, or a list, tuple or dict of "
                       "them; [spec, ...] is a list of any length")
    for key, part in items(spec):
        _check(part, f"{path}[{key!r}]")


def _no_spec(given: Any, path: str, cure: str) -> Exception:
    return user_error(TypeError, f"{path} is no spec", None, cure, values=[("given", repr(given))])


def items(tree: Any) -> Iterator[tuple[Any, Any]]:
    return iter(tree.items()) if isinstance(tree, dict) else enumerate(tree)


def any_length(spec: Any) -> bool:
    """Whether it is ``[spec, ...]``, a list of any length."""
    return type(spec) is list and len(spec) == 2 and spec[1] is ...


def python_values(spec: Any, path: str) -> Iterator[str]:
    """Where in an argument a `PYTHON_VALUE` stands."""
    if spec is PYTHON_VALUE:
        yield path
    elif not isinstance(spec, TensorSpec):
        for key, part in items(spec):
            if part is not ...:
                yield from python_values(part, f"{path}[{key!r}]")
