"""`TensorSpec` and `PYTHON_VALUE`: specs of arguments."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import optree

from fusec.errors import user_error, users_own
from fusec.trace.facts.trees import NAMESPACE


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
        return np.zeros(_shape_of(self, sizes), self.dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and (
            (self.shape, self.dtype, self.name) == (other.shape, other.dtype, other.name))

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.name))

    def __repr__(self) -> str:
        dims = "..." if self.shape is None else ", ".join(
            "?" if d is None else str(d) for d in self.shape)
        return f"TensorSpec([{dims}], {self.dtype})"


def _shape_of(spec: TensorSpec, sizes: Iterator[int] | None) -> tuple[int, ...]:
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


def has_open_size(spec: Any) -> bool:
    """Whether arguments that fit may have several shapes."""
    if isinstance(spec, TensorSpec):
        return spec.shape is None or None in spec.shape
    return any(map(has_open_size, _parts(spec)))


def known_sizes(spec: Any) -> set[int]:
    """The sizes that specs give, and arrays in their places have."""
    if isinstance(spec, TensorSpec):
        return {size for size in spec.shape or () if size is not None}
    if isinstance(spec, np.ndarray):
        return {*spec.shape}
    return set().union(*map(known_sizes, _parts(spec)))


def _parts(spec: Any) -> Sequence[Any]:
    """Those of a container; none of anything else."""
    if type(spec) in (list, tuple):
        return [*spec]
    if type(spec) is dict:
        return [*spec.values()]
    found = _taken_apart(spec)
    return [] if found is None else found[0]


def _taken_apart(spec: Any) -> tuple[list[Any], Callable[[list[Any]], Any]] | None:
    """The parts of a named tuple, or of another container that optree knows, and what makes one of
    the like; None for anything else."""
    if spec is None:
        return None
    try:
        parts, data, _, made = optree.tree_flatten_one_level(
            spec, none_is_leaf=True, namespace=NAMESPACE)
    except ValueError:  # a leaf
        return None
    return parts, lambda new: made(data, new)


def example_of(
    spec: Any, sizes: Iterator[int] | None = None, zeros: Callable[..., np.ndarray] = np.zeros,
) -> Any:
    """An argument that fits: arrays that ``zeros`` makes where there are specs, other values as
    they are; unknown sizes are the next of ``sizes``, or 2."""
    if isinstance(spec, TensorSpec):
        return zeros(_shape_of(spec, sizes), spec.dtype)
    if spec is PYTHON_VALUE:
        raise users_own(ValueError("PYTHON_VALUE stands for no one value: give the value"))
    if type(spec) in (list, tuple):
        parts = spec[:1] if any_length(spec) else spec
        return type(spec)(example_of(part, sizes, zeros) for part in parts)
    if type(spec) is dict:
        return {key: example_of(part, sizes, zeros) for key, part in spec.items()}
    found = _taken_apart(spec)
    return spec if found is None else found[1]([example_of(p, sizes, zeros) for p in found[0]])
