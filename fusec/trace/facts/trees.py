"""Arguments and results as trees of leaves (pytrees), with the keys of dicts in insertion order.

optree sorts keys unless a namespace says otherwise; but a program can see the order of a dict.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Any

import optree

from fusec.errors import unsupported

NAMESPACE = "fusec"
_ORDERED = optree.dict_insertion_ordered(True, namespace=NAMESPACE)  # until it is collected
_ORDERED.__enter__()


def flattened(tree: Any) -> tuple[list[Any], Any]:
    """The leaves, None among them, and the structure."""
    try:
        leaves, treespec = optree.tree_flatten(tree, none_is_leaf=True, namespace=NAMESPACE)
    except RecursionError:
        raise unsupported(
            f"a container nested more than {optree.MAX_RECURSION_DEPTH} deep",
            cure="hold its parts in one list or dict") from None
    return leaves, treespec


def leaves_in(
    x: Any, kinds: tuple[type, ...] = (list, tuple), with_derived: bool = False
) -> Iterator[Any]:
    """What lies in lists and tuples, or containers of these types, at any depth: in its order, what
    one holds that lies there twice once.  Another value is the only leaf."""
    todo, visited = [x], set[int]()
    while todo:
        item = todo.pop()
        if type(item) not in kinds and not (with_derived and isinstance(item, kinds)):
            yield item
        elif type(item) is tuple or id(item) not in visited:
            visited.add(id(item))
            todo += reversed(item.values() if type(item) is dict else item)


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
    return optree.tree_map(
        _in_order, tree, is_leaf=_is_ordered, none_is_leaf=True, namespace=NAMESPACE)


def flattened_in_order(tree: Any) -> tuple[list[Any], Any]:
    """`flattened`, the keys of each `OrderedDict` in its order."""
    leaves, treespec = flattened(tree)
    if holds_ordered(treespec) and is_moved(tree):
        return flattened(in_order(tree))
    return leaves, treespec


def is_moved(tree: Any) -> bool:
    """Whether some `OrderedDict` in the tree needs `in_order`; quick, for every call."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if type(node) is OrderedDict and list(node) != list(dict.__iter__(node)):
                return True
            todo += dict.values(node)
        elif isinstance(node, (tuple, list, deque)):
            todo += node
    return False


def _is_ordered(x: Any) -> bool:
    return type(x) is OrderedDict


def _in_order(x: Any) -> Any:
    return OrderedDict((key, in_order(x[key])) for key in x) if _is_ordered(x) else x
