"""`replicate`: a step on pieces of a batch, on all workers of a cluster at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from threading import get_ident
from typing import Any, Generic, Literal, ParamSpec, TypeVar

import numpy as np
import optree

from fusec.core import locks
from fusec.core.tracers import TRACERS
from fusec.dispatch.function import Function
from fusec.dispatch.jit import jit
from fusec.distributed.replicas.replica_plan import plan_of_step
from fusec.distributed.replicas.replicated_calls import calls_of, present_workers
from fusec.distributed.split_plan import place_of
from fusec.errors import short_errors, unsupported, user_error

P = ParamSpec("P")
R = TypeVar("R")
Axes = str | int | Mapping[str, int | None]
MOST_PLANS = 64
BATCH = "batch"


class ReplicatedFunction(Generic[P, R]):
    """See `replicate`."""

    def __init__(self, step: Function[P, R], axis: Axes, pieces: int, transfer: str) -> None:
        self.step, self.axis, self.pieces, self.transfer = step, axis, pieces, transfer
        self.__name__ = step.__name__
        self._plans: dict[Any, Any] = {}
        self._lock = locks.Lock()

    def __repr__(self) -> str:
        return f"<fusec.replicate of {self.__name__}: batches in {self.pieces} pieces>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The step's result.  Raises as the step does, and `WorkerLostError`: then nothing was
        assigned."""
        if TRACERS and get_ident() in TRACERS:
            raise unsupported(f"{self!r} inside of a compiled function",
                              cure="call it as a step of its own")
        with short_errors:
            return self._called(args, kwargs)

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = self.step._compiler.flatten(args, kwargs)
        calls, traced = self._calls(call)
        inputs = {number: leaf for leaf, number in zip(call.leaves, traced.positions, strict=True)
                  if number >= 0}
        return optree.tree_unflatten(traced.treespec, calls.call(inputs))

    # -- plans

    def _calls(self, call: Any) -> tuple[Any, Any]:
        """The calls of a plan that answers this one, and its trace."""
        tasks = _tasks(self.pieces)
        owner, sizes, traced = self._trace(call)
        key = tasks, id(owner), sizes
        with self._lock:
            found = self._plans.get(key)
            if found is None:
                while len(self._plans) >= MOST_PLANS:
                    self._plans.pop(next(iter(self._plans)))
                traced = traced or self.step._compiler.traced(call)
                found = self._plans[key] = self._planned(call, traced, tasks), traced, owner
        return found[:2]

    def _trace(self, call: Any) -> tuple[Any, Any, Any]:
        """The trace that serves the call, and sizes; the trace at these, where it is at hand."""
        compiler = self.step._compiler
        traced = None
        with compiler.lock:
            found = compiler.symbolic.find(call)
        if found is None:
            traced = compiler.traced(call)
            with compiler.lock:
                found = compiler.symbolic.find(call)
        if found is not None:
            return found[0], tuple(sorted(found[1].items())), traced
        concrete, _ = compiler.look_up(call)  # without symbols: found again by its guards
        return concrete, (), concrete.build.traced

    def _planned(self, call: Any, traced: Any, tasks: tuple[int, ...]) -> Any:
        axes = self._axes(call)
        sizes = _pieces_of(call, axes, self.pieces)
        chunks = {}
        for leaf, number, path in zip(call.leaves, traced.positions, call.paths, strict=True):
            if path in axes:
                if number < 0:
                    raise unsupported(f"argument {path}, which is static and has the batch's axis,",
                                      cure="leave it out of static=")
                chunks[number] = [sizes if axis == axes[path] else None
                                  for axis in range(leaf.ndim)]
        plan = plan_of_step(
            self.__name__, traced, self.step._compiler.options, chunks, sizes,
            place_of(self.step._compiler.target.fn))
        return calls_of(plan, tasks, self.transfer == "bfloat16")

    def _axes(self, call: Any) -> dict[str, int]:
        """The batch's axis of each argument that has it, by path."""
        arrays = {path: leaf for leaf, path in zip(call.leaves, call.paths, strict=True)
                  if isinstance(leaf, np.ndarray) and leaf.ndim}
        if isinstance(self.axis, Mapping):
            unknown = [name for name, axis in self.axis.items() if axis is not None and not (
                name in arrays and -arrays[name].ndim <= axis < arrays[name].ndim)]
            if unknown:
                raise user_error(
                    ValueError, f"axis= names {unknown[0]!r}, which is no array with that axis",
                    None, "give the arguments' names, each with the number of its axis",
                    values=[(path, list(leaf.shape)) for path, leaf in arrays.items()])
            return {name: axis % arrays[name].ndim for name, axis in self.axis.items()
                    if axis is not None}
        axis = 0 if self.axis == BATCH else int(self.axis)
        return {path: axis % leaf.ndim for path, leaf in arrays.items()
                if -leaf.ndim <= axis < leaf.ndim}


def _tasks(pieces: int) -> tuple[int, ...]:
    """The workers of the cluster; raises where there is none, or a worker would have no piece."""
    tasks = present_workers()
    if not tasks:
        raise user_error(RuntimeError, "a replicated step runs on the workers of a cluster, and "
                         "there is none", None, "fusec.cluster(client)")
    if len(tasks) > pieces:
        raise user_error(
            ValueError, "a batch has fewer pieces than there are workers", None,
            f"fusec.replicate(step, pieces={len(tasks)}), from the first step on: the number of "
            "pieces decides bits", values=[("pieces", pieces), ("workers", len(tasks))])
    return tasks


def _pieces_of(call: Any, axes: Mapping[str, int], pieces: int) -> Sequence[int]:
    """The lengths of the pieces."""
    leaves = dict(zip(call.paths, call.leaves, strict=True))
    lengths = {path: int(leaves[path].shape[axis]) for path, axis in axes.items()}
    if not lengths:
        raise user_error(ValueError, "no argument is an array with the batch's axis", None,
                         "fusec.replicate(step, axis={'x': 0})")
    if len({*lengths.values()}) > 1:
        raise user_error(
            ValueError, "arguments have batches of several lengths", None, "axis={'x': 0, 'y': 0} "
            "names those that are in pieces; others go to every worker", values=[*lengths.items()])
    (length,) = {*lengths.values()}
    if length < pieces:
        raise user_error(
            ValueError, f"a batch of {length} cannot be cut in {pieces} pieces", None,
            "give a larger batch, or fusec.replicate(step, pieces=...)", values=[*lengths.items()])
    ends = [k * length // pieces for k in range(pieces + 1)]
    return tuple(b - a for a, b in itertools.pairwise(ends))


def replicate(
    step: Callable[P, R], axis: Axes = BATCH, *, pieces: int = 8,
    transfer: Literal["exact", "bfloat16"] = "exact",
) -> ReplicatedFunction[P, R]:
    """``step`` as a function that computes on all workers of the present cluster at once.

    Each worker has a replica of the Variables and gets its part of the batch; sums over the batch,
    as gradients are, are added up in a ring; then every replica does the rest, alike.  The result
    is that of ``step`` itself, but for how sums over the batch are rounded: docs/workers.md states
    their order, which the number of pieces decides, and no number of workers.

    ``axis``: ``"batch"``: the first axis of every array argument; a number: that axis; or, by name
    of argument, the axis of each that has it, while others are the same for all.  ``pieces``: how
    many a batch is cut in, at least one for each worker.  ``transfer="bfloat16"``: float32 travels
    in the ring with 16 bits; then bits depend on the number of workers, too.

    Calls raise `UnsupportedError`, with the line, for what pieces cannot compute each by itself;
    ``ValueError`` for a batch shorter than ``pieces``, ``RuntimeError`` without a cluster, and
    `WorkerLostError` where a worker is lost: then nothing was assigned anywhere.
    """
    if type(pieces) is not int or pieces < 1:
        raise user_error(ValueError, "pieces is a number from 1 on",
                         values=[("given", repr(pieces))])
    if transfer not in ("exact", "bfloat16"):
        raise user_error(ValueError, "transfer is 'exact' or 'bfloat16'",
                         values=[("given", repr(transfer))])
    if not (axis == BATCH or type(axis) is int or isinstance(axis, Mapping)):
        raise user_error(ValueError, "axis is 'batch', a number, or numbers by argument", None,
                         "axis={'x': 0, 'y': 0}", values=[("given", repr(axis))])
    is_jitted = isinstance(getattr(step, "function", step), Function)  # or a method with its own
    function: Any = step if is_jitted else jit(step)
    return ReplicatedFunction(function, axis, pieces, transfer)


__all__ = ["ReplicatedFunction", "replicate"]
