"""``np.vectorize``: the function of each element, or of each core array, in a loop of the graph.
``np.frompyfunc`` likewise, once its results are converted to numbers.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from fusec.errors import unsupported
from fusec.ir import Value
from fusec.ir.sizes.dims import is_static

from ..arrays.joining import stack
from ..arrays.shaping import broadcast_to, in_numpys_words, reshape
from ..control.iterators import Product
from ..control.unrolling import UNROLL
from ..objects.tracing_hooks import TracingHooks
from ..operands.operands import as_traced, spread_scalar
from ..operands.scalar_stores import check_number, check_stored
from ..rewrite.transformer import Where
from ..values.array import TracedArray
from ..values.operations import operation
from ..values.trace import Trace

_NO_NUMBER = "setting an array element with a sequence."
_NO_SIZE = "cannot call `vectorize` on size 0 inputs unless `otypes` is set"


@operation
def vectorized(
    hooks: TracingHooks, where: Where, fn: np.vectorize, args: tuple, kwargs: dict[str, Any],
) -> Any:
    """A call of ``np.vectorize(f, ...)``: elements are Python's numbers, as there."""
    own: Any = fn
    places = [i for i in range(len(args)) if i not in own.excluded]
    names = [name for name in kwargs if name not in own.excluded]
    given = [as_traced(hooks.trace, x) for x in (
        *(args[i] for i in places), *(kwargs[name] for name in names))]

    def call(*values: Any) -> Any:
        by_place, by_name = list(args), dict(kwargs)
        for i, value in zip(places, values, strict=False):
            by_place[i] = value
        by_name |= zip(names, values[len(places):], strict=True)
        return hooks.call(where, own.pyfunc, *by_place, **by_name)

    return (_of_elements if own.signature is None else _of_cores)(hooks, where, own, call, given)


@operation
def of_objects(hooks: TracingHooks, where: Where, ufunc: np.ufunc, args: tuple) -> Any:
    """A call of a function of ``np.frompyfunc``, which is made when its results are converted, in
    the same expression: nothing may happen between."""
    (function, *_) = gc.get_referents(ufunc)

    def converted(dtype: Any) -> Any:
        return vectorized(hooks, where, np.vectorize(function, otypes=[dtype]), args, {})

    results = ObjectResults(hooks, ufunc.__name__, converted)
    hooks.trace.part(Unconverted).append(results)
    return results


class ObjectResults:
    """The results of a function of ``np.frompyfunc``: objects, of which `astype` makes numbers."""

    def __init__(
        self, hooks: TracingHooks, name: str, converted: Callable[[Any], Any]
    ) -> None:
        self._hooks, self._name, self._converted = hooks, name, converted
        self._loc = hooks.loc

    def astype(self, dtype: Any) -> Any:
        """The results as an array of numbers."""
        here, unconverted = self._hooks.loc, self._hooks.trace.part(Unconverted)
        if self not in unconverted or here is None or self._loc is None or (
                here[:3] != self._loc[:3]):  # an expression begins where its first call does
            self.refuse()
        unconverted.remove(self)
        return self._converted(dtype)

    def refuse(self) -> NoReturn:
        """Raises `UnsupportedError`: other uses need objects."""
        raise unsupported(
            f"{self._name}, of np.frompyfunc, whose results are arrays of objects,",
            loc=self._loc,
            cure="convert them on the same line: f(x).astype(float); or np.vectorize(f)(x), "
                 "or fusec.vmap(f)(x), which give numbers")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse()


class Unconverted(list[ObjectResults]):
    """Those of a trace whose function has not been called."""


def check_converted(trace: Trace) -> None:
    """Raises `UnsupportedError` where there is one: what its function does would be left out."""
    for results in trace.part(Unconverted):
        results.refuse()


def _refused(self: ObjectResults, *_: Any, **__: Any) -> NoReturn:
    self.refuse()


_USES = (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv",
    "mod", "rmod", "pow", "rpow", "matmul", "rmatmul", "and", "rand", "or", "ror", "xor", "rxor",
    "lshift", "rshift", "neg", "pos", "abs", "invert", "lt", "le", "eq", "ne", "gt", "ge",
    "getitem", "setitem", "len", "iter", "bool", "float", "int", "index", "complex", "array",
    "array_ufunc", "array_function")
for _use in _USES:
    setattr(ObjectResults, f"__{_use}__", _refused)


def _of_elements(
    hooks: TracingHooks, where: Where, fn: Any, call: Callable[..., Any],
    given: Sequence[TracedArray],
) -> Any:
    trace, otypes = hooks.trace, fn.otypes
    shape = in_numpys_words(trace, np.broadcast_shapes, *(x.shape for x in given))
    _check_known(hooks, shape)
    if 0 in shape:
        if otypes is None:
            raise trace.error(ValueError(_NO_SIZE), [x.value for x in given])
        return _one_or_all([np.empty(shape, dtype) for dtype in otypes])
    whole = [spread_scalar(broadcast_to(trace, x, shape)) for x in given]
    are_told = otypes is not None
    if otypes is None:  # as NumPy does, by a call with NumPy's numbers
        first = call(*(x[(0,) * len(shape)] for x in whole))
        otypes = [_dtype_of_all(hooks, _of_rank(trace, part, 0)) for part in _parts(first)]
    read = [x.copy() for x in whole]  # NumPy makes objects of all of them before it calls

    def of_element(place: tuple[Any, ...]) -> list[TracedArray]:
        results = call(*(x[place].item() for x in read))
        _check_count(trace, results, len(otypes))
        if not are_told:
            for part in _parts(results):
                _dtype_of_all(hooks, as_traced(trace, part))
        return [_converted(trace, _of_rank(trace, part, 0), np.dtype(dtype))
                for part, dtype in zip(_parts(results), otypes, strict=True)]

    return _gathered(hooks, where, of_element, shape)


def _check_count(trace: Trace, results: Any, count: int) -> None:
    """Other counts than that of ``otypes`` leave numbers of no meaning in NumPy's arrays."""
    if isinstance(results, tuple) and count == 1:
        raise trace.error(ValueError(_NO_NUMBER), [])
    if len(_parts(results)) != count:
        raise trace.error(ValueError(
            f"np.vectorize: a result of {len(_parts(results))} for otypes of {count}"), [])


def _of_rank(trace: Trace, part: Any, rank: int) -> TracedArray:
    """A result, which has as many dimensions as its place in the array of all."""
    x = as_traced(trace, part)
    if x.ndim > rank:
        raise trace.error(ValueError(_NO_NUMBER), [x.value])
    return x


def _dtype_of_all(hooks: TracingHooks, x: TracedArray) -> np.dtype:
    """The dtype of the first result, refused where its number decides on that."""
    dtypes = sorted(map(str, _possible_dtypes(x.value)))
    if len(dtypes) > 1:
        raise unsupported(
            "np.vectorize without otypes= of a function whose results have several dtypes",
            loc=hooks.loc, values=[("dtypes", ", ".join(dtypes))],
            cure="NumPy takes that of the first result, whatever the others lose: give "
                 "otypes=[float], or return numbers of one kind on all ways")
    return x.dtype


def _possible_dtypes(value: Value) -> set[np.dtype]:
    """Those of a number before branches and loops gave it one."""
    node = value.node
    sides = () if value.type.kind == "array" else _sides(value)
    found: set[np.dtype] = {value.dtype} if not sides or node.op == "Loop" else set()
    for side in sides:
        was_converted = side.node.op == "Cast" and side.node.loc == node.loc
        found |= _possible_dtypes(side.node.inputs[0] if was_converted else side)
    return found


def _sides(value: Value) -> Sequence[Value]:
    """The values a branch chooses of, or the one that a loop begins with."""
    node, number = value.node, value.node.outputs.index(value)
    if node.op == "Where":
        return node.inputs[1:]
    if node.op == "Loop":
        return [node.inputs[number]]
    if node.op == "Cond":
        return [node.attrs[side].outputs[number] for side in ("then", "orelse")]
    return ()


def _converted(trace: Trace, x: TracedArray, dtype: np.dtype) -> TracedArray:
    """As NumPy converts objects: numbers that an integer dtype does not hold raise."""
    if not x.is_array:
        check_number(trace, x.value, dtype)
        check_stored(trace, x.value, dtype)
    return _cast(spread_scalar(x), dtype)


def _of_cores(
    hooks: TracingHooks, where: Where, fn: Any, call: Callable[..., Any],
    given: Sequence[TracedArray],
) -> Any:
    trace, (of_inputs, of_outputs) = hooks.trace, fn._in_and_out_core_dims
    if len(given) != len(of_inputs):
        raise trace.error(TypeError(
            f"wrong number of positional arguments: expected {len(of_inputs)!r}, got "
            f"{len(given)!r}"), [x.value for x in given])
    sizes: dict[str, Any] = {}
    for x, names in zip(given, of_inputs, strict=True):
        _note_sizes(trace, sizes, x, names)
    outer = [x.shape[:x.ndim - len(names)] for x, names in zip(given, of_inputs, strict=True)]
    shape = in_numpys_words(trace, np.broadcast_shapes, *outer)
    _check_known(hooks, shape)
    if 0 in shape:
        raise unsupported("np.vectorize of no arrays at all", loc=hooks.loc,
                          values=[("loop dimensions", shape)],
                          cure="return np.empty(...) for that case before the call")
    whole = [spread_scalar(broadcast_to(trace, x, (*shape, *x.shape[x.ndim - len(names):])))
             for x, names in zip(given, of_inputs, strict=True)]

    def of_core(place: tuple[Any, ...]) -> list[TracedArray]:
        results = call(*(x[place] for x in whole))
        if len(_parts(results)) != len(of_outputs):
            raise trace.error(ValueError(
                f"wrong number of outputs from pyfunc: expected {len(of_outputs)!r}, got "
                f"{len(_parts(results))!r}"), [])
        parts = [spread_scalar(_of_rank(trace, part, len(names)))
                 for part, names in zip(_parts(results), of_outputs, strict=True)]
        for part, names in zip(parts, of_outputs, strict=True):
            _note_sizes(trace, sizes, part, names)
        if fn.otypes is None:
            for part in _parts(results):
                _dtype_of_all(hooks, as_traced(trace, part))
            return parts
        _check_count(trace, tuple(parts) if len(parts) > 1 else parts[0], len(fn.otypes))
        return [_cast(part, dtype) for part, dtype in zip(parts, fn.otypes, strict=True)]

    return _gathered(hooks, where, of_core, shape)


def _note_sizes(trace: Trace, sizes: dict[str, Any], x: TracedArray, names: Sequence[str]) -> None:
    if x.ndim < len(names):
        raise trace.error(ValueError(
            f"{x.ndim}-dimensional argument does not have enough dimensions for all core "
            f"dimensions {names!r}"), [x.value])
    for name, size in zip(names, x.shape[x.ndim - len(names):], strict=True):
        if sizes.setdefault(name, size) != size:
            raise trace.error(ValueError(
                f"inconsistent size for core dimension {name!r}: {size!r} vs {sizes[name]!r}"),
                [x.value])


def _check_known(hooks: TracingHooks, shape: tuple[Any, ...]) -> None:
    if not is_static(shape):
        raise unsupported("np.vectorize over sizes that data decides", loc=hooks.loc,
                          values=[("shape", shape)],
                          cure="write the loop, or apply the function to the array as a whole")


def _parts(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def _one_or_all(arrays: list[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def _gathered(
    hooks: TracingHooks, where: Where, of_place: Callable[[Any], list[TracedArray]],
    shape: tuple[int, ...],
) -> Any:
    """The results of all places as arrays, of the first one's dtypes."""
    trace = hooks.trace
    counts: list[int] = []

    def of(place: tuple[Any, ...]) -> TracedArray:
        parts = of_place(place)
        counts.append(len(parts))
        return parts[0] if len(parts) == 1 else _joined(hooks, parts)

    results = hooks.list_of(where, Product(tuple(map(range, shape))), of, None,
                            lambda places: [of(place) for place in places]) if shape else [of(())]
    if len(results) <= UNROLL:
        results = [_cast(x, results[0].dtype) for x in results]
    whole = stack(trace, results)
    count = counts[0]
    if count == 1:
        return reshape(trace, whole, (*shape, *whole.shape[1:]))
    return tuple(reshape(trace, whole[:, k], (*shape, *whole.shape[2:])) for k in range(count))


def _cast(x: TracedArray, dtype: Any) -> Any:
    return x if x.dtype == np.dtype(dtype) else x.astype(dtype)


def _joined(hooks: TracingHooks, parts: list[TracedArray]) -> TracedArray:
    """Several results as one array: a list of a loop holds arrays of one kind."""
    kinds = {(x.dtype, x.shape) for x in parts}
    if len(kinds) > 1:
        raise unsupported(
            "np.vectorize of a function whose results differ in dtype or shape", loc=hooks.loc,
            values=[("results", ", ".join(str(x.type) for x in parts))],
            cure="use one np.vectorize for each, or fusec.vmap(f)")
    joined: TracedArray = stack(hooks.trace, parts)
    return joined
