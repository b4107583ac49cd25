"""From the arguments of a call to its key: positions, names, pytrees, and ints of the run."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import optree

from fusec.core import gpus
from fusec.core.records import replace
from fusec.errors import user_error, users_own
from fusec.trace.call.flat_call import FlatCall, flatten, leaf_paths
from fusec.trace.call.overlap import merged
from fusec.trace.call.packed_lists import Packing
from fusec.trace.call.placement_settings import placing_in, scope_now
from fusec.trace.call.signature import Signature, keywords_of
from fusec.trace.facts.trees import flattened

from . import foreign_arguments
from .input_signature import InputSignature


class Binder:
    """Flattens the calls of one function, and learns which Python ints are values of the run.

    An int is static until a second value is seen; then it is a value of the run (*dynamic*),
    unless a trace turned out to need it while tracing (*pinned*).
    """

    def __init__(
        self, signature: Signature, specs: InputSignature | None, reduce_retracing: bool,
        scope_now: Callable[[], Any] = scope_now,
    ) -> None:
        """``scope_now`` gives the device scope of a call that is made now."""
        self.signature = signature
        self._specs = specs
        self.reduce_retracing = reduce_retracing
        self._scope_now = scope_now
        self.packing = Packing(signature)
        self.pinned: frozenset[str] = frozenset()
        self._dynamic: frozenset[str] = frozenset()
        self._int_values: dict[str, set[int]] = {}

    def flatten(self, fn: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> FlatCall:
        """The call's leaves and key; raises as Python does for arguments that do not fit."""
        if self.signature.partial_keywords is not None:
            self._check_keywords(keywords_of(fn), self.signature.partial_keywords)
        try:
            bound, keywords = self.signature.bind(args, kwargs)
        except TypeError as error:
            raise users_own(_call_error(fn, args, kwargs, error)) from None
        bound, keywords = self.taken(bound, keywords) or (bound, keywords)
        gpu = _arguments_of_gpus() if gpus.may_have_arrays() and _hold(bound, keywords) else None
        if gpu is not None:
            bound, keywords = _with_lent(gpu, bound, keywords)
        if self._specs is not None:
            bound = self._specs.applied(bound)
        bound, keywords = self._packed(bound, keywords)
        call = flatten(self.signature, bound, keywords, self._dynamic, self.pinned)
        placed = placing_in if gpu is None else gpu.placing_in
        return replace(call, form=(len(args), *kwargs), placing=placed(self._scope_now()))

    def taken(
        self, bound: tuple, keywords: dict[str, Any],
    ) -> tuple[tuple, dict[str, Any]] | None:
        """Bound arguments with views of NumPy for arrays of other libraries; None without any."""
        tree: Any = (bound, keywords)
        leaves, treespec = flattened(tree)
        if not foreign_arguments.may_be_among(leaves):
            return None
        paths, static = leaf_paths(self.signature, treespec)
        foreign_arguments.check_static(leaves, paths, static)
        made: Any = treespec.unflatten(foreign_arguments.taken(leaves, paths))
        return made

    def _check_keywords(self, now: dict[str, Any], before: dict[str, Any]) -> None:
        """A partial's keywords are defaults of the signature, which is made once."""
        for name in {**before, **now}:
            was, is_ = (given.get(name, "absent") for given in (before, now))
            if was is not is_:
                raise user_error(
                    ValueError, f"the keyword {name!r} of a partial has changed since fusec.jit "
                    "was put on it", None, "jit the partial anew, or give the keyword at each call",
                    values=[("before", was), ("now", is_)])

    def _packed(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """Long lists of numbers as arrays, unless each number is to be a constant or has a spec."""
        is_usual = self._specs is None and self.reduce_retracing
        return self.packing.applied(args, kwargs) if is_usual else (args, kwargs)

    def again(self, call: FlatCall) -> FlatCall:
        """The call flattened anew, after other ints have become values of the run."""
        args, kwargs = self._packed(*_unflatten(call.separate or call))
        anew = flatten(self.signature, args, kwargs, self._dynamic, self.pinned)
        anew = replace(anew, form=call.form, placing=call.placing)
        return anew if call.separate is None else merged(anew) or anew

    def relaxed(self, call: FlatCall) -> FlatCall:
        """A Python int seen with a second value becomes a run-time value."""
        if not self.reduce_retracing:
            return call
        changed = set()
        for leaf, path, part in zip(call.leaves, call.paths, call.key[1:], strict=True):
            if part[0] is int and len(part) == 2 and path not in self.pinned:
                values = self._int_values.setdefault(path, set())
                values.add(leaf)
                if len(values) > 1:
                    changed.add(path)
        if not changed:
            return call
        self._dynamic |= changed
        return self.again(call)

    def pin(self, call: FlatCall) -> FlatCall | None:
        """The call with every int static again; None where that is the same call."""
        used = {path for path, leaf in zip(call.paths, call.leaves, strict=True)
                if path in self._dynamic or (
                    isinstance(leaf, np.integer) and path not in self.pinned)}
        if not used:
            return None
        self.pinned |= used
        self._dynamic -= used
        return self.again(call)

    def ints(self) -> tuple[frozenset[str], frozenset[str]]:
        """The pinned and the dynamic ints, for `restore`."""
        return self.pinned, self._dynamic

    def restore(self, ints: tuple[frozenset[str], frozenset[str]]) -> None:
        self.pinned, self._dynamic = ints

    def clear(self) -> None:
        self._int_values.clear()
        self._dynamic = self.pinned = frozenset()


def _hold(args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether an array of a GPU is among the arguments."""
    tree: Any = (args, kwargs)
    return any(map(gpus.is_on_gpu, flattened(tree)[0]))


def _arguments_of_gpus() -> Any:
    """The module for such arguments; it loads placement, too."""
    return importlib.import_module("fusec.signature.gpu_arguments")


def _with_lent(gpu: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """The arguments with arrays of GPUs as plans take them."""
    tree: Any = (args, kwargs)
    leaves, treespec = flattened(tree)
    made: Any = treespec.unflatten(gpu.lent(leaves))
    return made


def _unflatten(call: FlatCall) -> tuple[tuple, dict[str, Any]]:
    tree: Any = optree.tree_unflatten(call.treespec, call.leaves)
    args, kwargs = tree
    return args, kwargs


def _name(fn: Any) -> str:
    return getattr(fn, "__name__", type(fn).__name__)


def _call_error(fn: Any, args: tuple, kwargs: dict[str, Any], error: TypeError) -> Exception:
    """Python's own error for arguments that do not fit: plain functions refuse them unrun."""
    function = getattr(fn, "__func__", fn)
    if type(function) is FunctionType and not hasattr(function, "__wrapped__"):
        try:
            fn(*args, **kwargs)
        except TypeError as found:
            return found
    return TypeError(f"{_name(fn)}() {error}")
