"""Arguments that fit specs, in containers of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import optree

from fusec.errors import users_own
from fusec.trace.facts.trees import NAMESPACE

from .specs import PYTHON_VALUE, TensorSpec, any_length, shape_of


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
    found = _taken_apart(spec)
    return [] if found is None else found[0]


def _taken_apart(spec: Any) -> tuple[list[Any], Callable[[list[Any]], Any]] | None:
    """The parts of a container, and what makes one of the like; None for anything else."""
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
        return zeros(shape_of(spec, sizes), spec.dtype)
    if spec is PYTHON_VALUE:
        raise users_own(ValueError("PYTHON_VALUE stands for no one value: give the value"))
    if any_length(spec):
        return [example_of(spec[0], sizes, zeros)]
    found = _taken_apart(spec)
    return spec if found is None else found[1]([example_of(p, sizes, zeros) for p in found[0]])
