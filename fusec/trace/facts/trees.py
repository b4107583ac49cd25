"""Arguments and results as trees of leaves (pytrees), the keys of dicts in the order they lie in.

optree sorts keys unless a namespace says otherwise; to Python, and so to the program, their order
is part of a dict.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, deque
from typing import Any

import optree

NAMESPACE = "fusec"
_ORDERED = optree.dict_insertion_ordered(True, namespace=NAMESPACE)  # ends when it is collected
_ORDERED.__enter__()


def flattened(tree: Any) -> tuple[list[Any], Any]:
    """The leaves, None among them, and the structure."""
    leaves, treespec = optree.tree_flatten(tree, none_is_leaf=True, namespace=NAMESPACE)
    return leaves, treespec


@functools.lru_cache(256)
def holds_ordered(treespec: Any) -> bool:
    """Whether there is an `OrderedDict` in the tree."""
    return "OrderedDict(" in str(treespec)


@functools.lru_cache(256)
def _has_only_names(treespec: Any) -> bool:
    """Whether every key in the tree is a string: of others, 1, True and 1.0 are equal, and so are
    trees that have them."""
    return not isinstance(treespec, optree.PyTreeSpec) or all(
        isinstance(step, str) for entry in optree.treespec_accessors(treespec) for step in (
            e.entry for e in entry if issubclass(e.type, dict)))


def key_types(treespec: Any) -> tuple[Any, ...]:
    """What tells trees apart that are equal but for the types of their keys; of names nothing."""
    if _has_only_names(treespec):
        return ()
    return tuple(_typed(step) for path in treespec.paths() for step in path)


def _typed(key: Any) -> Any:
    return tuple(map(_typed, key)) if type(key) is tuple else type(key)


def in_order(tree: Any) -> Any:
    """The tree with the keys of each `OrderedDict` where its order has them: ``move_to_end``
    leaves them where they lie, which is what optree goes by."""
    return optree.tree_map(
        _in_order, tree, is_leaf=_is_ordered, none_is_leaf=True, namespace=NAMESPACE)


def flattened_in_order(tree: Any) -> tuple[list[Any], Any]:
    """`flattened`, the keys of each `OrderedDict` in its order."""
    leaves, treespec = flattened(tree)
    if holds_ordered(treespec) and is_moved(tree):
        return flattened(in_order(tree))
    return leaves, treespec


def is_moved(tree: Any) -> bool:
    """Whether `in_order` would make another tree of it, found quickly."""
    todo = [tree]
    while todo:
        found = todo.pop()
        if isinstance(found, dict):
            if type(found) is OrderedDict and list(found) != list(dict.__iter__(found)):
                return True
            todo += dict.values(found)
        elif isinstance(found, (tuple, list, deque)):
            todo += found
    return False


def _is_ordered(x: Any) -> bool:
    return type(x) is OrderedDict


def _in_order(x: Any) -> Any:
    return OrderedDict((key, in_order(x[key])) for key in x) if _is_ordered(x) else x


__all__ = ["NAMESPACE", "flattened", "flattened_in_order", "holds_ordered", "in_order", "is_moved",
           "key_types"]
