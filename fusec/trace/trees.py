"""Arguments and results as trees of leaves (pytrees), the keys of dicts in the order they lie in.

optree sorts keys unless a namespace says otherwise; to Python, and so to the program, their order
is part of a dict.
"""

from __future__ import annotations

from typing import Any

import optree

NAMESPACE = "fusec"
_ORDERED = optree.dict_insertion_ordered(True, namespace=NAMESPACE)  # ends when it is collected
_ORDERED.__enter__()


def flattened(tree: Any) -> tuple[list[Any], Any]:
    """The leaves, None among them, and the structure."""
    leaves, treespec = optree.tree_flatten(tree, none_is_leaf=True, namespace=NAMESPACE)
    return leaves, treespec


__all__ = ["NAMESPACE", "flattened"]
