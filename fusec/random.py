"""Random numbers without state: arrays that are functions of a key.

    key = fusec.random.key(42)
    key, use = fusec.random.split(key)
    x = fusec.random.normal(use, (1000, 3))

The same key gives the same numbers; `split` and `fold_in` make new keys.  All functions work in
compiled functions, where the numbers are computed in the kernel that reads them, and outside, in
NumPy: bits, integers, booleans and uniform numbers are the same bits everywhere, for any number of
threads; `normal` and `exponential` are within the bounds of docs/accuracy.md.  The generator is
Philox4x32-10 (see `fusec.api.philox`).  For the stream of an existing program use ``np.random``.

A key is a uint32 array of length 2.  ``shape`` is an int or a tuple; element i in C order depends
on the key and i alone, so a longer array begins with the shorter one's numbers.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from fusec.api.philox import MASK, SPLIT, constant, folded, mul_high, words
from fusec.ir.sizes.dims import Dim
from fusec.trace.operands.operands import as_traced
from fusec.trace.operands.sizes import number
from fusec.trace.values.array import TracedArray, from_value
from fusec.trace.values.trace import current

from .errors import users_own
from .ops.exact_fma import exact_fma

__all__ = ["bernoulli", "bits", "choice", "exponential", "fold_in", "integers", "key", "normal",
           "permutation", "randint", "split", "uniform"]

Key = Any
_FLOATS = {"float64": 53, "float32": 24, "float16": 11}


# ------------------------------------------------------------------------------------------ keys


def key(seed: Any) -> Key:
    """A key for a seed: an int from 0 to 2**64 - 1, which may be known at run time only."""
    if _is_traced(seed):
        low, high = _halves(seed)
        return np.concatenate([low, high])
    number = operator.index(seed)
    if not 0 <= number < 1 << 64:
        raise users_own(ValueError(f"seed {number} is not in 0 … 2**64 - 1"))
    return np.array([number & MASK, number >> 32], np.uint32)


def split(key: Key, num: int = 2) -> Any:
    """``num`` new keys, independent of each other and of the numbers of ``key``: (num, 2)."""
    a, b, _, _ = words(_checked(key), (operator.index(num),), SPLIT)
    return np.stack([a, b], axis=1)


def fold_in(key: Key, data: Any) -> Key:
    """A new key made of ``key`` and ``data``, an integer such as a loop counter."""
    if _is_traced(data):
        low, high = _halves(data)
        return folded(_checked(key), low, high)
    number = operator.index(data) & ((1 << 64) - 1)
    return folded(_checked(key), constant(number & MASK, 1), constant(number >> 32, 1))


def _halves(number: Any) -> tuple[Any, Any]:
    """A traced integer as two words of length 1."""
    wide = (constant(0, 1).astype(np.int64) + number).astype(np.uint64)
    return wide.astype(np.uint32), (wide >> np.uint64(32)).astype(np.uint32)


def _is_traced(x: Any) -> bool:
    return type(x) is TracedArray


def _checked(key: Key) -> Key:
    """The key; traced in a trace.  Raises ``TypeError`` for other objects."""
    shape, dtype = getattr(key, "shape", None), getattr(key, "dtype", None)
    if shape != (2,) or dtype != np.uint32:
        kind = key.__class__.__name__ if dtype is None else f"{dtype}{list(shape or ())}"
        raise users_own(TypeError(
            f"a key is a uint32 array of length 2, this is a {kind}: make one with "
            f"fusec.random.key(seed), and take split(key)[i] one at a time"))
    return _lifted(key)


def _lifted(x: Any) -> Any:
    """An array as a traced one inside a trace."""
    trace = current()
    if trace is None or type(x) is not np.ndarray:
        return x
    return as_traced(trace, x)


# --------------------------------------------------------------------------------------- numbers


def _words(key: Key, shape: Any) -> tuple[Any, ...]:
    """Words of an array of this shape, and of one axis for a scalar; see `_shaped`."""
    return words(_checked(key), _axes(shape) or (1,))


def _axes(shape: Any) -> tuple[Any, ...]:
    sizes = [_size(n) for n in (shape if isinstance(shape, (tuple, list)) else (shape,))]
    axes = tuple(n if _is_traced(n) else operator.index(n) for n in sizes)
    if any(not _is_traced(n) and n < 0 for n in axes):
        raise users_own(ValueError(f"negative dimensions are not allowed: shape {shape}"))
    return axes


def _size(n: Any) -> Any:
    """A size that only the run knows, as a traced number."""
    if type(n) is not Dim:
        return n

    trace = current()
    assert trace is not None, "internal error: a size of a trace outside it"
    return number(trace, n)


def _shaped(x: Any, shape: Any) -> Any:
    return x if _axes(shape) else x[0]


def _wide(high: Any, low: Any) -> Any:
    """64 bits of two words."""
    return (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)


def bits(key: Key, shape: Any = (), dtype: Any = np.uint32) -> Any:
    """Random bits from ``key`` as unsigned integers of 8 to 64 bits.

    ``shape`` and ``dtype`` are those of the result."""
    target = np.dtype(dtype)
    if target.kind != "u":
        raise users_own(TypeError(f"bits of dtype {target}: expected uint8, uint16, uint32 or "
                                  f"uint64"))
    a, b, _, _ = _words(key, shape)
    return _shaped(_wide(b, a) if target.itemsize == 8 else a.astype(target), shape)


def _unit(a: Any, b: Any, dtype: np.dtype) -> Any:
    """Multiples of 2**-53 (float32: 2**-24, float16: 2**-11) in [0, 1)."""
    count = _FLOATS.get(dtype.name)
    if count is None:
        raise users_own(TypeError(f"random numbers of dtype {dtype}: expected float64, float32 or "
                                  f"float16"))
    if count < 53:
        return (a >> np.uint32(32 - count)).astype(np.int32).astype(dtype) * dtype.type(2.0**-count)
    high, low = (x >> np.uint32(n) for x, n in ((b, 5), (a, 6)))
    high, low = (x.astype(np.int32).astype(np.float64) for x in (high, low))
    return (high * 2.0**26 + low) * 2.0**-53  # every step is exact


def uniform(
    key: Key, shape: Any = (), low: Any = 0.0, high: Any = 1.0, dtype: Any = np.float64
) -> Any:
    """Numbers from ``low`` to ``high``; rounding may reach ``high`` unless the two are 0 and 1.

    They fill an array of ``shape`` and ``dtype`` from ``key``."""
    target = np.dtype(dtype)
    a, b, _, _ = _words(key, shape)
    unit = _unit(a, b, target)
    if type(low) in (int, float) and type(high) in (int, float) and (low, high) == (0, 1):
        return _shaped(unit, shape)
    return _shaped(_fma(unit, _as(high, target) - _as(low, target), _as(low, target)), shape)


def _as(x: Any, dtype: np.dtype) -> Any:
    return x.astype(dtype) if hasattr(x, "astype") else dtype.type(x)


def _fma(a: Any, b: Any, c: Any) -> Any:
    """``a*b + c`` with one rounding, everywhere."""
    if not any(map(_is_traced, (a, b, c))):
        return exact_fma(a, b, c)
    trace = next(x for x in (a, b, c) if _is_traced(x)).trace
    return from_value(trace, trace.emit("Fma", *(as_traced(trace, x).value for x in (a, b, c))))


def bernoulli(key: Key, shape: Any = (), p: Any = 0.5) -> Any:
    """Booleans that are true with probability ``p``, in an array of ``shape``, from ``key``."""
    a, b, _, _ = _words(key, shape)
    return _shaped(_unit(a, b, np.dtype(np.float64)) < p, shape)


def integers(
    key: Key, shape: Any = (), low: Any = 0, high: Any = None, dtype: Any = np.int64
) -> Any:
    """Integers from ``low`` to ``high - 1``; with ``high`` left out from 0 to ``low - 1``.

    They fill an array of ``shape`` and ``dtype`` from ``key``.
    They are the upper part of 64 random bits times the width (Lemire, *Fast random integer
    generation in an interval*, 2019, without rejection): no value is preferred by more than
    width / 2**64.  Ends known while tracing are checked.
    """
    low, high = (0, low) if high is None else (low, high)
    target = np.dtype(dtype)
    a, b, _, _ = _words(key, shape)
    if not any(map(_is_traced, (low, high))) and np.ndim(low) == np.ndim(high) == 0:
        low, high = operator.index(low), operator.index(high)
        _check_ends(low, high, target)
        if high - low <= MASK:
            offset = _scaled(a, b, np.uint32(high - low))
            return _shaped(_offset(offset, low, target), shape)
        width: Any = np.uint64((high - low) & ((1 << 64) - 1))
    else:
        width = _wide_int(high) - _wide_int(low)
    if target.itemsize == 8 and type(width) is np.uint64 and not width:
        return _shaped(_offset(_wide(b, a), low, target), shape)
    return _shaped(_offset(_scaled_wide(a, b, width), low, target), shape)


randint = integers


def _check_ends(low: int, high: int, dtype: np.dtype) -> None:
    if dtype.kind not in "iu":
        raise users_own(TypeError(f"integers of dtype {dtype}: expected an integer dtype"))
    if low >= high:
        raise users_own(ValueError(f"low >= high: {low} and {high}"))
    if low < np.iinfo(dtype).min or high - 1 > np.iinfo(dtype).max:
        raise users_own(ValueError(f"{low} … {high - 1} is out of bounds for {dtype}"))


def _wide_int(x: Any) -> Any:
    """An integer end of an interval as uint64, wrapped."""
    if _is_traced(x):
        return (constant(0, 1).astype(np.int64) + x if not x.ndim else x).astype(np.uint64)
    return np.asarray(x).astype(np.int64).astype(np.uint64)


def _scaled(a: Any, b: Any, width: Any) -> Any:
    """``(b·2**32 + a) * width >> 64`` for a width of one word."""
    upper = b.astype(np.uint64) * np.uint64(width) + mul_high(a, width).astype(np.uint64)
    return upper >> np.uint64(32)


def _scaled_wide(a: Any, b: Any, width: Any) -> Any:
    """``(b·2**32 + a) * width >> 64`` for a width of two words."""
    shift = np.uint64(32)
    low, high = width & np.uint64(MASK), width >> shift
    x0, x1 = a.astype(np.uint64), b.astype(np.uint64)
    middle = x1 * low + (x0 * low >> shift)
    other = x0 * high + (middle & np.uint64(MASK))
    return x1 * high + (middle >> shift) + (other >> shift)


def _offset(numbers: Any, low: Any, dtype: np.dtype) -> Any:
    """``numbers + low`` with wrapping, in the dtype asked for."""
    if type(low) is int and low == 0:
        return numbers.astype(dtype)
    start = np.uint64(low & ((1 << 64) - 1)) if type(low) is int else _wide_int(low)
    return (numbers + start).astype(dtype)


def normal(
    key: Key, shape: Any = (), loc: Any = 0.0, scale: Any = 1.0, dtype: Any = np.float64
) -> Any:
    """Normal numbers of mean ``loc`` and deviation ``scale``, by the method of Box and Muller.

    They fill an array of ``shape`` and ``dtype`` from ``key``.
    G. E. P. Box, M. E. Muller, *A note on the generation of random normal deviates* (1958).
    float64 reaches 8.5 deviations, float32 6.6.
    """
    target = np.dtype(dtype)
    a, b, c, d = _words(key, shape)
    if target == np.float64:
        first = _unit(a, b, target) + 2.0**-53
    else:
        target = np.dtype(np.float32)
        first = (a >> np.uint32(1)).astype(np.int32).astype(target) * np.float32(2.0**-31) + (
            np.float32(2.0**-32))
    angle = _unit(c, d, target) * target.type(2 * math.pi)
    sample = np.sqrt(np.log(first) * target.type(-2)) * np.cos(angle)
    sample = _shaped(sample.astype(dtype), shape)
    if type(loc) in (int, float) and type(scale) in (int, float) and (loc, scale) == (0, 1):
        return sample
    return sample * scale + loc


def exponential(key: Key, shape: Any = (), scale: Any = 1.0, dtype: Any = np.float64) -> Any:
    """Exponential numbers of mean ``scale``, by inversion.

    They fill an array of ``shape`` and ``dtype`` from ``key``."""
    target = np.dtype(dtype)
    a, b, _, _ = _words(key, shape)
    return _shaped(-np.log1p(-_unit(a, b, target)) * scale, shape)


# ---------------------------------------------------------------------------------- orders, picks


def permutation(key: Key, x: Any) -> Any:
    """The numbers 0 … x-1 in random order, or an array with its first axis in random order, by the
    bits of ``key``."""
    x = _lifted(x)
    size = x.shape[0] if getattr(x, "ndim", 0) else x
    order = np.argsort(bits(key, (size,), np.uint64), kind="stable")
    return np.take(x, order, axis=0) if getattr(x, "ndim", 0) else order


def choice(
    key: Key, a: Any, shape: Any = (), replace: bool = True, p: Any = None
) -> Any:
    """Elements of ``a`` (its first axis; an int n stands for 0 … n-1), with probabilities ``p``.

    As many as ``shape`` says, from ``key``; without ``replace`` each at most once."""
    a, p = _lifted(a), None if p is None else _lifted(np.asarray(p) if type(p) is list else p)
    is_array = getattr(a, "ndim", 0) > 0
    size = a.shape[0] if is_array else a
    if p is not None and not replace:
        raise users_own(NotImplementedError("choice with p and replace=False: take the first of "
                                            "permutation, or choose with replacement"))
    if not replace:
        count = math.prod(_axes(shape))
        if not _is_traced(size) and count > size:
            raise users_own(ValueError(f"{count} of {size} elements without replacement"))
        picked = permutation(key, size)[:count].reshape(_axes(shape))
        picked = picked if _axes(shape) else picked[()]
    elif p is None:
        picked = integers(key, shape, size)
    else:
        edges = np.cumsum(p)
        picked = np.searchsorted(edges, uniform(key, shape) * edges[-1], side="right")
    return np.take(a, picked, axis=0) if is_array else picked

