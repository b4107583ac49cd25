"""Calls with arrays of xarray's: the function sees the arrays, results get labels.

Dimensions and coordinates go where the axes of arguments go (`axis_names`); attributes and names
follow xarray's rules for arithmetic of the arguments.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import optree
import xarray

from fusec.compiled.tracing_compiler import TracingCompiler
from fusec.core.records import dataclass
from fusec.errors import unsupported, user_error
from fusec.ir import Value
from fusec.passes.pipeline import splittable
from fusec.signature import blocks
from fusec.signature.unwritten_arrays import unwritten
from fusec.trace.facts.trees import flattened

from ..split_plan import with_views
from .axis_names import Axes, Axis, axes_of

Call = Callable[[tuple, dict[str, Any]], Any]


def labelled_call(
    compiler: TracingCompiler, call: Call, args: tuple, kwargs: dict[str, Any]
) -> Any:
    """The result of a call of which arguments have labels; ``call``: that of arrays alone.

    Raises ``ValueError`` where coordinates of one dimension differ, and where dimensions of two
    names meet on one axis.
    """
    leaves, spec = flattened((args, kwargs))
    if any(isinstance(leaf, xarray.Dataset) for leaf in leaves):
        return _of_datasets(compiler, call, leaves, spec)
    arrays = [leaf for leaf in leaves if isinstance(leaf, xarray.DataArray)]
    _check_indexes(arrays)
    plain = _without_labels(leaves)
    result = call(*spec.unflatten(plain))
    is_shared = _is_shared(plain, leaves)
    standing = [_standing(data, is_shared and data is not leaf)
                for data, leaf in zip(plain, leaves, strict=True)]
    given = {id(made): leaf for made, leaf in zip(standing, leaves, strict=True)
             if isinstance(leaf, xarray.DataArray)}
    return _Labels(compiler, arrays, given).put_on(result, *spec.unflatten(standing))


def without_labels(args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """The arguments as arrays of NumPy's and Dask's."""
    leaves, spec = flattened((args, kwargs))
    if any(isinstance(leaf, xarray.Dataset) for leaf in leaves):
        raise unsupported("a Dataset where one array is explained",
                          cure="pass one of its variables: ds['name']")
    plain: tuple[tuple, dict[str, Any]] = spec.unflatten(_without_labels(leaves))
    return plain


def _without_labels(leaves: Sequence[Any]) -> list[Any]:
    """The leaves with arrays for labelled ones, each of NumPy's an array of its own."""
    found = [leaf.data if isinstance(leaf, xarray.DataArray) else leaf for leaf in leaves]
    return [data[...] if data is not leaf and isinstance(data, np.ndarray) else data
            for data, leaf in zip(found, leaves, strict=True)]


def _is_shared(plain: Sequence[Any], leaves: Sequence[Any]) -> bool:
    """Whether labelled arrays of NumPy's lie at one place: such arguments are traced as one."""
    places = [data.__array_interface__["data"][0]
              for data, leaf in zip(plain, leaves, strict=True)
              if data is not leaf and isinstance(data, np.ndarray)]
    return len({*places}) < len(places)


def _standing(leaf: Any, is_shared: bool) -> Any:
    """What a leaf is traced as: an array that takes no memory, for one in blocks and one whose
    memory is another argument's; a new one for each, since one array may have several labels."""
    is_in_blocks = blocks.may_be_there() and blocks.are_in_blocks(leaf)
    return unwritten(tuple(map(int, leaf.shape)), leaf.dtype) if is_in_blocks or is_shared else leaf


def _check_indexes(arrays: Sequence[Any]) -> None:
    """Raise where arrays have different labels along one dimension: nothing is aligned here."""
    try:
        xarray.align(*arrays, join="exact", copy=False)
    except ValueError as error:
        raise user_error(
            ValueError, f"labels of arguments differ: {error}", None,
            "xarray.align(x, y, join='inner') keeps what both have") from None


@dataclass(frozen=True)
class _AxesOf:
    """Stands for an array of a result; one of a long list's items is a part of it."""

    shape: tuple[int, ...]
    axes: Axes

    def __getitem__(self, number: int) -> _AxesOf:
        return _AxesOf(self.shape[1:], self.axes[1:])


@dataclass(frozen=True)
class _Labels:
    """The labels of a call's arguments; ``given``: labelled arrays by the identity of the arrays
    that the function was traced with."""

    compiler: TracingCompiler
    arrays: Sequence[Any]
    given: Mapping[int, Any]

    def put_on(self, result: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result's arrays with labels."""
        call = self.compiler.flatten(args, kwargs)
        traced = self.compiler.traced(call)
        graph, numbers = with_views(traced.graph.made, traced, None)
        graph = splittable(graph, self.compiler.options)
        named: dict[Value, Axes] = {}
        whole: dict[int, Any] = {}
        for leaf, number in zip(call.leaves, traced.positions, strict=True):
            array = self.given.get(id(leaf))
            if array is not None and number >= 0:
                named[graph.inputs[number]] = tuple(Axis(name) for name in array.dims)
                whole[number] = array
        axes = axes_of(graph, named)
        marks, shape = flattened(traced.treespec.unflatten([
            _AxesOf(tuple(map(int, graph.outputs[number].shape)), axes[graph.outputs[number]])
            if number is not None else whole.get(output.index) if output.kind == "input" else None
            for number, output in zip(numbers, traced.outputs, strict=True)]))
        return shape.unflatten([
            self._array(leaf, mark.axes) if isinstance(mark, _AxesOf) else
            leaf if mark is None else mark
            for leaf, mark in zip(shape.flatten_up_to(result), marks, strict=True)])

    def _array(self, data: Any, axes: Axes) -> Any:
        names = _names(axes)
        kept = {name: (axis.start, size) for name, axis, size in zip(
            names, axes, np.shape(data), strict=True) if axis and axis.dimension == name}
        attrs, name = _attributes(self.arrays)
        array = xarray.DataArray(data, dims=names, coords=self._coords(kept), attrs=attrs)
        array.name = name  # xarray takes that of the tasks for none
        return array

    def _coords(self, kept: Mapping[Hashable, tuple[int | None, int]]) -> dict[Any, Any]:
        """The coordinates whose dimensions a result has all; of those that differ none."""
        found: dict[Any, Any] = {}
        for array in self.arrays:
            for name, coord in array.coords.items():
                part = _part(coord.variable, kept)
                if part is None or (name in found and found[name] is None):
                    continue
                same = name not in found or _are_equal(found[name], part)
                found[name] = part if same else None
        return {name: part for name, part in found.items() if part is not None}


def _names(axes: Axes) -> list[Hashable]:
    """A name for each axis: its dimension, once; ``dim_`` and its number or the next that is none's
    for the others."""
    taken: set[Hashable] = {axis.dimension for axis in axes if axis}
    names: list[Hashable] = []
    for number, axis in enumerate(axes):
        if axis is not None and axis.dimension not in names:
            names.append(axis.dimension)
            continue
        free = next(n for n in itertools.count(number) if f"dim_{n}" not in taken)
        names.append(f"dim_{free}")
        taken.add(f"dim_{free}")
    return names


def _are_equal(one: Any, other: Any) -> bool:
    """Whether coordinates are the same; those in blocks where they are the same tasks: nothing is
    computed to find out."""
    names = [getattr(v.data, "name", None) for v in (one, other)]
    in_blocks = any(hasattr(v.data, "dask") for v in (one, other))
    return bool(names[0] == names[1] if in_blocks else one.equals(other))


def _part(variable: Any, kept: Mapping[Hashable, tuple[int | None, int]]) -> Any:
    """The part of a coordinate along the dimensions of a result; None where it has not all."""
    slices = {}
    for dimension, length in variable.sizes.items():
        start, size = kept.get(dimension, (None, 0))
        if start is None or start < 0 or start + size > length:
            return None
        slices[dimension] = slice(start, start + size)
    return variable.isel(slices)


def _attributes(arrays: Sequence[Any]) -> tuple[dict[Any, Any], Any]:
    """What xarray gives arithmetic of these: asked of it, with numbers in the arrays' place."""
    numbers = [xarray.DataArray(0.0, attrs=array.attrs, name=array.name) for array in arrays]
    result = functools.reduce(operator.add, numbers[1:], +numbers[0])
    return dict(result.attrs), result.name


def _of_datasets(
    compiler: TracingCompiler, call: Call, leaves: Sequence[Any], spec: Any
) -> Any:
    """The function of each variable that the Datasets have."""
    datasets = [leaf for leaf in leaves if isinstance(leaf, xarray.Dataset)]
    names = list(datasets[0].data_vars)
    for other in datasets[1:]:
        if set(other.data_vars) != set(names):
            raise user_error(
                ValueError, "Datasets of a call have different variables", None,
                "choose those that all have: ds[['name', ...]]",
                values=[("first", str(names)), ("another", str(list(other.data_vars)))])
    results = {}
    for name in names:
        chosen = [leaf[name] if isinstance(leaf, xarray.Dataset) else leaf for leaf in leaves]
        results[name] = labelled_call(compiler, call, *spec.unflatten(chosen))
    attrs, _ = _attributes(_as_arrays(datasets))
    trees = list(results.values())

    def joined(*parts: Any) -> Any:
        if not all(isinstance(part, xarray.DataArray) for part in parts):
            return dict(zip(names, parts, strict=True))
        return xarray.Dataset(dict(zip(names, parts, strict=True)), attrs=attrs)

    return optree.tree_map(joined, *trees) if trees else datasets[0]


def _as_arrays(datasets: Sequence[Any]) -> list[Any]:
    """Numbers with the attributes of the Datasets."""
    return [xarray.DataArray(0.0, attrs=dataset.attrs) for dataset in datasets]


__all__ = ["labelled_call", "without_labels"]
