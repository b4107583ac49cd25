"""From a function and the specs of its arguments to what a library has of it: parameters, and a
plan for each kind of sizes."""

from __future__ import annotations

import itertools
import keyword
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import optree

from fusec.codegen.exported.identifiers import RESERVED, identifier, unused
from fusec.codegen.exported.parts import CParameter, ExportedFunction, GivenResult, Variant
from fusec.core import log
from fusec.core.locations import Loc
from fusec.core.records import dataclass
from fusec.errors import FusecError, InternalError, UnsupportedError
from fusec.ir.sizes.dims import Dim
from fusec.ir.sizes.size_questions import Computed, Question, Succeeds
from fusec.ir.sizes.symbolic_numbers import stored
from fusec.signature.example_arguments import example_of, known_sizes
from fusec.signature.unwritten_arrays import unwritten
from fusec.trace.control.raised_exceptions import is_programs

from ..sizes.partitions import MOST_AXES, refined
from ..tracing_compiler import TracingCompiler
from .refusals import RaisesAlwaysError, RefusedError, of_one_size
from .results import ArgumentItself, NoNumber
from .traces import CPU, ExportTarget, PlannedCall, planned

FIRST_HINT = 37  # of an open size: loops over few are unrolled, and few columns are near
# Sizes that have plans of their own where those before do not serve them: the order of loops
# follows from some, short axes are part of the code.
LARGE, SMALL = (72, 100, 4096, 65_536), (*range(2, 18),)
# Of several axes at once: of two of many, and of three, as a product of matrices has.
FEW, ORDERED, MIXED = (1, 2, 3, 4, 8), (64, 100, 4096), (64, 17, 3, 1, 8, 16, 1000, 2, 5)
UNLIKELY_SIZES = (41, 59, 131, 1009)
MOST_COMBINED, MOST_ORDERED, MOST_TRIALS = 2, 3, 96
_OF_ALL_FUNCTIONS = ("state", "STATE")  # names that parameters do not take from them


@dataclass(frozen=True)
class OpenAxis:
    """A size that a spec leaves open: axis of the array that is that leaf of the arguments."""

    leaf: int
    axis: int


class _NoAddressesError(OSError):
    """Arrays of the sizes that are tried are larger than what a process can address."""


class Exporter:
    """Exports one function."""

    def __init__(
        self, name: str, compiler: TracingCompiler, args: tuple[Any, ...], kwargs: dict[str, Any],
        target: ExportTarget = CPU, own_names: Iterable[str] = (),
    ) -> None:
        """``own_names``: further ones that parameters do not take."""
        self.name, self.compiler, self.target = name, compiler, target
        self.own_names = (*_OF_ALL_FUNCTIONS, *own_names)
        call: Any = (args, kwargs)
        self.spec: Any = optree.tree_map(_dense, call, none_is_leaf=True, namespace="fusec")
        self.fixed = known_sizes(self.spec)
        self.axes = self._open_axes()

    def _unused(self) -> Iterator[int]:
        return (n for n in itertools.count(FIRST_HINT) if n not in self.fixed)

    def _open_axes(self) -> list[OpenAxis]:
        """The open sizes, in the order in which specs name them."""
        given: list[int] = []

        def sizes() -> Iterator[int]:
            for n in self._unused():
                given.append(n)
                yield n

        call = self.compiler.flatten(*example_of(self.spec, sizes()))
        self.paths = call.paths
        where = {n: OpenAxis(leaf, axis) for leaf, array in enumerate(call.leaves)
                 if isinstance(array, np.ndarray) for axis, n in enumerate(array.shape)}
        return [where[n] for n in given if n in where]

    def _planned(self, sizes: Sequence[int]) -> PlannedCall:
        open_ = {(axis.leaf, axis.axis) for axis in self.axes}
        try:
            args, kwargs = example_of(self.spec, iter(sizes), unwritten)
        except (OSError, OverflowError) as error:
            raise _NoAddressesError from error
        return planned(self.compiler, args, kwargs, open_, self.target)

    def _tried(self, sizes: Sequence[int]) -> PlannedCall | None:
        """The plan for sizes that the program may not be for; None where it raises at them.
        Refusals are told, but of sizes that are only a trial: `partition` raises those for all."""
        try:
            return self._planned(sizes)
        except InternalError:
            raise
        except RefusedError:
            if len(set(sizes)) == len(self.axes):
                raise
        except _NoAddressesError:
            return None
        except Exception as error:
            if not isinstance(error, (FusecError, RaisesAlwaysError)) and not is_programs(error):
                raise
            if log.enabled(2):
                log.write(2, f"{self.name}: not for sizes {[*sizes]}: {error}")
        return None

    def _check_open(self, plans: Sequence[PlannedCall], count: int) -> None:
        """Raises `UnsupportedError` where each plan is for sizes of a few values."""
        if count and not any(self._is_served(plans, [n] * count) or self._is_served(
                plans, [n + k for k in range(count)]) for n in UNLIKELY_SIZES):
            raise UnsupportedError(
                f"the code of {self.name} depends on the values of its sizes", loc=_loc_of(
                    self.compiler), cure="give the sizes in the specs")

    # -- which sizes are one

    def partition(self) -> tuple[list[int], PlannedCall]:
        """The size parameter of each open axis, and the plan of a call in which different ones
        differ: the finest partition of axes with which the program can be traced."""
        hints = list(itertools.islice(self._unused(), len(self.axes)))
        if (plan := self._tried(hints)) is not None:
            return [*range(len(hints))], plan
        best = of_one_size(  # raises the program's own error
            self.name, hints[0] if hints else 0,
            [f"{self.paths[axis.leaf]}'s axis {axis.axis}" for axis in self.axes],
            _loc_of(self.compiler), lambda n: self._planned([n] * len(hints)))
        if len(hints) > MOST_AXES:
            raise UnsupportedError(
                f"{self.name} cannot be traced where its {len(hints)} open sizes differ, and they "
                "are too many to find those that are one", cure="give sizes in the specs")
        groups, best = refined(
            len(hints), lambda groups: self._tried([hints[g] for g in groups]), best)
        numbers = {g: k for k, g in enumerate(dict.fromkeys(groups))}
        return [numbers[g] for g in groups], best

    # -- all plans

    def exported(self) -> ExportedFunction:
        of_axis, general = self.partition()
        self.of_axis = of_axis
        plans = [general]
        count = 1 + max(of_axis, default=-1)
        hints = list(itertools.islice(self._unused(), count))
        form = _form(general)
        trials = 0
        for sizes in self._samples(hints):
            if trials < MOST_TRIALS and not self._is_served(plans, sizes):
                trials += 1
                plan = self._tried([sizes[k] for k in of_axis])
                # Without one a call of such sizes is an error in C, too.
                plans += [plan] if plan is not None and _form(plan) == form else []
        self._check_open(plans, count)
        arguments, results = self._parameters(general)
        names = self._size_names(general)
        positions, self.plans = general.traced.positions, plans
        written = {positions.index(i) for i in general.traced.updates if i in positions}
        self.numbers = {leaf: k for k, leaf in enumerate(
            leaf for leaf, n in enumerate(general.traced.positions) if n >= 0)}
        arguments = [a if leaf not in written else CParameter(
            a.name, a.dtype, a.shape, a.is_array, True, a.note)
            for a, leaf in zip(arguments, self.numbers, strict=True)]
        return ExportedFunction(
            self.name, names, arguments, results, [self._variant(p) for p in plans],
            self._size_axes(), [*self.numbers], self._about(plans), _loc_of(self.compiler),
            gives=self._gives(plans))

    def _samples(self, hints: list[int]) -> Iterator[Sequence[int]]:
        """Sizes that programs treat each in its own way: large ones in all combinations and
        orders, ones, none, few of each axis and of several."""
        count = len(hints)
        if count > 1:
            yield hints[:1] * count
        if count <= MOST_COMBINED:
            yield from itertools.product(LARGE, repeat=count)
        elif count <= MOST_ORDERED:
            yield from itertools.product(ORDERED, repeat=count)
        for other in (1, 0, 3, *LARGE, *SMALL):
            for k in range(count):
                yield [other if i == k else n for i, n in enumerate(hints)]
            yield [other] * count
        if count <= MOST_COMBINED:
            yield from itertools.product((1, 0, *SMALL, *LARGE[:3]), repeat=count)
        elif count <= MOST_ORDERED:
            yield from itertools.product((0, 1, hints[0]), repeat=count)
            yield from itertools.product(MIXED, repeat=count)
        else:
            for a, b in itertools.combinations(range(count), 2):
                for few in itertools.product(FEW, repeat=2):
                    yield [few[i == b] if i in (a, b) else n for i, n in enumerate(hints)]

    def _is_served(self, plans: Sequence[PlannedCall], sizes: Sequence[int]) -> bool:
        return any(self._bound(plan, sizes) for plan in plans)

    def _bound(self, plan: PlannedCall, sizes: Sequence[int]) -> bool:
        """Whether the plan is for these size parameters."""
        bound: dict[str, int] = {}
        for axis, number in zip(self.axes, self.of_axis, strict=True):
            size = _size_at(plan, axis)
            n = sizes[number]
            if isinstance(size, str) and size not in plan.numbers:
                if n < 2 or bound.setdefault(size, n) != n:
                    return False
            elif plan.numbers.get(size, size) != n:
                return False
        return plan.serves(bound)

    @staticmethod
    def _count_of_results(plan: PlannedCall) -> int:
        """Outputs behind those are of the state."""
        return len(plan.call_plan.graph.outputs) - len(plan.results.assigned)

    def _variant(self, plan: PlannedCall) -> Variant:
        symbols: dict[str, int] = {}
        fixed: dict[int, int] = {}
        equal: set[tuple[int, int]] = set()
        for axis, number in zip(self.axes, self.of_axis, strict=True):
            size = _size_at(plan, axis)
            if not isinstance(size, str) or size in plan.numbers:
                fixed[number] = int(plan.numbers.get(size, size))
            elif symbols.setdefault(size, number) != number:
                equal.add((symbols[size], number))
        positions = plan.traced.positions
        arguments = {n: self.numbers[leaf] for leaf, n in enumerate(positions) if n >= 0}
        first = len(plan.traced.graph.inputs) - len(plan.traced.captured)
        constants = {first + k: x for k, x in enumerate(plan.traced.captured_now())}
        graph = plan.call_plan.graph
        count = self._count_of_results(plan)
        results = {k: k for k in range(count)}
        types = [graph.inputs[n].type for leaf, n in enumerate(positions) if n >= 0]
        types += [v.type for v in graph.outputs[:count]]
        return Variant(plan.call_plan, symbols, plan.numbers, sorted(fixed.items()), sorted(equal),
                       _that_sizes_decide(plan), arguments, results, constants, types,
                       plan.programs, reopened=plan.reopened)

    # -- names

    def _size_names(self, plan: PlannedCall) -> list[str]:
        names, taken = dict[int, str](), {*self.own_names}
        for axis, number in zip(self.axes, self.of_axis, strict=True):
            path = plan.call.paths[axis.leaf]
            if number not in names:
                names[number] = unused_in_c(f"{identifier(path)}_{axis.axis}", taken)
        self.size_names = [names[k] for k in range(len(names))]
        return self.size_names

    def _size_axes(self) -> list[tuple[int, int]]:
        axes: dict[int, tuple[int, int]] = {}
        for axis, number in zip(self.axes, self.of_axis, strict=True):
            axes.setdefault(number, (self.numbers[axis.leaf], axis.axis))
        return [axes[k] for k in range(len(axes))]

    def _parameters(self, plan: PlannedCall) -> tuple[list[CParameter], list[CParameter]]:
        self._size_names(plan)
        taken = {*self.size_names, *self.own_names}
        of_symbol: dict[str, str] = {}
        for axis, number in zip(self.axes, self.of_axis, strict=True):
            size = _size_at(plan, axis)
            if isinstance(size, str) and size not in plan.numbers:
                of_symbol.setdefault(size, self.size_names[number])
        graph, arguments = plan.call_plan.graph, []
        for leaf, number in enumerate(plan.traced.positions):
            if number < 0:
                continue
            type_ = graph.inputs[number].type
            is_array = type_.kind == "array"
            shape = tuple(_size_text(n, of_symbol) for n in type_.shape)
            name = unused_in_c(identifier(plan.call.paths[leaf]), taken)
            arguments.append(CParameter(name, type_.dtype, shape, is_array))
        return arguments, self._results(plan, of_symbol, taken)

    def _results(
        self, plan: PlannedCall, of_symbol: dict[str, str], taken: set[str]
    ) -> list[CParameter]:
        values = plan.call_plan.graph.outputs[: self._count_of_results(plan)]
        counted = {n: (k, axis) for k, of in plan.results.counts.items() for axis, n in of.items()}
        alone, results = len(values) - len(counted) == 1, list[CParameter]()
        for k, value in enumerate(values):
            stem = "out" if alone else f"out{k}"
            if k in counted:
                of, axis = counted[k]
                stem = f"{results[of].name}_{axis}"
            name = unused_in_c(stem, taken)
            shape = tuple(_size_text(n, of_symbol) for n in value.type.shape)
            results.append(CParameter(name, value.type.dtype, shape, True, True,
                                      counts=tuple(plan.results.counts.get(k, {}).items()),
                                      counted=counted.get(k)))
        return results

    def _about(self, plans: Sequence[PlannedCall]) -> str:
        plan, parts = plans[0], list[str]()
        for path, leaf, number in zip(plan.call.paths, plan.call.leaves, plan.traced.positions,
                                      strict=True):
            if number < 0:
                parts.append(f"{path} is always {_short(leaf)}")
        said = self._gives(plans)
        parts += [f"result {k} is {given.text}" if len(said) > 1 else f"its result is {given.text}"
                  for k, given in enumerate(said) if given.text]
        return "; ".join(parts)

    def _gives(self, plans: Sequence[PlannedCall]) -> list[GivenResult]:
        """What each result of the Python function is."""
        positions, gives = plans[0].traced.positions, list[GivenResult]()
        for leaves in zip(*(p.results.leaves for p in plans), strict=True):
            leaf = leaves[0]
            if isinstance(leaf, int):
                gives.append(GivenResult(result=leaf))
            elif isinstance(leaf, ArgumentItself):
                number = self.numbers[positions.index(leaf.index)]
                gives.append(GivenResult(argument=number, text=str(leaf)))
            elif len({*map(str, leaves)}) == 1:
                gives.append(GivenResult(value=leaf.value, text=str(leaf)))
            else:
                gives.append(GivenResult(value=..., text="a constant that depends on the sizes"))
        return gives


def _dense(leaf: Any) -> Any:
    """An array that is given as an example, as those of C lie: in C order without gaps."""
    is_strided = type(leaf) is np.ndarray and not leaf.flags.c_contiguous
    return np.ascontiguousarray(leaf) if is_strided else leaf


def _form(plan: PlannedCall) -> Any:
    """What all plans of a function must have in common: its parameters."""
    graph = plan.call_plan.graph
    return (plan.traced.positions, [v.type.kind for v in graph.inputs],
            [(v.type.dtype, v.type.rank) for v in (*graph.inputs, *graph.outputs)],
            sorted(plan.traced.updates), len(plan.traced.captured), plan.state.own,
            [None if isinstance(o, NoNumber) else o for o in plan.results.leaves])


_TRIALS = (2, 3, 4, 7, 16, 17, 100, 1000)


def _that_sizes_decide(plan: PlannedCall) -> list[Question]:
    """The questions without those about a library's layouts that every size answers alike: whether
    a size is 0 or 1 decides them, which are no symbols.  By trial, of all symbols together."""
    free = plan.hints.keys() - plan.numbers.keys()
    trials = [{**plan.hints, **dict.fromkeys(free, n)} for n in _TRIALS]
    trials += [{**plan.hints, name: n} for name in free for n in _TRIALS]
    plan.questions[:] = [q for q in plan.questions if isinstance(
        q.expression, (Dim, Computed, Succeeds)) or not all(q.holds(t) for t in trials)]
    return plan.questions


def _size_at(plan: PlannedCall, axis: OpenAxis) -> Any:
    """A size of an argument in the trace's words: a symbol's name, or a number."""
    shape = plan.leaves[axis.leaf]
    assert shape is not None
    return shape[axis.axis]


def _size_text(size: Any, names: dict[str, str]) -> Any:
    size = stored(size)
    if not isinstance(size, Dim):
        return int(size)
    text = str(size)
    return re.sub(r"\bs\d+\b", lambda m: names.get(m[0], m[0]), text)


def unused_in_c(name: str, taken: set[str]) -> str:
    """A name in C: no word of the language, and none of those taken."""
    is_word = name in RESERVED or keyword.iskeyword(name)
    return unused(f"{name}_" if is_word else name, taken)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _loc_of(compiler: TracingCompiler) -> Loc | None:
    code = getattr(compiler.target.python_function, "__code__", None)
    return None if code is None else Loc(code.co_filename, code.co_firstlineno)


__all__ = ["Exporter", "unused_in_c"]
