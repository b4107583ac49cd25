"""Index ops: output element ``i`` is input element ``g(i)``; nothing is computed.

Views read one input through an affine map; piecewise ops read one of several inputs depending on
the region ``i`` lies in.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fusec.ir import TensorType
from fusec.ir.sizes.dims import maximum, minimum

from ..admission import row_admissions
from ..registry import Op, register
from ..shapes import broadcast


def _array(source: TensorType, shape: tuple[int, ...]) -> tuple[TensorType, ...]:
    return (TensorType(source.dtype, shape, "array"),)


def region(starts: Any, steps: Any, sizes: Any) -> tuple[slice, ...]:
    """Slices selecting ``sizes[d]`` elements from ``starts[d]`` by ``steps[d]`` (may be < 0)."""
    result = []
    for start, step, size in zip(starts, steps, sizes, strict=True):
        stop: int | None = start + step * size
        if step < 0 and stop is not None and stop < 0:
            stop = None
        result.append(slice(start, start, 1) if size == 0 else slice(start, stop, step))
    return tuple(result)


def infer_slice(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    return _array(types[0], tuple(attrs["sizes"]))


def infer_transpose(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    return _array(types[0], tuple(types[0].shape[p] for p in attrs["perm"]))


def infer_broadcast(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    if broadcast([types[0].shape, attrs["shape"]]) != tuple(attrs["shape"]):
        raise ValueError(
            f"could not broadcast input array from shape {types[0].shape} into shape "
            f"{tuple(attrs['shape'])}"
        )
    return _array(types[0], tuple(attrs["shape"]))


def infer_reshape(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    shape = tuple(attrs["shape"])
    if math.prod(shape) != types[0].size:
        raise ValueError(f"cannot reshape array of size {types[0].size} into shape {shape}")
    return _array(types[0], shape)


def infer_expand_dims(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    shape = list(types[0].shape)
    for axis in attrs["axes"]:
        shape.insert(axis, 1)
    return _array(types[0], tuple(shape))


def infer_squeeze(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    kept = (d for i, d in enumerate(types[0].shape) if i not in attrs["axes"])
    return (TensorType(types[0].dtype, tuple(kept), attrs.get("kind", "array")),)


def infer_concat(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    shape = list(types[0].shape)
    shape[attrs["axis"]] = sum(t.shape[attrs["axis"]] for t in types)
    return _array(types[0], tuple(shape))


def infer_diagonal(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    shape, (first, second), offset = types[0].shape, attrs["axes"], attrs["offset"]
    size = minimum(shape[first] - max(-offset, 0), shape[second] - max(offset, 0))
    kept = tuple(d for i, d in enumerate(shape) if i not in attrs["axes"])
    return _array(types[0], (*kept, maximum(size, 0)))


def infer_slice_update(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    return (types[0],)


def slice_reference(x: Any, starts: Any, steps: Any, sizes: Any) -> Any:
    return x[region(starts, steps, sizes)]


def expand_dims_reference(x: Any, axes: Any) -> Any:
    for axis in axes:
        x = np.expand_dims(x, axis)
    return x


def squeeze_reference(x: Any, axes: Any, kind: str | None = None) -> Any:
    result = np.squeeze(x, tuple(axes))
    return result[()] if kind == "scalar" else result


def slice_update_reference(target: Any, value: Any, starts: Any, steps: Any, sizes: Any) -> Any:
    result = np.array(target)
    result[region(starts, steps, sizes)] = value
    return result


def concat_reference(*arrays: Any, axis: int) -> Any:
    return np.concatenate(arrays, axis=axis)


register(Op(
    name="Slice", kind="view", arity=1, admits=row_admissions.SLICE, infer=infer_slice,
    reference=slice_reference,
    attrs=("starts", "steps", "sizes"),
    doc="attrs starts, steps, sizes: one per axis; steps may be negative, never zero.",
))
register(Op(
    name="Transpose", kind="view", arity=1, admits=row_admissions.TRANSPOSE, infer=infer_transpose,
    reference=lambda x, perm: np.transpose(x, perm), attrs=("perm",), doc="attrs perm.",
))
register(Op(
    name="BroadcastTo", kind="view", arity=1, admits=row_admissions.SHAPED, infer=infer_broadcast,
    reference=lambda x, shape: np.broadcast_to(x, shape), attrs=("shape",), doc="attrs shape.",
))
register(Op(
    name="Reshape", kind="view", arity=1, admits=row_admissions.SHAPED, infer=infer_reshape,
    reference=lambda x, shape: np.reshape(x, shape), attrs=("shape",),
    doc="attrs shape; C order.",
))
register(Op(
    name="ExpandDims", kind="view", arity=1, admits=row_admissions.EXPAND_DIMS,
    infer=infer_expand_dims, reference=expand_dims_reference, attrs=("axes",),
    doc="attrs axes: positions in the result, ascending.",
))
register(Op(
    name="Squeeze", kind="view", arity=1, admits=row_admissions.SQUEEZE, infer=infer_squeeze,
    reference=squeeze_reference,
    attrs=("axes",),
    doc="attrs axes: axes of length 1 to drop.",
))
register(Op(
    name="Diagonal", kind="view", arity=1, admits=row_admissions.DIAGONAL, infer=infer_diagonal,
    reference=lambda x, axes, offset: np.diagonal(x, offset, *axes),
    attrs=("axes", "offset"),
    doc="attrs axes (the two that become one, placed last), offset.",
))
register(Op(
    name="Concat", kind="piecewise", admits=row_admissions.CONCAT, infer=infer_concat,
    reference=concat_reference,
    raises="never", called="np.concatenate",
    doc="attrs axis; inputs agree in dtype and all other axes.",
))
register(Op(
    name="SliceUpdate", kind="piecewise", arity=2, admits=row_admissions.SLICE_UPDATE,
    infer=infer_slice_update,
    reference=slice_update_reference, attrs=("starts", "steps", "sizes"), raises="never",
    called="x[...] = ...",
    doc="The target with a region replaced by the value, which has the shape ``sizes``.",
))
