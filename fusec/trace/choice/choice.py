"""One of two things, as data decides: ``best = None`` before a search, ``x if test else y``.

A `Choice` is a tree of its test and its sides, so that branches choose between its parts and loops
carry them like any number or array.  A side may be absent: None, a variable without a value, or
that nothing is appended; where it is, the parts of the other one are zeros.  The side that the run
took leaves the trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
import optree

from fusec.errors import ConcreteValueError

from ..facts.trees import NAMESPACE
from ..guards.places import Absent
from ..values.array import TracedArray


class Choice:
    """``then`` where the test, a boolean known or traced, holds; else ``orelse``."""

    __slots__ = ("orelse", "test", "then")

    def __init__(self, test: Any, then: Any, orelse: Any) -> None:
        self.test, self.then, self.orelse = test, then, orelse

    def _refuse(self, *_: Any) -> NoReturn:
        """Python itself asks, in a container say: `hooks.absence` answers where it can."""
        raise ConcreteValueError(
            "a value that data makes None or not is needed while the function is traced",
            cure="test it before: if x is None: ...")

    __eq__ = __ne__ = __lt__ = __gt__ = __le__ = __ge__ = _refuse
    __hash__ = __bool__ = __len__ = __iter__ = _refuse

    @property
    def name(self) -> str:
        """Of the variable that is not bound where the test holds; else nothing."""
        return self.then.name if type(self.then) is Absent else ""


def _parts(x: Any) -> Any:
    if x.then is None or type(x.then) is Absent:
        return (x.test, x.orelse), x.then, ("test", "orelse")
    return (x.test, x.then, x.orelse), Choice, ("test", "then", "orelse")


def _taken(absent: Any, parts: Any) -> Any:
    """The side that is taken, where it is known which and not for the program to notice."""
    test, then, orelse = parts if absent is Choice else (parts[0], absent, parts[1])
    # Of two values the test may be any number that the run gives.
    is_known = isinstance(test, (bool, np.bool_)) or (
        absent is Choice and hasattr(type(test), "__bool__"))
    if not is_known or type(test) is TracedArray or type(then) is Absent:
        return Choice(test, then, orelse)
    return then if test else orelse


_TREE: Any = Choice
optree.register_pytree_node(_TREE, _parts, _taken, namespace=NAMESPACE)


def sides(trees: Sequence[Any]) -> Iterator[tuple[int, range, range]]:
    """Of each choice in trees whose leaves stand one after another: the leaf that is its test, the
    leaves of its side where the test holds, and those of the other."""
    at = 0
    for tree in trees:
        parts = tree.children()
        if tree.type is Choice:
            first = at + parts[0].num_leaves
            then = range(first, first + (parts[1].num_leaves if len(parts) == 3 else 0))
            yield at, then, range(then.stop, at + tree.num_leaves)
        for test, then, orelse in sides(parts):
            yield (at + test, range(at + then.start, at + then.stop),
                   range(at + orelse.start, at + orelse.stop))
        at += tree.num_leaves


def unbound(name: str) -> Exception:
    """Python's error for a variable without a value."""
    return UnboundLocalError(
        f"cannot access local variable {name!r} where it is not associated with a value")
