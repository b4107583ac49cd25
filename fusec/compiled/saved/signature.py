"""A saved signature as it is read: which calls it answers, and its graph for one of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fusec.core import locks
from fusec.core.records import dataclass, field
from fusec.errors import FusecError
from fusec.ir.graph import Graph
from fusec.ir.sizes.dims import Dim
from fusec.ir.sizes.dynamic_sizes import open_sizes, sizes_of
from fusec.ir.sizes.instantiate import Instantiation
from fusec.ir.sizes.polynomials import LEAST_ARGUMENT
from fusec.ir.sizes.size_questions import Computed, value_at
from fusec.ir.types import TensorType
from fusec.ops.graphs.admit import NotAdmittedError, admit
from fusec.signature.specs import TensorSpec
from fusec.state.variable import Variable
from fusec.trace.facts.layout import k_order

from ..kept.known_graphs import admitted
from .plain_values import same_value
from .structures import SavedStructureError, StructureReader
from .view_steps import SavedStep, with_views

_ARGUMENT = re.compile(r"^\[(0|1)\]\[(\d+|'\w+')\]")  # of (args, kwargs)
_MOST_SHOWN = 8  # conditions on sizes, in one text
MOST_SIZES = 64  # combinations of sizes of which the graphs are kept


class MismatchError(ValueError):
    """Why arguments are not those of a signature."""


class StaticArgument(NamedTuple):
    """The value that an argument must have."""

    value: Any


class OutsideValue(NamedTuple):
    """The value of an input that is no argument: a Variable, an array, or a number."""

    value: Variable | np.ndarray | complex | np.generic | Computed


class SavedOutput(NamedTuple):
    """A leaf of the result: ``kind`` and ``number`` as the kind and index of a `ResultLeaf`."""

    kind: str
    number: int
    steps: tuple[SavedStep, ...]
    indices: tuple[int, ...]
    value: Any

    def at(self, sizes: Instantiation) -> SavedOutput:
        """The same at these sizes."""
        steps = tuple(SavedStep(step.op, {k: sizes.data(v) for k, v in step.attrs.items()},
                                sizes.data(step.strides), step.operands) for step in self.steps)
        value = self.value
        if isinstance(value, (Dim, Computed)):
            value = value_at(value, sizes.sizes)
        return self._replace(steps=steps, value=value)


class AdmittedGraph(NamedTuple):
    """A graph that may run; behind its ``saved`` outputs those that views show.

    ``made`` has the arrays that follow from the sizes.
    """

    graph: Graph
    saved: int
    outputs: tuple[SavedOutput, ...]
    made: dict[Computed, np.ndarray]


class _Shown(str):
    """A text that stands in a container as it is."""

    __repr__ = str.__str__


@dataclass(eq=False)
class SavedSignature:
    """One signature of a function that was saved.

    ``leaves``: of each argument leaf the number of its input, or the value that it must have.
    """

    name: str
    read: Graph  # as it stands in the file: nothing of it is believed
    inputs: Any
    leaves: tuple[int | StaticArgument, ...]
    outside: tuple[OutsideValue, ...]
    result: Any
    outputs: tuple[SavedOutput, ...]
    orders: tuple[tuple[int, ...], ...]
    reader: StructureReader
    names: tuple[str, ...]  # of parameters that can be given by position
    is_beside: bool  # one of open sizes, for sizes of 1
    # Of arguments that lie otherwise than in C order: what a trace does follows from it.
    lies: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    # Whether arguments may be written, where the program asked.
    flags: Mapping[int, bool] = field(default_factory=dict)
    _own: Graph | None = None
    _admitted: dict[tuple[int, ...], AdmittedGraph] = field(default_factory=dict)
    _lock: Any = field(default_factory=locks.Lock)

    @property
    def symbols(self) -> frozenset[str]:
        """Of sizes that were left open."""
        return open_sizes(self.read)

    @property
    def types(self) -> tuple[TensorType, ...]:
        return self.read.input_types

    @property
    def graph(self) -> Graph:
        """The graph as it was traced, admitted where all sizes are known."""
        if self.symbols:
            return self.read
        with self._lock:
            if self._own is None:
                self._own = admit(self.read)
            return self._own

    def admitted(self, sizes: Mapping[str, int]) -> AdmittedGraph:
        """The graph at these sizes, admitted; raises `NotAdmittedError`, and ``ValueError`` for
        sizes that it was not traced for."""
        key = tuple(sizes[name] for name in sorted(sizes))
        with self._lock:
            found = self._admitted.get(key)
            if found is None:
                found = self._admitted[key] = self._admit(sizes)
                if len(self._admitted) > MOST_SIZES:
                    self._admitted.pop(next(iter(self._admitted)))
            return found

    def _admit(self, sizes: Mapping[str, int]) -> AdmittedGraph:
        try:
            graph = self.read.at_sizes(**sizes) if self.symbols else self.read
            at = Instantiation(sizes)
            outputs = tuple(output.at(at) for output in self.outputs) if sizes else self.outputs
            made = {o.value: _made(o.value, sizes) for o in self.outside
                    if isinstance(o.value, Computed)}
        except FusecError:
            raise
        except (ValueError, TypeError, ArithmeticError, LookupError) as error:
            raise NotAdmittedError(f"the saved function {self.name} is not admitted for the sizes "
                                   f"{dict(sizes)}: {error}") from None
        return AdmittedGraph(
            admitted(_with_views(graph, outputs)), len(graph.outputs), outputs, made)

    def admit_once(self) -> None:
        """Raise for a graph that is not admitted; of open sizes some that it was traced for."""
        if not self.symbols:
            self.admitted({})

    # -- calls

    def match(self, args: tuple[Any, ...], kwargs: dict[str, Any], type_of: Any) -> list[Any]:
        """The arguments by input; ``type_of`` gives the type of one.

        Raises `MismatchError` where they are not those of this signature.
        """
        try:
            pairs = [*self.reader.leaves(self.inputs, (args, kwargs))]
        except SavedStructureError as error:
            raise MismatchError(self._named(str(error))) from None
        given: list[Any] = [None] * (len(self.types) - len(self.outside))
        for (path, value), leaf in zip(pairs, self.leaves, strict=True):
            if isinstance(leaf, StaticArgument):
                _check_static(self._named(path), value, leaf.value)
            else:
                _check_type(self._named(path), type_of(value), self.types[leaf])
                given[leaf] = value
        self._check_sizes([type_of(value).shape for value in given])
        return given

    def check_layouts(self, given: Sequence[Any]) -> None:
        """Raise `MismatchError` for arrays whose axes lie in another order than was traced, or may
        be written otherwise: ``x.ravel("K")`` and ``x.flags`` have other values there."""
        for number, flag in self.flags.items():
            if given[number].is_writeable != flag:
                which = ("arrays that may be written", "read-only arrays")
                raise MismatchError(f"saved for {which[not flag]}, got one of {which[flag]}: the "
                                    "program asks for x.flags.writeable")
        for number, x in enumerate(given):
            shape, strides = x.shape, x.strides
            if 0 in shape or not strides or not all(
                    isinstance(n, int) for n in (*shape, *strides)):
                continue
            wanted = self.lies.get(number, range(len(shape)))
            found = k_order(shape, [strides])
            if [a for a in found if shape[a] != 1] != [a for a in wanted if shape[a] != 1]:
                raise MismatchError(f"saved for arrays whose axes lie in the order {[*wanted]}, got"
                                    f" one of {found}: give np.ascontiguousarray(x)")

    def _check_sizes(self, shapes: Sequence[tuple[int, ...]]) -> None:
        sizes = self.sizes(shapes)
        small = [f"{name}={size}" for name, size in sizes.items() if size < LEAST_ARGUMENT]
        broken = small or [str(a) for a in self.read.assumed if not a.holds(sizes)]
        if broken:
            raise MismatchError(f"saved for {'sizes of 2 and more, not' if small else 'sizes with'}"
                                f" {', '.join(broken)}")

    def _named(self, path: str) -> str:
        """A path as the program has it: ``params['w']`` for ``[0][1]['w']``."""
        def name(match: re.Match[str]) -> str:
            place, key = match[1], match[2]
            if place == "1":
                return key.strip("'")
            number = int(key)
            return self.names[number] if number < len(self.names) else f"argument {number}"

        return _ARGUMENT.sub(name, path, count=1)

    def sizes(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        """The open sizes, by the shapes of the arguments; raises `MismatchError`."""
        try:
            return sizes_of(self.types[: len(shapes)], shapes) if self.symbols else {}
        except ValueError as error:
            raise MismatchError(str(error)) from None

    # -- what it is

    @property
    def structured_inputs(self) -> Any:
        """As `ConcreteFunction.structured_inputs`."""
        return self.reader.tree(self.inputs, lambda number: self._spec(self.leaves[number]))

    @property
    def structured_outputs(self) -> Any:
        """As `ConcreteFunction.structured_outputs`."""
        return self.reader.tree(self.result, lambda number: self._result(self.outputs[number]))

    def _spec(self, leaf: int | StaticArgument) -> Any:
        return leaf.value if isinstance(leaf, StaticArgument) else spec_of(self.types[leaf])

    def _result(self, output: SavedOutput) -> Any:
        if output.kind not in ("graph", "input"):
            return output.value
        return spec_of(_with_views(self.read, [output]).outputs[-1].type if output.steps else (
            self.read.outputs if output.kind == "graph" else self.read.inputs)[output.number].type)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The Variables that it reads or writes."""
        return tuple(o.value for o in self.outside if isinstance(o.value, Variable))

    def __str__(self) -> str:
        args, kwargs = self.reader.tree(self.inputs, lambda number: self._shown(
            self.leaves[number]))
        parts = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]
        return f"{self.name}({', '.join(parts)}){self._conditions()}"

    def _shown(self, leaf: int | StaticArgument) -> Any:
        """An argument in a text: open sizes have names, and numbers their type."""
        if isinstance(leaf, StaticArgument):
            return leaf.value
        type_ = self.types[leaf]
        return _Shown(f"TensorSpec([{', '.join(map(str, type_.shape))}], {type_.dtype})"
                      if type_.kind == "array" else _worded(type_))

    def _conditions(self) -> str:
        """What holds for its open sizes."""
        names = ", ".join(sorted(self.symbols))
        asked = dict.fromkeys(map(str, self.read.assumed))
        conditions = [*([f"{names} >= {LEAST_ARGUMENT}"] if names else []), *asked]
        more = f" and {len(conditions) - _MOST_SHOWN} more" if len(conditions) > _MOST_SHOWN else ""
        return " where " * bool(conditions) + " and ".join(conditions[:_MOST_SHOWN]) + more

    __repr__ = __str__


def _with_views(graph: Graph, outputs: Sequence[SavedOutput]) -> Graph:
    chains = [((graph.outputs if o.kind == "graph" else graph.inputs)[o.number], o.steps, o.indices)
              for o in outputs if o.steps]
    try:
        return with_views(graph, chains)
    except (ValueError, TypeError, LookupError, ArithmeticError, StopIteration) as error:
        raise NotAdmittedError(f"a result of the graph {graph.name!r:.60} is not admitted: "
                               f"{error}") from None


def _made(value: Computed, sizes: Mapping[str, int]) -> np.ndarray:
    """An array that follows from the sizes."""
    array = value.evaluate(sizes)
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{value} is no array")
    array.flags.writeable = False
    return array


def spec_of(type_: TensorType) -> TensorSpec:
    """The type as a spec; sizes that are open, or that only the run knows, are None."""
    return TensorSpec(tuple(None if isinstance(s, Dim) else s for s in type_.shape), type_.dtype)


def _check_static(path: str, value: Any, expected: Any) -> None:
    if not same_value(value, expected):
        raise MismatchError(f"{path}: saved for {expected!r}, got {value!r:.60}")


def _check_type(path: str, given: TensorType | None, expected: TensorType) -> None:
    fits = given is not None and (given.dtype, given.kind, given.rank) == (
        expected.dtype, expected.kind, expected.rank) and all(
        isinstance(size, Dim) or size == n
        for size, n in zip(expected.shape, given.shape, strict=True))
    if not fits:
        raise MismatchError(f"{path}: saved for {_worded(expected)}, got {_worded(given)}")


def _worded(type_: TensorType | None) -> str:
    """A type, where a number is told apart from an array without axes: results are of its kind."""
    if type_ is None:
        return "no array or number"
    if type_.kind == "array":
        return f"{type_}{' (an array)' * (not type_.rank)}"
    one = type_.dtype.type(0)
    return f"{type(one.item()).__name__ if type_.is_weak else f'np.{type_.dtype}'} (a number)"
