"""Dataclasses that are quick to make.

`dataclasses.dataclass` writes the text of three to six methods for every class and compiles each of
them when the module is imported: 0.14 ms a class, 0.27 where it is frozen (Python 3.11).  The first
call of a process makes 140 of them.  `dataclass` here compiles ``__init__``, comparison and hash
when they are first called; ``repr`` and refused assignment are functions that read the fields.
Everything else (fields, `replace`, matching, slots) is the standard library's, for which
type checkers take it.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Collection
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields
from reprlib import recursive_repr
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

__all__ = ["Record", "dataclass", "field", "replace"]

_assign = object.__setattr__


def _dataclass(
    cls: type | None = None, /, *, eq: bool = True, frozen: bool = False, slots: bool = False,
    kw_only: bool = False,
) -> Any:
    """As `dataclasses.dataclass` with these arguments; there are no ``InitVar`` fields."""
    def made(cls: type) -> type:
        return _made(cls, eq, frozen, slots, kw_only)

    return made if cls is None else made(cls)


def _replace(instance: Any, /, **changes: Any) -> Any:
    """`dataclasses.replace`, for plain instances without a call of their initialiser: a trace and
    its plans are records of twenty fields, and few of these change."""
    names: frozenset[str] | None = vars(type(instance)).get("_plain_fields")
    if names is None or not names >= changes.keys():
        return dataclasses.replace(instance, **changes)
    new, values = object.__new__(type(instance)), vars(instance)
    if len(values) > len(names):  # facts that are kept beside the fields are of the old ones
        values = {name: values[name] for name in names}
    _assign(new, "__dict__", {**values, **changes})
    return new


if TYPE_CHECKING:
    from dataclasses import dataclass, replace
else:
    dataclass, replace = _dataclass, _replace


def _made(cls: type, eq: bool, frozen: bool, slots: bool, kw_only: bool) -> type:
    own = dict(vars(cls))
    if own.get("__hash__", MISSING) is None and "__eq__" in own:
        del own["__hash__"]  # Python's answer to the class's ``__eq__``
    cls.__doc__ = own["__doc__"] or cls.__name__  # or the signature is worked out to stand for it
    made: Any = dataclasses.dataclass(
        cls, init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)
    made.__doc__ = own["__doc__"]
    methods: dict[str, Any] = {"__init__": _FirstInit(made, frozen, slots), "__repr__": _repr}
    if eq:
        methods |= _comparison(made, frozen)
    if frozen:
        methods |= _refusals(made, {f.name for f in fields(made)})
    if frozen and slots:
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    if not slots and "__init__" not in own and not hasattr(made, "__post_init__"):
        named = fields(made)
        if all(f.init for f in named):
            made._plain_fields = frozenset(f.name for f in named)
    return made


# -- the initialiser


class _FirstInit:
    """``__init__`` until it is first called, which compiles it: of many classes a process makes no
    instance."""

    def __init__(self, cls: Any, frozen: bool, slots: bool) -> None:
        self._of = cls, frozen, slots

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, instance: Any, *args: Any, **named: Any) -> None:
        self._compiled()(instance, *args, **named)

    @property
    def __signature__(self) -> Any:
        import inspect

        return inspect.signature(self._compiled())

    def _compiled(self) -> Callable[..., None]:
        cls = self._of[0]
        init = _init(*self._of)
        if vars(cls).get("__init__") is self:
            cls.__init__ = init
        return init


def _init(cls: Any, frozen: bool, slots: bool) -> Callable[..., None]:
    """``__init__``, compiled among the names of the class's module: it is of that module."""
    own = fields(cls)
    names = {"_assign": _assign, "MISSING": MISSING}
    names |= {f"_default_{f.name}": f.default for f in own if f.default is not MISSING}
    names |= {f"_make_{f.name}": f.default_factory for f in own
              if f.default_factory is not MISSING}
    text = "\n".join([
        f"def outer({', '.join(names)}):", f" def __init__({_parameters(own)}):",
        *(line for f in own for line in _assignment(f, frozen, slots)),
        "  self.__post_init__()" if hasattr(cls, "__post_init__") else "  pass",
        " return __init__"])
    made: dict[str, Any] = {}
    exec(text, vars(sys.modules[cls.__module__]), made)
    init: Callable[..., None] = made["outer"](**names)
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {f.name: f.type for f in own if f.init} | {"return": None}
    return init


def _parameters(own: Collection[Field[Any]]) -> str:
    given = [(f"{f.name}=_default_{f.name}" if f.default is not MISSING else
              f"{f.name}=MISSING" if f.default_factory is not MISSING else f.name, f.kw_only)
             for f in own if f.init]
    named = [text for text, is_named in given if is_named]
    return ", ".join(["self", *(text for text, is_named in given if not is_named),
                      *(["*", *named] if named else [])])


def _assignment(f: Field[Any], frozen: bool, slots: bool) -> list[str]:
    """The line that gives the field its value; a default that nobody can give stays the class's."""
    value = f.name if f.init else f"_default_{f.name}"
    if f.default_factory is not MISSING:
        value = f"_make_{f.name}()"
        if f.init:
            value += f" if {f.name} is MISSING else {f.name}"
    elif not f.init and (f.default is MISSING or not slots):
        return []
    return [f"  _assign(self, {f.name!r}, {value})" if frozen else f"  self.{f.name} = {value}"]


# -- what reads the fields


def _comparison(cls: Any, frozen: bool) -> dict[str, Any]:
    """``__eq__``, and ``__hash__`` where instances do not change.

    Few classes are ever compared, and some of them often: both are compiled when first called.
    """
    def __eq__(self: Any, other: Any) -> Any:
        mine, others = _values(cls, "self"), _values(cls, "other")
        _compile(cls, "__eq__(self, other)",
                 f"{mine} == {others} if other.__class__ is self.__class__ else NotImplemented")
        return cls.__eq__(self, other)

    def __hash__(self: Any) -> int:
        _compile(cls, "__hash__(self)", f"hash({_values(cls, 'self')})")
        return cls.__hash__(self)

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _values(cls: Any, instance: str) -> str:
    names = (f"{instance}.{f.name}, " for f in fields(cls) if f.compare)
    return f"({''.join(names)})"


def _compile(cls: type, head: str, result: str) -> None:
    """Give the class this method."""
    made: dict[str, Any] = {}
    exec(f"def {head}: return {result}", vars(sys.modules[cls.__module__]), made)
    for name, method in made.items():
        setattr(cls, name, method)


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _refusals(cls: Any, names: Collection[str]) -> dict[str, Callable[..., None]]:
    """Fields of instances are not assigned; classes derived from it may have attributes beside."""
    rest: Any = super

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        rest(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        rest(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        _assign(self, f.name, value)


# -- records without methods of their own


@dataclass_transform(eq_default=False, frozen_default=True)
class Record:
    """A base of small classes whose annotations are the parameters of their initialiser.

    They are equal if they are the same; type checkers refuse assignments.  Making such a class
    costs a fifth of a dataclass: there are modules with thirty, of which a process uses
    ten.
    """

    __match_args__: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.__match_args__ = tuple(  # type: ignore[misc]
            vars(cls).get("__annotations__", ()))

    if not TYPE_CHECKING:

        def __init__(self, *values: Any, **named: Any) -> None:
            names, cls = self.__match_args__, type(self)
            if len(values) == len(names) and not named:
                vars(self).update(zip(names, values))  # noqa: B905
                return
            given = dict(zip(names, values), **named) if values else named  # noqa: B905
            twice_or_more = len(given) != len(values) + len(named)
            if len(given) != len(names):
                given = {n: getattr(cls, n) for n in names if n in vars(cls)} | given
            if twice_or_more or given.keys() != set(names):
                raise TypeError(f"{cls.__name__}() takes {', '.join(names)}")
            vars(self).update(given)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__name__}({values})"
