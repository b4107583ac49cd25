"""Runs a function eagerly and jitted on equal arguments and compares everything a caller can see.

Compared: the kind (ndarray, NumPy scalar, Python number), dtype, shape, strides, writeability and
values of every result leaf; the pytree structure; every argument after the call; which arrays
share memory; the type of an exception; and that a second call answers from the cache.
"""

from __future__ import annotations

import copy
import ctypes
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree
from own_order import settled
from tolerance import EXACT, Tolerance

import fusec
from fusec.codegen.kernels.complex_pairs import as_pairs
from fusec.codegen.structured.calls.call_statements import NodeCall
from fusec.codegen.structured.kernel_statements import RunKernel
from fusec.codegen.structured.memory import View
from fusec.compiled.concrete_function import ConcreteFunction
from fusec.dispatch.jit import Function
from fusec.ir.sizes.bindings import resolve
from fusec.runtime.plan.segments import SizedSegment
from fusec.runtime.plan.step_by_step import StepByStep

Engine = Callable[[Any, Sequence[np.ndarray]], None]


# ------------------------------------------------------------------------------------- arguments


def clone(tree: Any) -> Any:
    """A copy of a pytree of arguments that keeps strides, offsets, flags and aliases."""
    memory: dict[int, tuple[Any, np.ndarray]] = {}
    same: dict[int, Any] = {}

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return leaf if callable(leaf) else copy.deepcopy(leaf)
        if id(leaf) not in same:
            same[id(leaf)] = _clone_array(leaf, memory)
        return same[id(leaf)]

    return optree.tree_map(one, tree, none_is_leaf=True)


def _clone_array(array: np.ndarray, memory: dict[int, tuple[Any, np.ndarray]]) -> np.ndarray:
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    if not array.size or base.nbytes == 0:
        return array.copy(order="K")
    low, _ = np.lib.array_utils.byte_bounds(base)
    if id(base) not in memory:
        raw = np.frombuffer(ctypes.string_at(low, base.nbytes), np.uint8).copy()
        memory[id(base)] = (base, raw)
    offset = _address(array) - low
    result = np.ndarray(array.shape, array.dtype, memory[id(base)][1], offset, array.strides)
    result.flags.writeable = array.flags.writeable
    return result


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


# -------------------------------------------------------------------------------------- outcomes


@dataclass
class Outcome:
    """The state after a call."""

    result: Any
    args: Any
    error: Exception | None

    @property
    def leaves(self) -> list[Any]:
        return optree.tree_leaves(self.result, none_is_leaf=True)

    @property
    def arg_leaves(self) -> list[Any]:
        return optree.tree_leaves(self.args, none_is_leaf=True)


def run(f: Callable[..., Any], args: Any, kwargs: Any = None) -> Outcome:
    """Call ``f`` on copies of the arguments; floating-point warnings are off."""
    args, kwargs = clone((tuple(args), dict(kwargs or {})))
    error, result = None, None
    with np.errstate(all="ignore"):
        try:
            result = f(*args, **kwargs)
        except Exception as raised:
            error = raised
    return Outcome(result, (args, kwargs), error)


def assert_outcomes(
    got: Outcome, want: Outcome, tolerance: Tolerance = EXACT, wide: Outcome | None = None,
    what: str = "",
) -> None:
    """``got`` equals ``want``; ``wide`` is the same run in more precision, if there is one."""
    if want.error is not None or got.error is not None:
        _assert_errors(got.error, want.error, what)
        return
    structure = optree.tree_structure(want.result, none_is_leaf=True)
    assert optree.tree_structure(got.result, none_is_leaf=True) == structure, (
        f"{what}: {got.result!r} is not {want.result!r}")
    wides = wide.leaves if wide else itertools.repeat(None)
    for i, (g, w, x) in enumerate(zip(got.leaves, want.leaves, wides, strict=False)):
        assert_leaf(g, w, tolerance, x, f"{what} result {i}")
    wides = wide.arg_leaves if wide else itertools.repeat(None)
    for i, (g, w, x) in enumerate(zip(got.arg_leaves, want.arg_leaves, wides, strict=False)):
        assert_leaf(g, w, tolerance, x, f"{what} argument {i} after the call")
    assert sharing(got) == sharing(want), f"{what}: other arrays share memory than in NumPy"


def _assert_errors(got: Exception | None, want: Exception | None, what: str) -> None:
    if want is None:
        raise AssertionError(f"{what}: raised {type(got).__name__}") from got
    if got is None:
        raise AssertionError(f"{what}: NumPy raises {want!r}, here nothing was raised")
    kinds = tuple(k for k in (IndexError, ValueError, TypeError, OverflowError, ZeroDivisionError,
                              KeyError, AttributeError, NameError) if isinstance(want, k))
    is_same = isinstance(got, kinds) if kinds else type(got).__name__ == type(want).__name__
    if not is_same:  # the program's own classes are made anew with its module
        raise AssertionError(f"{what}: NumPy raises {want!r}") from got


def assert_leaf(
    got: Any, want: Any, tolerance: Tolerance = EXACT, wide: Any = None, what: str = "",
) -> None:
    """One leaf: exactly the same class, dtype, shape, strides and (within tolerance) values."""
    assert type(got) is type(want), f"{what}: {got!r} is not {want!r}"
    if not isinstance(want, (np.ndarray, np.generic, bool, int, float, complex)):
        assert got == want or got is want, f"{what}: {got!r} is not {want!r}"
        return
    if type(want) in (int, bool):
        assert got == want, f"{what}: {got!r} is not {want!r}"
        return
    g, w = np.asarray(got), np.asarray(want)
    assert g.dtype == w.dtype, f"{what}: {g.dtype} is not {w.dtype}"
    assert g.shape == w.shape, f"{what}: {g.shape} is not {w.shape}"
    if isinstance(want, np.ndarray) and want.size:
        assert long_strides(got) == long_strides(want) or is_compact_part(got, want), (
            f"{what}: strides {got.strides} are not {want.strides}, shape {want.shape}")
    if isinstance(want, np.ndarray):
        assert got.flags.writeable == want.flags.writeable, f"{what}: writeable differs"
    tolerance.check(g, w, None if wide is None else np.asarray(wide), what)


def is_compact_part(got: np.ndarray, want: np.ndarray) -> bool:
    """Whether ``want`` is a part of an array that nobody else sees, and ``got`` is no more than it.

    A library call's result may be such a part (``histogram2d``, and the columns that ``nonzero``
    gives, of which there may be slices and diagonals), and slices of constants are.
    """
    base = want.base  # or a capsule of DLPack, which does not say
    hidden = base is not None and (not isinstance(base, np.ndarray) or base.size > want.size)
    compact = got.size * got.itemsize == max(
        (n * abs(s) for n, s in zip(got.shape, got.strides, strict=True) if n > 1),
        default=got.itemsize)
    mine, theirs = (np.asarray(long_strides(a)) for a in (got, want))
    if hidden and mine.size and mine.all() and (mine * (theirs[0] / mine[0]) == theirs).all():
        return abs(theirs[0]) > abs(mine[0])
    return hidden and compact and np.sign(mine).tolist() == np.sign(theirs).tolist() and (
        np.argsort(abs(mine)).tolist() == np.argsort(abs(theirs)).tolist())


def long_strides(array: np.ndarray) -> list[int]:
    """Strides that matter: NumPy leaves those of axes of length 1 open."""
    return [s for s, n in zip(array.strides, array.shape, strict=True) if n > 1]


def sharing(outcome: Outcome) -> set[tuple[int, int]]:
    """Pairs of arrays, among arguments and results, that overlap in memory."""
    arrays = [
        (i, a) for i, a in enumerate([*outcome.arg_leaves, *outcome.leaves])
        if isinstance(a, np.ndarray) and a.size
    ]
    return {(i, j) for (i, a), (j, b) in itertools.combinations(arrays, 2)
            if np.shares_memory(a, b)}


# ----------------------------------------------------------------------------------- comparisons


def check(
    f: Callable[..., Any], *args: Any, tolerance: Tolerance = EXACT, engines: bool = True,
    source: bool = False, jitted: Function | None = None, kwargs: Any = None, **options: Any,
) -> Function:
    """``f`` and its jitted form agree; the second call retraces nothing.  Returns the latter."""
    function = jitted if jitted is not None else fusec.jit(f, **options)
    want = run(f, args, kwargs)
    name = getattr(f, "__name__", "f")
    first = run(function, args, kwargs)
    tolerance = settled(function, tolerance)
    wide = run(f, *tolerance.widened(args, kwargs)) if tolerance.needs_wide else None
    if wide is not None and wide.error is not None:
        wide = None
    assert_outcomes(first, want, tolerance, wide, f"{name}:")
    traces = function.trace_count
    assert_outcomes(run(function, args, kwargs), want, tolerance, wide, f"{name}, second call:")
    assert function.trace_count == traces, f"{name}: the second call was traced again"
    if engines and want.error is None and not kwargs:
        assert_engines(function, args, want, tolerance, wide, source)
    return function


def is_of_one_device(concrete: ConcreteFunction) -> bool:
    """Whether the plan is one device's: assertions of kernels, library calls and native loops
    hold there, and not where a device has a part in it (``--on-device``)."""
    return not concrete.build.call_plan.is_partitioned


def assert_engines(
    function: Function, args: Any, want: Outcome, tolerance: Tolerance = EXACT,
    wide: Outcome | None = None, source: bool = False,
) -> None:
    """Every kernel through the reference interpreter, and through its readable source on demand;
    not of plans over several devices (``--on-device``)."""
    from fusec.codegen.kernels.reference import run_kernel

    concrete = function.concrete(*clone(tuple(args)))
    if not is_of_one_device(concrete):
        return
    engines: dict[str, Engine] = {"reference": run_kernel}
    if source:
        engines["source"] = run_source
    for name, engine in engines.items():
        got = run(lambda *a, e=engine: run_with(concrete, e, a), args)
        assert_outcomes(got, want, tolerance, wide, f"{function.__name__}, {name}:")


def run_source(kernel: Any, buffers: Sequence[np.ndarray]) -> None:
    """A kernel as plain Python."""
    import warnings

    from fusec.codegen.python.python_source import kernel_source, load_source

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        load_source(kernel_source(kernel))(*buffers)


def run_with(concrete: ConcreteFunction, engine: Engine, args: Sequence[Any]) -> Any:
    """The concrete function's plan with every kernel run by ``engine(kernel, buffers)``."""
    leaves = concrete.call_of(tuple(args), {}).leaves
    results = _EngineRun(concrete, engine).run(leaves)
    return optree.tree_unflatten(concrete.result_treespec, results)


class _EngineRun(StepByStep):
    """The executor's plan, memory and results; only the kernels go elsewhere."""

    def __init__(self, concrete: ConcreteFunction, engine: Engine) -> None:
        self.engine = engine
        call_plan = concrete.build.call_plan
        self.planned = {p.key: p for p in (*call_plan.outputs, *call_plan.temps)
                        if isinstance(p, View) and not p.views}
        super().__init__(call_plan, concrete.executable.spec)

    def _fresh(self) -> list[View]:
        return []

    def _segment(self, steps: list[Any]) -> Any:
        is_library = isinstance(steps[0], NodeCall)
        return steps[0] if is_library else _EngineKernels(steps, self)


class _EngineKernels(SizedSegment):
    def __init__(self, steps: list[RunKernel], plan: _EngineRun) -> None:
        self.steps, self.cells, self.engine = steps, plan.cells, plan.engine
        self.planned = plan.planned
        self.fresh = {}  # the first kernel that uses a place poisons it
        self._note_operands(steps)

    def run(self, memory_of: Any, sizes: Any, error: Any) -> bool:
        for step in self.steps:
            raised = error() if any(resolve(n, sizes) == 0 for n in step.not_empty) else None
            if raised is not None:
                raise raised
            self._run_kernel(step, memory_of, sizes)
        return True

    def _run_kernel(self, step: RunKernel, memory_of: Any, sizes: Any) -> None:
        kernel = step.kernel.at_sizes(sizes)
        arrays = [self._array(place, memory_of, sizes) for place in step.places]
        self.engine(kernel, [_as_buffer(a, b) for a, b in zip(arrays, kernel.buffers, strict=True)])
        for place, array in zip(step.places, arrays, strict=True):
            if place.is_cell:
                self.cells.view(place.memory.position, place.dtype)[0] = array.reshape(())[()]

    def _array(self, place: View, memory_of: Any, sizes: Any) -> np.ndarray:
        if place.is_cell:
            return np.array(self.cells.view(place.memory.position, place.dtype)[0])
        key = place.key
        if key not in memory_of:
            memory_of[key] = _poisoned(self.planned.get(key, place).at_sizes(sizes))
        array = memory_of[key]
        for view in place.views:
            array = view(array, sizes)
        return array


def _as_buffer(array: np.ndarray, buffer: Any) -> np.ndarray:
    shown = as_pairs(array)
    return shown if shown.shape == buffer.shape else shown.reshape(buffer.shape)


def _poisoned(place: View) -> np.ndarray:
    """Memory in the place's layout that shows elements never written."""
    order = sorted(range(len(place.shape)), key=lambda d: -place.strides[d])
    raw = np.full(int(np.prod(place.shape)) * place.dtype.itemsize, 0xA5, np.uint8)
    shape = [place.shape[d] for d in order]
    return raw.view(place.dtype).reshape(shape).transpose(np.argsort(order))
