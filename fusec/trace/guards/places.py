"""Places that outlive the call: variables of outer scopes, attributes, items of lists and dicts.

The value of a place is read at each call (`OuterPlace.__call__`), by guards and for inputs of the
graph.  One that the program assigns is a variable of its branches and loops (`OuterPlace.value`),
is put back after the trace, and is assigned after each call (`OuterPlace.apply`): see `Places`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from types import ModuleType
from typing import Any

from fusec.core.locations import Loc
from fusec.core.records import dataclass

Key = tuple[int, Any]
Bind = Callable[[Any], str]


@dataclass(frozen=True)
class Absent:
    """No value: of a variable that is not bound, of an item that is not appended."""

    name: str = ""  # of the variable


UNBOUND: Any = Absent()  # what a place holds that has no value


class OuterPlace:
    """The place of ``name`` in ``scope``; called, it gives the value there.

    ``subject``: its name in messages; ``title``: in reports, another one for each variable.
    """

    __slots__ = ("name", "scope", "subject", "title")

    def __init__(self, scope: Any, name: Any, subject: str, title: str = "") -> None:
        self.scope, self.name, self.subject, self.title = scope, name, subject, title or subject

    @property
    def key(self) -> Key:
        return id(self.scope), self.name

    def __call__(self) -> Any:
        raise NotImplementedError

    def expression(self, bind: Bind) -> str:
        """`__call__` as text; ``bind`` gives a name for an object."""
        return f"{bind(self)}()"

    @property
    def reader(self) -> Callable[[], Any]:
        """The function that reads it at each call."""
        return self

    def now(self) -> Any:
        """The value that the program sees in it while it is traced; `UNBOUND` for nothing."""
        return self()

    def put(self, value: Any) -> None:
        """Let the program see this."""
        raise NotImplementedError

    def apply(self, value: Any) -> None:
        """Assign it, after a call."""
        self.put(value)

    def settle(self) -> None:
        """It is no variable from now on: its owner keeps the value."""

    def __str__(self) -> str:
        return f"assigns {self.title}"


class Cell(OuterPlace):
    """A closure variable, whatever each function calls it."""

    __slots__ = ()

    def __init__(self, scope: Any, name: str) -> None:
        super().__init__(scope, name, f"closure variable {name}")

    @property
    def key(self) -> Key:
        return id(self.scope), ""

    def __call__(self) -> Any:
        try:
            return self.scope.cell_contents
        except ValueError:
            return UNBOUND

    def put(self, value: Any) -> None:
        if value is not UNBOUND:
            self.scope.cell_contents = value
        elif self() is not UNBOUND:
            del self.scope.cell_contents


class Global(OuterPlace):
    """A name in the dictionary of a module."""

    __slots__ = ()

    def __init__(self, scope: dict[str, Any], name: str) -> None:
        super().__init__(scope, name, f"global {name}")

    def __call__(self) -> Any:
        return self.scope.get(self.name, UNBOUND)

    def expression(self, bind: Bind) -> str:
        return f"{bind(self.scope.get)}({self.name!r}, {bind(UNBOUND)})"

    def put(self, value: Any) -> None:
        if value is not UNBOUND:
            self.scope[self.name] = value
        else:
            self.scope.pop(self.name, None)


class Defaults(OuterPlace):
    """The defaults of a function, by position or by name."""

    __slots__ = ()

    def __init__(self, scope: Any, name: str) -> None:
        super().__init__(scope, name, f"the defaults of {scope.__name__}")

    def __call__(self) -> Any:
        return getattr(self.scope, self.name)

    def expression(self, bind: Bind) -> str:
        return f"{bind(self.scope)}.{self.name}"


class Attribute(OuterPlace):
    """An attribute of an object that is not kept alive; ``scope`` gives the object.

    While the function is traced the object keeps its value: an assigned one waits here.
    """

    __slots__ = ("_id", "_reader", "_waiting")

    def __init__(self, obj: Any, name: str) -> None:
        owner = obj.__name__ if isinstance(obj, ModuleType) else type(obj).__name__
        scope = reference(obj)
        super().__init__(scope, name, f"attribute {owner}.{name}", f"{owner}.{name}")
        self._id, self._waiting = id(obj), UNBOUND
        self._reader: Any = lambda: getattr(scope(), name, UNBOUND)
        self._reader.__dict__["place"] = self

    @property
    def key(self) -> Key:
        return self._id, self.name

    def __call__(self) -> Any:
        return self.of(self.scope(), self.name)

    @staticmethod
    def of(obj: Any, name: str) -> Any:
        """The value that reading it gives of this object."""
        return getattr(obj, name, UNBOUND)

    def expression(self, bind: Bind) -> str:
        return f"getattr({bind(self.scope)}(), {self.name!r}, {bind(UNBOUND)})"

    @property
    def reader(self) -> Callable[[], Any]:
        return self._reader  # as `__call__`, in half the time

    def now(self) -> Any:
        return self._waiting

    def put(self, value: Any) -> None:
        self._waiting = value

    def apply(self, value: Any) -> None:
        owner = self.scope()
        if owner is not None:
            setattr(owner, self.name, value)

    def settle(self) -> None:
        owner = self.scope()
        if owner is not None and self._waiting is not UNBOUND:
            object.__setattr__(owner, self.name, self._waiting)
        elif owner is not None and self() is not UNBOUND:
            object.__delattr__(owner, self.name)


class MethodOf(Attribute):
    """The function of a method, which is bound anew each time that it is read."""

    __slots__ = ()

    @staticmethod
    def of(obj: Any, name: str) -> Any:
        return getattr(getattr(obj, name, UNBOUND), "__func__", UNBOUND)

    def expression(self, bind: Bind) -> str:
        return f"getattr({super().expression(bind)}, '__func__', {bind(UNBOUND)})"


class NamesOf(Attribute):
    """The names of an object's own attributes, which ``vars(obj)`` shows."""

    __slots__ = ()

    def __init__(self, obj: Any) -> None:
        super().__init__(obj, "__dict__")
        self.subject = self.title = f"the names of attributes of a {type(obj).__name__}"
        scope = self.scope
        self._reader = lambda: NamesOf.of(scope(), "__dict__")
        self._reader.__dict__["place"] = self

    @staticmethod
    def of(obj: Any, name: str) -> Any:
        return tuple(getattr(obj, name, ()))

    def expression(self, bind: Bind) -> str:
        return f"tuple(getattr({bind(self.scope)}(), '__dict__', ()))"


class Item(OuterPlace):
    """The item of a list or dict under a key; ``find`` gives the one that stands in its place at a
    later call."""

    __slots__ = ("find",)

    def __init__(self, scope: Any, name: Any, subject: str, find: Callable[[], Any]) -> None:
        super().__init__(scope, name, subject)
        self.find = find

    def __call__(self) -> Any:
        if isinstance(self.scope, dict):
            return self.scope.get(self.name, UNBOUND)
        return self.scope[self.name] if self.name < len(self.scope) else UNBOUND

    def put(self, value: Any) -> None:
        if isinstance(self.scope, dict):
            if value is UNBOUND:
                self.scope.pop(self.name, None)
            else:
                self.scope[self.name] = value
        elif value is not UNBOUND and self.name < len(self.scope):  # else its append is taken back
            self.scope[self.name] = value

    def apply(self, value: Any) -> None:
        self.find()[self.name] = value


def reference(obj: Any) -> Callable[[], Any]:
    """Gives an object that is not kept alive, where that can be avoided."""
    try:
        return weakref.ref(obj)
    except TypeError:
        return lambda: obj


class Places:
    """Of a trace: the places that the program assigns, as variables of its branches and loops."""

    def __init__(self) -> None:
        self.by_title: dict[str, OuterPlace] = {}
        self.initial: dict[str, Any] = {}
        self.before: dict[str, Any] = {}  # what those from outside are to hold after the trace
        self.assigned_at: dict[str, Loc | None] = {}  # attributes and items: the latest time
        # Variables of functions that were called in a region, and containers made in one, with when
        # that was.
        self.born: dict[int, tuple[int, Any]] = {}
        self._known: dict[tuple[type, Key], OuterPlace] = {}

    def __contains__(self, place: OuterPlace) -> bool:
        return (type(place), place.key) in self._known

    def add(self, place: OuterPlace) -> None:
        """Take a place for a variable, with its value now."""
        title, number = place.title, 2
        while place.title in self.by_title:
            place.title, number = f"{title} ({number})", number + 1
        self.by_title[place.title] = self._known[type(place), place.key] = place
        self.initial[place.title] = place.now()

    def add_outside(self, place: OuterPlace, before: Any) -> None:
        """The same of one that outlives the call."""
        self.add(place)
        self.before[place.title] = before

    def of_kind(self, *kinds: type[OuterPlace]) -> Iterator[OuterPlace]:
        return (place for place in self.by_title.values() if isinstance(place, kinds))

    # -- attributes

    def attribute(self, obj: Any, name: str) -> OuterPlace | None:
        """That of the object, if the program has assigned it."""
        return self._known.get((Attribute, (id(obj), name)))

    def attributes_of(self, obj: Any) -> list[OuterPlace]:
        """Those that the program has assigned."""
        return [place for (kind, key), place in self._known.items()
                if kind is Attribute and key[0] == id(obj)]

    # -- as variables of branches and loops

    @property
    def titles(self) -> list[str]:
        """Attributes come last."""
        is_last = {title: type(place) is Attribute for title, place in self.by_title.items()}
        return sorted(is_last, key=is_last.__getitem__)

    def read(self) -> dict[str, Any]:
        """The values of all of them."""
        return {title: self.by_title[title].now() for title in self.titles}

    def restore(self, values: Mapping[str, Any], restored: Collection[int] = ()) -> None:
        """Bind all as they were when `read` gave these values, new ones as they were found.

        ``restored`` are the ids of cells that have been, under the names of the program's own
        variables: the values in them are those of the attempt that is taken back.
        """
        for title, place in self.by_title.items():
            if title in values or id(place.scope) not in restored:
                place.put(values.get(title, self.initial[title]))

    def forget(self, start: int) -> None:
        """Let go of variables that began after ``start``, in a side of a branch or in a loop's body
        that ends: each of its ways, and each iteration, has its own."""
        over = {key for key, (born, _) in self.born.items() if born > start}
        for title, place in list(self.by_title.items()) if over else ():
            if place.key[0] in over:
                place.settle()
                del self.by_title[title], self.initial[title], self._known[type(place), place.key]
        for key in over:
            del self.born[key]

    # -- the end of the trace

    def changed(self) -> list[OuterPlace]:
        """Those from outside that are to be assigned after each call."""
        return [place for title, place in self.outside() if place.now() is not UNBOUND
                and place.now() is not self.initial[title]]

    def outside(self) -> list[tuple[str, OuterPlace]]:
        """Those that outlive the call."""
        return [(title, self.by_title[title]) for title in self.before]

    def put_back(self) -> None:
        """Their values from before the trace."""
        for title, place in self.outside():
            if place.now() is not UNBOUND:
                place.put(self.before[title])
