"""Structures of arguments and results as JSON: tuples, lists, dicts, named tuples, dataclasses.

A leaf is ``{"leaf": number}``.  Classes are written by name and fields alone; where a structure is
read they are those that `fusec.load` was given, or look-alikes: a named tuple or a dataclass with
the same name and fields.
"""

from __future__ import annotations

import dataclasses
import functools
import keyword
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import optree

from fusec.errors import user_error
from fusec.trace.choice.choice import Choice
from fusec.trace.facts.trees import NAMESPACE

from .plain_values import NotPlainError, plain_form, plain_value, same_value

MOST_FIELDS, MOST_DEPTH, MOST_KEPT = 255, 64, 256
_SEQUENCES: dict[str, Any] = {"tuple": tuple, "list": list}
_DICTS: dict[str, Any] = {"dict": dict, "ordered": OrderedDict}


class Leaf(NamedTuple):
    """The place of a leaf in a structure."""

    number: int


class SavedStructureError(ValueError):
    """A structure that cannot be saved, read, or that arguments do not have."""


# ------------------------------------------------------------------------------------- writing


def structure_form(tree: Any, depth: int = 0) -> Any:
    """The JSON form of a structure whose leaves are `Leaf` s.

    Raises `SavedStructureError` for containers of other classes.
    """
    if depth > MOST_DEPTH:
        raise SavedStructureError("it is nested too deeply")
    below = depth + 1
    if type(tree) is Leaf:
        return {"leaf": tree.number}
    for word, kind in _SEQUENCES.items():
        if type(tree) is kind:
            return {word: [structure_form(part, below) for part in tree]}
    for word, kind in _DICTS.items():
        if type(tree) is kind:
            return {word: [[_key(key), structure_form(part, below)]
                           for key, part in tree.items()]}
    if type(tree) is deque:
        return {"deque": [structure_form(part, below) for part in tree], "maxlen": tree.maxlen}
    if type(tree) is Choice and tree.name == "":  # of two results the run takes one
        then = None if tree.then is None else structure_form(tree.then, below)
        return {"choice": [structure_form(tree.test, below), then,
                           structure_form(tree.orelse, below)]}
    word, fields = _class_of(tree)
    return {word: type(tree).__name__, "fields": list(fields),
            "parts": [structure_form(getattr(tree, name), below) for name in fields]}


def _key(key: Any) -> Any:
    try:
        return plain_form(key)
    except NotPlainError as error:
        raise SavedStructureError(f"of the key {key!r:.60}: {error}") from None


def _class_of(tree: Any) -> tuple[str, tuple[str, ...]]:
    """How an object of a class of the user's is written, and its fields."""
    kind: Any = type(tree)
    name = kind.__name__
    if isinstance(tree, tuple) and hasattr(kind, "_fields"):
        return "named", tuple(kind._fields)
    if dataclasses.is_dataclass(tree):
        fields = tuple(f.name for f in dataclasses.fields(tree) if f.init)
        parts = _parts_of(tree)
        if parts is not None and len(parts) == len(fields) and all(
                part is getattr(tree, f) for part, f in zip(parts, fields, strict=True)):
            return "dataclass", fields
        raise SavedStructureError(f"not every field of the dataclass {name} is a part of the "
                                  "pytree")
    raise SavedStructureError(f"it holds a {name}, of which a file can say neither class nor parts")


def _parts_of(tree: Any) -> tuple[Any, ...] | None:
    """The parts of an object that optree knows; None of a leaf."""
    try:
        return tuple(optree.tree_flatten_one_level(
            tree, none_is_leaf=True, namespace=NAMESPACE)[0])
    except ValueError:
        return None


# ------------------------------------------------------------------------------------- reading


class StructureReader:
    """Makes structures of their forms; ``types`` are the user's classes by name."""

    def __init__(self, types: Mapping[str, type]) -> None:
        self.types = dict(types)
        for name, given in self.types.items():  # other functions may know it as an object
            if dataclasses.is_dataclass(given) and optree.register_pytree_node.get(
                    given, namespace=NAMESPACE) is None:
                raise user_error(
                    TypeError, f"types[{name!r}] is a dataclass that optree does not know", None,
                    "optree.register_pytree_node(...), as where it was saved")

    def tree(self, form: Any, leaf: Callable[[int], Any], depth: int = 0) -> Any:
        """The structure, with ``leaf`` of each leaf's number; raises `SavedStructureError`."""
        word, content = self._head(form, depth)
        parts = [self.tree(part, leaf, depth + 1) for part in parts_of_form(form)]
        if word == "leaf":
            return leaf(content)
        if word in _SEQUENCES:
            return _SEQUENCES[word](parts)
        if word in _DICTS:
            return _DICTS[word](zip(keys_of(content), parts, strict=True))
        if word == "deque":
            return deque(parts, form["maxlen"])
        if word == "choice":
            return Choice(parts[0], None if content[1] is None else parts[1], parts[-1])
        return self.class_of(form)(*parts)

    def _head(self, form: Any, depth: int) -> tuple[str, Any]:
        """The word of a form and what stands there, once both are well-formed."""
        if depth > MOST_DEPTH or type(form) is not dict or not form:
            raise SavedStructureError(f"{str(form)[:60]} is no structure")
        word = next(iter(form))
        content, is_good = form[word], _GOOD.get(word)
        if is_good is None or not is_good(form):
            raise SavedStructureError(f"{str(form)[:60]} is no structure")
        return word, content

    def class_of(self, form: Any) -> type:
        """The class of a named tuple or a dataclass: the user's, or a look-alike."""
        word = next(iter(form))
        name, fields = form[word], tuple(form["fields"])
        given = self.types.get(name)
        if given is None:
            return _look_alike(word, name, fields)
        if _fields_of(given) != fields:
            raise SavedStructureError(
                f"types[{name!r}] has the fields {_fields_of(given)}, and {fields} were saved")
        return given

    def leaves(self, form: Any, value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
        """The leaves of a value in the places of the form's, in order, with their paths.

        Raises `SavedStructureError` where the value is of another structure.
        """
        word, _ = self._head(form, path.count("["))
        if word == "leaf":
            yield path, value
            return
        for step, part, inner in zip(*self._matched(form, value, path), strict=True):
            yield from self.leaves(inner, part, f"{path}[{step!r}]")

    def _matched(self, form: Any, value: Any, path: str) -> tuple[Any, Any, list[Any]]:
        """Steps, parts and their forms of a value that has the form at this level."""
        word = next(iter(form))
        inner = parts_of_form(form)
        if word in _DICTS:
            keys = keys_of(form[word])
            fits = type(value) is _DICTS[word] and len(value) == len(keys) and all(
                any(same_value(key, other) for other in value) for key in keys)
            parts: Any = [value[key] for key in keys] if fits else None
            return (keys, parts, inner) if fits else self._misfit(form, value, path)
        if word == "choice":
            return self._misfit(form, value, path)
        kind: Any = deque if word == "deque" else _SEQUENCES.get(word)
        if kind is not None:
            fits = type(value) is kind and len(value) == len(inner)
            return (range(len(inner)), value, inner) if fits else self._misfit(form, value, path)
        fields = form["fields"]
        if type(value).__name__ != form[word] or _fields_of(type(value)) != tuple(fields) or (
                _parts_of(value) is None):
            return self._misfit(form, value, path)
        return fields, [getattr(value, name) for name in fields], inner

    def _misfit(self, form: Any, value: Any, path: str) -> Any:
        raise SavedStructureError(f"{path or 'the arguments'}: expected {described(form)}, got a "
                             f"{type(value).__name__}")


def parts_of_form(form: Any) -> list[Any]:
    """The forms inside of a form that is well-formed."""
    word = next(iter(form))
    if word in _DICTS:
        return [part for _, part in form[word]]
    if word in ("named", "dataclass"):
        return list(form["parts"])
    return [] if word == "leaf" else [part for part in form[word] if part is not None]


def keys_of(items: list[Any]) -> list[Any]:
    """The keys of a dict's items."""
    try:
        return [plain_value(key) for key, _ in items]
    except ValueError as error:
        raise SavedStructureError(f"a key: {error}") from None


def described(form: Any) -> str:
    """A form in words."""
    word = next(iter(form))
    if word in ("named", "dataclass"):
        return f"{form[word]}({', '.join(form['fields'])})"
    return f"a {'dict' if word == 'ordered' else word} of {len(parts_of_form(form))}"


def _is_named(form: Any) -> bool:
    if set(form) != {next(iter(form)), "fields", "parts"} or type(form["fields"]) is not list or (
            type(form["parts"]) is not list):
        return False
    names = [form[next(iter(form))], *form["fields"]]
    return len(form["parts"]) == len(names) - 1 <= MOST_FIELDS and len(set(names[1:])) == len(
        names) - 1 and all(map(_is_name, names)) and not any(
        name.startswith("_") for name in names[1:] if next(iter(form)) == "named")


def _is_name(name: Any) -> bool:
    return type(name) is str and len(name) <= 100 and name.isidentifier() and (
        not keyword.iskeyword(name) and not name.startswith("__"))


def _is_sequence(form: Any) -> bool:
    return len(form) == 1 and type(next(iter(form.values()))) is list


def _is_choice(form: Any) -> bool:
    return _is_sequence(form) and len(form["choice"]) == 3 and form["choice"][0] is not None and (
        form["choice"][2] is not None)


def _is_dict(form: Any) -> bool:
    return _is_sequence(form) and all(
        type(item) is list and len(item) == 2 for item in next(iter(form.values())))


def _is_deque(form: Any) -> bool:
    most = form.get("maxlen")
    return set(form) == {"deque", "maxlen"} and type(form["deque"]) is list and (
        most is None or (type(most) is int and len(form["deque"]) <= most < 1 << 40))


_GOOD: dict[str, Callable[[Any], bool]] = {
    "leaf": lambda form: len(form) == 1 and type(form["leaf"]) is int and form["leaf"] >= 0,
    "tuple": _is_sequence, "list": _is_sequence, "dict": _is_dict, "ordered": _is_dict,
    "deque": _is_deque, "choice": _is_choice, "named": _is_named, "dataclass": _is_named,
}


# ------------------------------------------------------------------------------------- classes


def _fields_of(kind: Any) -> tuple[str, ...] | None:
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return tuple(kind._fields)
    return tuple(f.name for f in dataclasses.fields(kind) if f.init) if (
        dataclasses.is_dataclass(kind)) else None


@functools.lru_cache(MOST_KEPT)
def _look_alike(word: str, name: str, fields: tuple[str, ...]) -> type:
    """A class of that name with these fields, one for all files that say so."""
    if word == "named":
        return namedtuple(name, fields)
    made: Any = dataclasses.make_dataclass(name, fields)
    _as_pytree(made)
    return made


def _as_pytree(kind: Any) -> None:
    """Have optree know a dataclass, whose objects then are structures and no leaves."""
    if not dataclasses.is_dataclass(kind) or not isinstance(kind, type):
        return
    fields = tuple(f.name for f in dataclasses.fields(kind) if f.init)

    def parts(x: Any) -> tuple[Any, Any, tuple[str, ...]]:
        return tuple(getattr(x, name) for name in fields), None, fields

    def made(_: Any, parts: Any) -> Any:
        return kind(*parts)

    try:
        optree.register_pytree_node(kind, parts, made, namespace=NAMESPACE)  # type: ignore[arg-type]
    except ValueError:  # it is one already, in the user's own way
        return
