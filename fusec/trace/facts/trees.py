"""Arguments and results as trees of leaves (pytrees), with the keys of dicts in insertion order.

optree sorts keys unless a namespace says otherwise; but a program can see the order of a dict.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any

import optree

from fusec.errors import unsupported

NAMESPACE = "fusec"
_ORDERED = optree.dict_insertion_ordered(True, namespace=NAMESPACE)  # until it is collected
_ORDERED.__enter__()


def flattened(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], Any]:
    """The leaves, None among them, and the structure."""
    try:
        leaves, treespec = optree.tree_flatten(
            tree, is_leaf, none_is_leaf=True, namespace=NAMESPACE)
    except RecursionError:
        raise too_deep() from None
    return leaves, treespec


def too_deep() -> Exception:
    return unsupported("a container that lies in hundreds of others",
                       cure="hold its parts in one list or dict")


def leaves_in(
    x: Any, kinds: tuple[type, ...] = (list, tuple), with_derived: bool = False
) -> Iterator[Any]:
    """The leaves of lists and tuples, or containers of these types, at any depth, in order; those
    of a container that lies there twice come once.  Another value is the only leaf."""
    todo, visited = [x], set[int]()
    while todo:
        item = todo.pop()
        if type(item) not in kinds and not (with_derived and isinstance(item, kinds)):
            yield item
        elif type(item) is tuple or id(item) not in visited:
            visited.add(id(item))
            todo += reversed(item.values() if type(item) is dict else item)


def mapped(
    f: Callable[[Any], Any], tree: Any, is_leaf: Callable[[Any], bool] = lambda x: False
) -> Any:
    """The tree with ``f`` of its leaves; a place of a container from elsewhere stays one."""
    def of(x: Any) -> Any:
        if type(x) is First:
            x.content = mapped(f, x.content, is_leaf)
        return x if type(x) in (First, Again) else f(x)

    return optree.tree_map(
        of, tree, is_leaf=lambda x: type(x) in (First, Again) or is_leaf(x), none_is_leaf=True,
        namespace=NAMESPACE)


@functools.lru_cache(256)
def holds_ordered(treespec: Any) -> bool:
    """Whether there is an `OrderedDict` in the tree."""
    return "OrderedDict(" in str(treespec)


@functools.lru_cache(256)
def _has_only_names(treespec: Any) -> bool:
    """Whether every key in the tree is a string.  Others may be equal and differ: 1, True, 1.0."""
    return not isinstance(treespec, optree.PyTreeSpec) or all(
        isinstance(step, str) for entry in optree.treespec_accessors(treespec) for step in (
            e.entry for e in entry if issubclass(e.type, dict)))


def key_types(treespec: Any) -> tuple[Any, ...]:
    """The types of the keys, which tell 1 from True and 1.0; () where all keys are strings."""
    if _has_only_names(treespec):
        return ()
    return tuple(_typed(step) for path in treespec.paths() for step in path)


def _typed(key: Any) -> Any:
    return tuple(map(_typed, key)) if type(key) is tuple else type(key)


def in_order(tree: Any) -> Any:
    """The tree with every `OrderedDict` built anew in its own order: optree reads that of the
    underlying dict, which ``move_to_end`` does not change."""
    return mapped(_in_order, tree, _is_ordered)


def flattened_in_order(tree: Any) -> tuple[list[Any], Any]:
    """`flattened`, the keys of each `OrderedDict` in its order."""
    return flattened(in_order(tree) if is_moved(tree) else tree)


def is_moved(tree: Any) -> bool:
    """Whether some `OrderedDict` in the tree needs `in_order`; quick, for every call."""
    todo = [tree]
    while todo:
        node = todo.pop()
        kind = type(node)  # a traced value says that it is of another class, slowly
        if issubclass(kind, dict):
            if kind is OrderedDict and list(node) != list(dict.__iter__(node)):
                return True
            todo += dict.values(node)
        elif issubclass(kind, (tuple, list, deque)):
            todo += node
    return False


def _is_ordered(x: Any) -> bool:
    return type(x) is OrderedDict


def _in_order(x: Any) -> Any:
    return OrderedDict((key, in_order(x[key])) for key in x) if _is_ordered(x) else x


class First(threading.local):
    """The container in the first of its places, and its counterpart of the latest call.

    In other places stands an `Again`; trees are put together in the order they were taken apart.
    """

    made: Any = None

    def __init__(self, content: Any = None) -> None:
        self.content = content


class Again:
    """Another place of a container: its counterpart is found when a tree is put together."""

    __slots__ = ("find",)

    def __init__(self, find: Callable[[], Any]) -> None:
        self.find = find


def _content(x: Any) -> Any:
    return (x.content,), x


def _made(first: Any, parts: Any) -> Any:
    first.made = parts[0]
    return parts[0]


def _nothing(x: Any) -> Any:
    return (), x.find


def _found(find: Any, _: Any) -> Any:
    return find()


_FIRST: Any = First
_AGAIN: Any = Again
optree.register_pytree_node(_FIRST, _content, _made, namespace=NAMESPACE)
optree.register_pytree_node(_AGAIN, _nothing, _found, namespace=NAMESPACE)
