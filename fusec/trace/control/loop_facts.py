"""The facts about a loop before and between attempts to trace it: its parts, its carried values
and their types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusec.core.records import dataclass, field
from fusec.ir import TensorType, Value
from fusec.ir.sizes.dims import Size, is_static
from fusec.ir.sizes.symbolic_numbers import stored

from ..choice.merge import flatten
from ..choice.optional_values import aligned, or_absent
from ..choice.records import before_all
from ..guards.places import UNBOUND, Absent
from ..lists.growing_lists import FilledList
from ..operands.python_numbers import Interval
from ..places.cells import CellVariables
from ..values.array import TracedArray
from ..values.selected_arrays import roots
from ..values.storage import Storage
from ..values.trace import Trace

Leaf = tuple[str, int]  # a variable, and the number of a leaf of what it holds


@dataclass
class LoopParts:
    """The loop as its hooks give it: ``count`` items, or ``test``; all are traced when called."""

    variables: CellVariables
    needed: Sequence[str]
    body: Callable[..., Any]
    test: Callable[[], Value]
    where: Any
    count: Any = None  # None: a ``while`` loop
    item: Callable[[Any], Any] | None = None
    tested: Value | None = None  # the test of a ``while``, evaluated before the loop
    first: Value | None = None  # the same, where it has effects
    written: Callable[..., Any] | None = None  # the user's body, where ``body`` is made of it


@dataclass(frozen=True)
class Capacity:
    """Of sizes that change: the least and the largest when an iteration begins, the largest ever.
    """

    least: int
    entering: int
    most: int


@dataclass
class LoopFacts:
    """The facts that earlier attempts found."""

    types: dict[Leaf, TensorType] = field(default_factory=dict)
    open: set[Leaf] = field(default_factory=set)  # numbers that an iteration leaves of another kind
    pythons: set[Leaf] = field(default_factory=set)  # that it leaves as Python's own, perhaps
    fixed: set[Leaf] = field(default_factory=set)  # numbers that stay what they are
    moving: set[Leaf] = field(default_factory=set)  # those of which that was found to be wrong
    rebound: set[Leaf] = field(default_factory=set)  # arrays that a variable is bound to anew
    # What Python ints are in all iterations, None where that is not known; others take small steps.
    bounds: dict[Leaf, Interval | None] = field(default_factory=dict)
    joined: set[str] = field(default_factory=set)  # variables that it leaves with one list or dict
    parted: set[str] = field(default_factory=set)  # that it finds with one, and leaves with several
    holders: dict[int, Any] = field(default_factory=dict)  # see `loop_leaves`
    storages: dict[Storage, None] = field(default_factory=dict)
    lists: dict[str, FilledList] = field(default_factory=dict)  # those that it appends to and reads
    optional: dict[str, Any] = field(default_factory=dict)  # what variables are that may be None
    # Axes whose sizes change: those of one number are equal in each iteration.
    axes: dict[tuple[Leaf, int], int] = field(default_factory=dict)
    beginnings: dict[Size, int] = field(default_factory=dict)  # the numbers, by sizes before
    steps: dict[int, int] = field(default_factory=dict)  # what an iteration adds to the first size
    capacities: dict[int, Capacity] = field(default_factory=dict)
    refusal: Exception | None = None  # why sizes must not change, where they cannot be carried
    changed: bool = False

    def learn_sizes(self, key: Leaf, entered: TensorType, left: TensorType, why: Exception) -> bool:
        """Whether an iteration leaves an array with other sizes alone, which may be carried."""
        if entered.kind != "array" or left.kind != "array" or entered.rank != left.rank:
            return False
        for axis, (size, other) in enumerate(zip(entered.shape, left.shape, strict=True)):
            if size != other:
                number = self.beginnings.setdefault(stored(size), len(self.axes))
                self.axes[key, axis] = number
                if is_static((size, other)):
                    self.steps[number] = other - size
        self.refusal, self.changed = why, True
        return True

    def change(self) -> None:
        """The attempt is void."""
        self.changed = True

    def learn_optional(self, name: str, like: Any) -> None:
        """A variable that has other leaves from now on: facts about the old ones are void."""
        self.optional[name] = like
        self.changed = True
        self.types = {key: t for key, t in self.types.items() if key[0] != name}
        self.fixed = {key for key in self.fixed if key[0] != name}
        self.rebound = {key for key in self.rebound if key[0] != name}
        self.axes = {key: c for key, c in self.axes.items() if key[0][0] != name}

    def learn_moving(self, key: Leaf) -> None:
        """A number that an attempt left unchanged, where a variable had no value yet."""
        self.fixed.discard(key)
        self.learn(self.moving, key)

    def entry(self, trace: Trace, values: dict[str, Any]) -> dict[str, Any]:
        """The values of variables before the loop, as optional values where they may become one."""
        return {name: self._entry(trace, name, x) for name, x in values.items()}

    def _entry(self, trace: Trace, name: str, value: Any) -> Any:
        like = self.optional.get(name)
        if like is None:
            return value
        if value is UNBOUND:
            return or_absent(trace, value, like, Absent(name))
        return aligned(value, like, (before_all(trace), before_all(trace)))[0]

    def learn(self, table: Any, *keys: Any) -> None:
        """Add to one of the tables; the attempt is void when that is news."""
        for key in keys:
            if key not in table:
                self.changed = True
                if isinstance(table, set):
                    table.add(key)
                else:
                    table[key] = None


@dataclass
class Carried:
    """One value that goes from iteration to iteration."""

    parameter: Value
    initial: Value | None  # None: the body sets it before anything reads it
    final: Value | None = None
    leaf: Leaf | None = None
    storage: Storage | None = None
    is_needed: bool = False


@dataclass(frozen=True)
class EarlierFacts:
    """The facts of an earlier trace of a loop: numbers that stay as they are, variables bound to
    other arrays, written memory."""

    fixed: frozenset[Leaf]
    rebound: frozenset[Leaf]
    written: tuple[Storage, ...]

    def facts(self) -> LoopFacts:
        """The facts that an attempt begins with."""
        return LoopFacts(fixed=set(self.fixed), rebound=set(self.rebound),
                     storages=dict.fromkeys(self.written))


class MetBefore(dict[Any, EarlierFacts]):
    """By the places of loops the facts that the last trace of each found.

    A loop inside of others is traced in each attempt at those.  If each time it had to find its
    carried values anew, which takes an attempt of its own, a level more of a nest would double the
    trace.  So they are supposed, and looked at afterwards: where that does not hold, the loop is
    traced as if it were met first.
    """

    def note(self, where: Any, facts: LoopFacts) -> None:
        """An attempt with this knowledge has settled."""
        self[where] = EarlierFacts(frozenset(facts.fixed), frozenset(facts.rebound),
                                   tuple(facts.storages))

    def supposed(self, trace: Trace, parts: LoopParts) -> EarlierFacts | None:
        """The facts that are supposed of a loop; of memory, those of memory from before all loops
        and branches or of its variables: other memory may be of an attempt that was given up."""
        found = self.get(parts.where)
        if found is None or not (found.fixed or found.rebound or found.written):
            return None
        leaves = (leaf for x in parts.variables.read().values() for leaf in flatten(x)[0])
        shown = {root for leaf in leaves if type(leaf) is TracedArray and leaf.storage is not None
                 for root in roots(leaf.storage)}
        first = trace.record.regions[0]
        return EarlierFacts(found.fixed, found.rebound, tuple(
            s for s in found.written if s.born < first or s in shown))
