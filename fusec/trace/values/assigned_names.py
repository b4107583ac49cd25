"""Names that a trace must know from its start: of numbers that are assigned after they were read.

A number of an attribute or outer variable is a constant of the graph, unless the program assigns
it: then it is an input.  Where a function that is called late turns out to assign a number read
early, the constant is in the graph already, and the trace begins anew with that name known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from fusec.core.records import dataclass, field
from fusec.core.tracers import note_made
from fusec.errors import ConcreteValueError, unsupported

from ..facts.code_names import names_in
from ..facts.refusals import is_compiled
from .collaborators import OuterVariable

Result = TypeVar("Result")
_MOST_ATTEMPTS = 1000
_MOST_OF_ONE_TITLE = 50  # containers that messages call the same: a new one in each attempt?
SMALL = 1 << 31  # larger ints stay constants


def is_number(x: Any) -> bool:
    """Whether a value can be an input that is a number."""
    if type(x) is int:
        return -SMALL < x < SMALL
    return type(x) in (float, complex) or (isinstance(x, np.generic) and is_compiled(x.dtype))


@dataclass
class AssignedNames:
    """The attributes, by name, and outer variables that are inputs from the start.

    Where an int among them decides the program's course, ints stay constants: a trace for each.
    """

    attributes: set[str] = field(default_factory=set)
    places: dict[tuple[int, str], Any] = field(default_factory=dict)
    roots: dict[int, Any] = field(default_factory=dict)  # arrays that views are taken of, by id
    # Lists and dicts that the program changes, with what messages call them, by id.
    containers: dict[int, tuple[Any, str]] = field(default_factory=dict)
    appended: set[int] = field(default_factory=set)  # those that are nothing but appended to
    has_ints: bool = False  # among the inputs of the trace
    ints_are_constants: bool = False

    def may_be_input(self, x: Any) -> bool:
        """Whether the value of a name is a number that can be an input."""
        return is_number(x) and not (self.ints_are_constants and type(x) is int)


class AssignedLater(BaseException):
    """The trace has read a number that it assigns now, views of one array that it writes to, or a
    container that it changes; no ``except Exception`` of the user's catches it."""

    def __init__(
        self, attribute: str = "", place: OuterVariable | None = None,
        root: np.ndarray | None = None, containers: Sequence[tuple[Any, str]] = (),
        appended: Sequence[int] = (),
    ) -> None:
        super().__init__(attribute or (place.subject if place is not None else ""))
        self.attribute, self.place, self.root = attribute, place, root
        self.containers, self.appended = containers, appended
        note_made(self)

    def note_in(self, names: AssignedNames) -> None:
        if self.attribute:
            names.attributes.add(self.attribute)
        if self.place is not None:
            names.places[self.place.key] = self.place
        if self.root is not None:
            names.roots[id(self.root)] = self.root
        names.containers.update((id(holder), (holder, title)) for holder, title in self.containers)
        names.appended.update(self.appended)


def settled_trace(trace: Callable[[AssignedNames], Result], known: frozenset[str]) -> Result:
    """The trace's result, begun anew for every name, besides ``known``, that is assigned late."""
    names, titles = AssignedNames(set(known)), Counter[str]()
    for _ in range(_MOST_ATTEMPTS):
        try:
            return trace(names)
        except AssignedLater as found:
            found.note_in(names)
            titles = Counter(title for _, title in names.containers.values())
            if titles and max(titles.values()) > _MOST_OF_ONE_TITLE:
                break
        except ConcreteValueError:
            if names.ints_are_constants or not names.has_ints:
                raise
            names.ints_are_constants = True
    title = max(titles, key=titles.__getitem__, default="names")
    raise unsupported(f"changing a list or dict ({title}) that the function makes, but does not "
                      "hold in its variables,", cure="hold it in a variable, and use that")


def is_named(functions: Any, name: str) -> bool:
    """Whether code of one of these functions may have read the outer variable."""
    return any(name in (*names_in(fn.__code__), *fn.__code__.co_freevars) for fn in functions)
