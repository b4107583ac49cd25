"""Taking arguments apart when optree no longer can.

optree forgets every kind of container when the interpreter ends (in an `atexit` handler that its
import registers), so exit handlers that a program registered before it imported fusec run after
that.  Structures that were made earlier still work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fusec.errors import user_error


def flattened_as_before(tree: Any, known: Iterable[Any]) -> tuple[list[Any], Any]:
    """The leaves of a call's arguments, and their structure: the one of the ``known`` that fits.

    Raises ``RuntimeError`` where none does.
    """
    identities = [id(leaf) for leaf in _leaves(tree)]
    for structure in known:
        try:
            leaves = structure.flatten_up_to(tree)
        except ValueError:  # it has another one
            continue
        if [id(leaf) for leaf in leaves] == identities:  # also in the order of keys
            return leaves, structure
    raise user_error(
        RuntimeError, "a call at the end of the interpreter whose arguments have another structure "
        "than those of calls before, or containers other than lists, tuples and dicts: optree, "
        "which takes them apart, has ended",
        cure="register the handler (atexit.register) after importing fusec, or call so earlier")


def _leaves(tree: Any) -> Iterator[Any]:
    if type(tree) in (list, tuple, dict):
        for part in tree.values() if type(tree) is dict else tree:
            yield from _leaves(part)
    else:
        yield tree
