"""Long lists, tuples and dicts of numbers among the arguments: one array each.

A leaf for each number would be an input of the graph with code of its own, a millisecond each.  So
containers of more than `MOST_APART` numbers of one type, in rows of one length if in rows, are
taken apart into one array, or one for each column where the rows are tuples of several types.  The
program finds lists as it was given them: their items are parts of the array (`values.rows`).

Up to `MOST_INTS` ints are leaves: Python may have to know them (axes, shapes, keys), and results
computed of them are checked to fit into 64 bits, number by number.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, repeat
from typing import Any

import numpy as np
import optree

from fusec.core.records import dataclass

from ..facts.refusals import is_compiled
from ..facts.trees import NAMESPACE
from ..values.array import TracedArray
from ..values.rows import Parts
from .signature import Signature

MOST_APART = 64  # numbers that are leaves
MOST_COLUMNS = 16
MOST_LEVELS = 8  # of rows in rows
DEEPEST = 32  # containers around a list that is packed
MOST_INTS = 5_000  # that are leaves
_DTYPES: dict[type, np.dtype] = {
    float: np.dtype(float), complex: np.dtype(complex), int: np.dtype(np.int64)}
_ROWS = (list, tuple)
_CONTAINERS = (*_ROWS, dict)


@dataclass(frozen=True)
class Form:
    """The form of packed containers: the ``containers`` from outside in, the ``number`` that items
    are, of a dict the ``keys`` with their types."""

    containers: tuple[type, ...]
    numbers: tuple[type, ...]
    keys: tuple[Any, ...] = ()
    key_types: tuple[type, ...] = ()

    @property
    def has_columns(self) -> bool:
        """Whether each item of a row has an array."""
        return len(self.numbers) > 1


class Packed:
    """Such a list in a tree of arguments."""

    __slots__ = ("arrays", "form")

    def __init__(self, form: Form, arrays: list[Any]) -> None:
        self.form, self.arrays = form, arrays

    def unpacked(self) -> Any:
        """It, of an array in a trace, of a specification, or of numbers."""
        form = self.form
        rows = list(map(_listed, repeat(form), form.numbers, self.arrays))
        if form.has_columns:
            return form.containers[0](map(form.containers[1], zip(*rows, strict=True)))
        if form.containers[0] is dict:
            return dict(zip(form.keys, rows[0], strict=True))
        return rows[0]


def _listed(form: Form, number: type, array: Any) -> Any:
    """The items of an array, in lists and tuples as they were."""
    containers = form.containers[:1] if form.has_columns else form.containers
    kind = "weak" if number in _DTYPES else "scalar"

    def items(prefix: tuple[int, ...]) -> Any:
        depth, container = len(prefix), containers[len(prefix)]
        length = int(array.shape[depth])
        if depth + 1 < len(containers):
            found: Iterable[Any] = (items((*prefix, k)) for k in range(length))
        elif type(array) is TracedArray:
            found = Parts(array.trace, array.value, prefix, kind).items(length)
        elif type(array) is np.ndarray:
            found = array[prefix].tolist() if number in _DTYPES else list(array[prefix])
        else:  # a specification
            found = [type(array)((), array.dtype)] * length
        return tuple(found) if container is tuple else list(found)

    return items(())


class _All:
    """How paths name the array of a list: ``xs[:]``."""

    def __repr__(self) -> str:
        return ":"


def _taken_apart(x: Any) -> Any:
    return x.arrays, x.form, _ENTRIES[:len(x.arrays)]


def _put_together(form: Form, arrays: Any) -> Any:
    packed = Packed(form, list(arrays))
    return packed if all(type(x) is np.ndarray for x in arrays) else packed.unpacked()


class _Column(_All):
    """And that of a column: ``xs[:, 1]``."""

    def __init__(self, k: int) -> None:
        self.k = k

    def __repr__(self) -> str:
        return f":, {self.k}"


_ENTRIES = (_All(), *map(_Column, range(1, MOST_COLUMNS)))
_PACKED: Any = Packed
_PUT_TOGETHER: Any = _put_together
optree.register_pytree_node(_PACKED, _taken_apart, _PUT_TOGETHER, namespace=NAMESPACE)


class Packing:
    """The arguments of one function, and whether any is packed."""

    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        self.is_used = False

    def applied(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """Bound arguments with arrays for long containers; the same ones where nothing is."""
        return (tuple(self._of(x, self._signature.path_of(k)) for k, x in enumerate(args)),
                {name: self._of(x, name) for name, x in kwargs.items()})

    def _of(self, x: Any, path: str, around: tuple[int, ...] = ()) -> Any:
        """``around``: the ids of the containers around it, one of which it may be."""
        if type(x) not in _CONTAINERS or not x or len(around) == DEEPEST or id(x) in around or (
                self._signature.is_static(f"{path}[")):
            return x
        around = (*around, id(x))
        found = _packed(x)
        if found is not None:
            self.is_used = True
            return found
        if type(x) is dict:
            return {key: self._of(item, f"{path}[{key!r}]", around) for key, item in x.items()}
        return type(x)(
            self._of(item, f"{path}[{k}]", around) for k, item in enumerate(x))


def _packed(x: Any) -> Packed | None:
    if type(x) is dict:
        return _packed_dict(x)
    containers, shape, level, first = [type(x)], [len(x)], x, {id(x)}
    while True:
        types = set(map(type, level))
        kind = types.pop()
        if types:
            return None
        if kind not in _ROWS:
            break
        if id(level[0]) in first or len(containers) == MOST_LEVELS:  # a list may be in itself
            return None
        first.add(id(level[0]))
        lengths = set(map(len, level))
        length = lengths.pop()
        if lengths or not length:
            return None
        containers.append(kind)
        shape.append(length)
        rows, level = level, list(chain.from_iterable(level))
        if len(containers) == 2 and len(level) > MOST_APART and length <= MOST_COLUMNS and (
                len(set(map(type, level))) > 1):
            return _in_columns(Form(tuple(containers), ()), rows)
    if len(level) <= MOST_APART:
        return None
    array = _array(kind, level)
    return None if array is None else Packed(
        Form(tuple(containers), (kind,)), [array.reshape(shape)])


def _packed_dict(x: dict[Any, Any]) -> Packed | None:
    types = set(map(type, x.values())) if len(x) > MOST_APART else set()
    array = _array(types.pop(), x.values()) if len(types) == 1 else None
    return None if array is None else Packed(
        Form((dict,), (_kind_of(x),), tuple(x), tuple(map(type, x))), [array])


def _kind_of(x: dict[Any, Any]) -> type:
    return type(next(iter(x.values())))


def _in_columns(form: Form, rows: Iterable[Any]) -> Packed | None:
    kinds, arrays = [], []
    for column in zip(*rows, strict=True):
        types = set(map(type, column))
        kinds.append(types.pop())
        array = None if types else _array(kinds[-1], column)
        if array is None:
            return None
        arrays.append(array)
    return Packed(Form(form.containers, tuple(kinds)), arrays)


def _array(kind: type, numbers: Any) -> np.ndarray | None:
    """Numbers of one type as an array; None where there is none that holds them."""
    if issubclass(kind, (int, np.integer)) and len(numbers) <= MOST_INTS:
        return None
    dtype = _DTYPES.get(kind)
    if dtype is None:
        if not issubclass(kind, np.generic) or not is_compiled(np.dtype(kind)):
            return None
        dtype = np.dtype(kind)
    try:
        return np.fromiter(numbers, dtype, len(numbers))
    except OverflowError:  # ints of more than 64 bits
        return None
