"""A call whose results are looked at: where one holds an infinity or NaN, the node that made it is
searched for.

The call runs as ever.  Only where a result is not finite is it run again, from the same arguments,
node by node through NumPy (`fusec.ops.graphs.origins`), which gives each infinity and NaN its
origin.  One that was given makes no error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fusec import config
from fusec.core import log
from fusec.errors import FusecError
from fusec.ir import Node, Value
from fusec.ops.calls.host_calls import Mark, context, host_calls, host_objects
from fusec.ops.graphs.origins import OriginSearch, Tracked, is_float

from ..call_endings import result_of
from .numerics_report import of_compiled_code, of_origin, of_pass, of_unknown
from .pass_search import pass_that_makes

if TYPE_CHECKING:
    from ..executor import Executable

_ALL = 1 << 60  # lines that are printed already


def run(
    executable: Executable, leaves: Sequence[Any], times: list[tuple[str, float]] | None
) -> list[Any]:
    """The call's results; raises ``FloatingPointError`` or warns, as `config.check_numerics` says.

    A call that raises leaves its arguments, Variables and generators as they were before it.
    """
    call = _WatchedCall(executable, leaves)
    results = executable.run_unchecked(leaves, times)
    found = call.error(results)
    if found is not None:
        if config.check_numerics == "raise":
            call.take_back()
            raise found
        loc = found.loc
        log.warn(str(found), RuntimeWarning, loc.file if loc else "<unknown>",
                 loc.line if loc else 1)
    return results


class _Compiled(NamedTuple):
    """An element that compiled code alone has made: where in the graph, and both values of it."""

    output: Value
    at: tuple[int, ...]
    value: Any
    numpys: Any


class _WatchedCall:
    """A call that begins: what it starts from is kept."""

    def __init__(self, executable: Executable, leaves: Sequence[Any]) -> None:
        self.spec, self.plan = executable.spec, executable.call_plan
        self.graph = self.plan.traced or self.plan.graph
        self.residents: Any = getattr(self.plan, "residents", None)
        self.leaves = leaves
        self.seen: list[int] = []
        objects = host_objects(self.graph)
        self.objects = [] if objects is None else objects
        self.inputs = self._inputs()
        self.before = {i: np.array(self._on_host(self.inputs[i]), order="K")
                       for i in self.spec.updates}
        with host_calls(leaves):
            self.mark = Mark(self.objects)

    def _inputs(self) -> list[Any]:
        """The graph's inputs, where they lie."""
        for _, occupancy in self.spec.variables:
            occupancy.come_home()
        return self.spec.inputs_of(
            self.leaves, [c() if callable(c) else c for c in self.spec.captured])

    def _on_host(self, x: Any) -> Any:
        """NumPy's array of what may be one of a device."""
        if self.residents is None:
            return x
        if isinstance(x, self.residents.kind):
            x = self.residents.lent(x)
        if not isinstance(x, np.ndarray) or not self.residents.is_there(x):
            return x
        with self.residents.call():  # on whose stream it was computed
            return self.residents.fetch(x)

    def take_back(self) -> None:
        """Arguments, Variables and generators have the values again that the call found."""
        for i, before in self.before.items():
            target = self.inputs[i]
            if self.residents is not None and self.residents.is_there(target):
                with self.residents.call():
                    self.residents.write(target, self.residents.bring(before))
            else:
                np.copyto(target, before)
        for _, occupancy in self.spec.variables:
            occupancy.copies.clear()
        self.mark.restore()

    # -- what is wrong

    def error(self, results: Sequence[Any]) -> FusecError | None:
        """The error of a call with these results, or None."""
        results = [self._on_host(x) for x in results]
        self.seen = self._seen(results)
        changed = self._changed()
        if all(_is_finite(x) for x in (*self._computed(results), *changed.values())):
            return None
        try:
            with self._repeating():
                return self._searched(results, changed)
        except Exception as error:  # of any class: a library refuses what it is given now
            given = (self._on_host(x) for x in self.inputs)
            return of_unknown(self.spec.name, error) if all(map(_is_finite, given)) else None

    def _seen(self, results: Sequence[Any]) -> list[int]:
        """Results that the graph computes and the caller gets: of two sides the one taken."""
        left = {i for test, then, orelse in self.spec.sides
                for i in (orelse if results[test] else then)}
        return [i for i, spec in enumerate(self.spec.results)
                if spec.kind == "graph" and i not in left]

    def _computed(self, results: Sequence[Any]) -> list[Any]:
        return [results[i] for i in self.seen]

    def _changed(self) -> dict[int, Any]:
        """The new contents of inputs that the call changes."""
        if not self.before:
            return {}
        now = self._inputs()
        return {i: self._on_host(now[i]) for i in self.before}

    @contextmanager
    def _repeating(self) -> Iterator[None]:
        """Generators draw the same numbers again, nothing is printed twice."""
        with host_calls(self.leaves):
            now = Mark(self.objects)
            self.mark.restore()
            context().repeated = _ALL
            try:
                yield
            finally:
                now.restore()

    def _searched(self, results: Sequence[Any], changed: dict[int, Any]) -> FusecError | None:
        inputs = [self.before.get(i, self._on_host(x)) for i, x in enumerate(self.inputs)]
        search = OriginSearch()
        outputs, updates = search.outputs(self.graph, inputs, {})
        seen = sorted({self.spec.results[i].index for i in self.seen})
        origin = search.first([*(outputs[i] for i in seen), *(x for _, x in updates)])
        if origin is not None:
            return of_origin(self.spec.name, origin)
        compiled = self._of_compiled_code(results, changed, outputs, updates, inputs)
        if compiled is None:
            return None
        made = pass_that_makes(self.plan, self.plan.passes, inputs, seen)
        if made is not None:
            return of_pass(self.spec.name, made)
        return of_compiled_code(self.spec.name, *compiled, self._kernel(compiled.output))

    def _of_compiled_code(
        self, results: Sequence[Any], changed: dict[int, Any], outputs: Sequence[Tracked],
        updates: Sequence[tuple[int, Tracked]], inputs: Sequence[Any],
    ) -> _Compiled | None:
        """The first element that NumPy has a finite number for."""
        values = [x.value for x in outputs]
        pairs = [(self.graph.outputs[spec.index], results[i],
                  result_of(spec, values, [*inputs], {}, {}))
                 for i in self.seen for spec in [self.spec.results[i]]]
        of_updates = dict(self.graph.updates)
        pairs += [(of_updates[i], changed[i], x.value) for i, x in updates if i in changed]
        for output, got, wanted in pairs:
            if is_float(got) and np.shape(got) == np.shape(wanted):
                bad = np.argwhere(~np.isfinite(got) & np.isfinite(wanted))
                if len(bad):
                    at = tuple(int(i) for i in bad[0])
                    return _Compiled(output, at, np.asarray(got)[at], np.asarray(wanted)[at])
        return None

    def _kernel(self, output: Value) -> Node:
        """The node of the plan that gives an output of the program's."""
        of_plan = dict(zip((*self.graph.outputs, *(v for _, v in self.graph.updates)),
                           (*self.plan.graph.outputs, *(v for _, v in self.plan.graph.updates)),
                           strict=False))
        return of_plan[output].node


def _is_finite(x: Any) -> bool:
    return not is_float(x) or bool(np.isfinite(x).all())
