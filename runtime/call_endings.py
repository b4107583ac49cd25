"""How the call of a plan ends: with its results, or with the error that the program raises."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fusec.codegen.plan.call_plan import CallPlan
from fusec.errors import located
from fusec.ir import Node
from fusec.ir.sizes.bindings import Bindings
from fusec.ops.calls.host_calls import HostObject, Mark, host_calls
from fusec.ops.rows.picking import PickView
from fusec.ops.rows.sizes import SpreadView
from fusec.ops.rows.windows import WindowView

from .call_spec import CallSpec, ResultSpec
from .failed_checks import do_before, do_before_call, earlier_error
from .launching.constant_copies import copy_of
from .plan.sub_programs import copy_maker

# The error of a plan's call on these inputs, where an enclosing plan has bound these sizes.
Find = Callable[[CallPlan, Sequence[Any], Bindings], Any]
# Views of results at indices, or of sizes, that are outputs of the graph.
BY_OUTPUTS = (PickView, SpreadView, WindowView)


class CallEndings:
    """The results and exceptions of calls of one plan; subclasses have the calls themselves."""

    def __init__(self, call_plan: CallPlan, spec: CallSpec) -> None:
        self.call_plan, self.spec = call_plan, spec
        # A failed check makes the call start again: then the effects of host calls are undone.
        self.objects: list[HostObject] | None = None
        self.mark: Mark | None = None
        self.known: Bindings = {}  # what the enclosing plan has bound
        # Arguments that loops have changed before a later step may fail, with copies from before.
        self.saved: Sequence[tuple[np.ndarray, np.ndarray]] = ()
        self.call: Callable[..., list[Any]]

    @property
    def needs_context(self) -> bool:
        """Whether calls must be made by `run`."""
        return self.spec.calls_host

    def run(
        self, leaves: Sequence[Any], times: list[tuple[str, float]] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> list[Any]:
        """Result leaves; ``sizes`` are the symbols that the enclosing plan has bound.

        ``times`` gets (step, microseconds) pairs of a plan made to run one by one.
        """
        self.known = sizes or {}
        symbols = dict(sizes) if sizes else {}
        if not self.spec.calls_host:
            return self.call(leaves, symbols, times)
        with host_calls(leaves):
            return self.call(leaves, symbols, times)

    def begin(self) -> None:
        """Save the state of the user's objects (generators, say), to repeat the call from there."""
        assert self.objects is not None
        self.mark = Mark(self.objects)

    def failure(
        self, error: Exception, node: Node, leaves: Sequence[Any], captured: Sequence[Any],
        changed: Sequence[np.ndarray] = (),
    ) -> Exception:
        """The error of a library call, or an earlier one of the program; of a branch or loop that
        raises what it has ``changed`` until then stays."""
        if self.spec.calls_host and self.mark is None:  # it cannot be repeated
            return located(error, node.loc)
        partly = [(array, self._copied(array)) for array in changed]
        earlier = self.repeated(partial(earlier_error, node), leaves, captured)
        if earlier is None:
            self._do_before(node, self._inputs(leaves, captured))
            self.saved = partly
            self._restore()
        return earlier or located(error, node.loc)

    def _do_before(self, node: Node, inputs: list[Any]) -> None:
        """Carry out the program's assignments before the node, with the same draws again."""
        if self.mark is None or self.objects is None:
            do_before_call(node, self.call_plan, inputs, self.known)
            return
        now = Mark(self.objects)
        self.mark.restore()
        do_before_call(node, self.call_plan, inputs, self.known)
        now.restore()

    def repeated(
        self, find: Find, leaves: Sequence[Any], captured: Sequence[Any],
    ) -> Any:
        """The error that NumPy raises; generators draw the same numbers again, and arguments are
        what they were."""
        self._restore()
        inputs = self._inputs(leaves, captured)
        error = self._searched(find, inputs)
        if error is not None:
            do_before(error, self.call_plan, inputs)
        return error

    def _copied(self, array: np.ndarray) -> np.ndarray:
        return copy_maker(self.call_plan.arrays)(array)

    def _restore(self) -> None:
        arrays = self.call_plan.arrays
        for array, before in self.saved:
            np.copyto(array, before) if arrays is None else arrays.write(array, before)
        self.saved = ()

    def _searched(self, find: Find, inputs: list[Any]) -> Any:
        if self.mark is None or self.objects is None:
            return find(self.call_plan, inputs, self.known)
        now = Mark(self.objects)
        self.mark.restore()
        error = find(self.call_plan, inputs, self.known)
        if error is None:
            now.restore()
        return error

    def _inputs(self, leaves: Sequence[Any], captured: Sequence[Any]) -> list[Any]:
        """The graph's inputs: a call's leaves, then values captured from outside."""
        return self.spec.inputs_of(leaves, captured)

    def results_of(
        self, graph_outputs: list[Any], leaves: Sequence[Any], captured: Sequence[Any],
        sizes: Bindings,
    ) -> list[Any]:
        """The result leaves; copies of constants share memory where the constants do."""
        inputs = self._inputs(leaves, captured)
        copies: dict[int, np.ndarray] = {}
        return [result_of(r, graph_outputs, inputs, copies, sizes) for r in self.spec.results]


def _copied(constant: np.ndarray, copies: dict[int, np.ndarray]) -> np.ndarray:
    """The constant in this call's copy of the array that it is, or is a view of."""
    root = constant
    while isinstance(root.base, np.ndarray):
        root = root.base
    if root.flags.forc and id(root) not in copies:
        copies[id(root)] = copy_of(root)
    copy = copies.get(id(root))
    if constant is root and copy is not None and constant.flags.writeable:
        return copy
    if copy is None or not constant.size:
        result = constant.copy(order="K")
    else:
        offset = constant.ctypes.data - root.ctypes.data
        memory: Any = copy.ravel(order="K")
        result = np.ndarray(constant.shape, constant.dtype, memory, offset, constant.strides)
    result.flags.writeable = constant.flags.writeable
    return result


def result_of(
    result: ResultSpec, graph_outputs: list[Any], inputs: list[Any], copies: dict[int, np.ndarray],
    sizes: Bindings,
) -> Any:
    """The leaf: a constant, or what is shown of an output or input."""
    if result.kind == "const":
        return result.value
    if result.kind == "fresh":
        return _copied(result.value, copies) if type(result.value) is np.ndarray else (
            copy.deepcopy(result.value))
    value = graph_outputs[result.index] if result.kind == "graph" else inputs[result.index]
    for view in result.views:
        value = view(value, graph_outputs) if isinstance(view, BY_OUTPUTS) else (
            view(value, sizes))
    return value
