"""The labels that subscripts of `np.einsum` give to axes, and `np.dot` without saying so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fusec.core.records import dataclass

CONTRACTIONS = ("Einsum", "Dot")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of axes: of each operand, and of the result."""

    operands: list[str]
    result: str


def labels_of(
    given: Sequence[Any], kind: type[T], rank: Callable[[T], int]
) -> tuple[Labels, list[T]]:
    """The labels of a call's operands, which are of that kind, an ellipsis as labels of its own."""
    if isinstance(given[0], str):
        text, terms = given[0].replace(" ", ""), list[Any](given[1:])
        left, arrow, right = text.partition("->")
        operands = left.split(",")
        result = right if arrow else None
    else:
        terms = [x for x in given if isinstance(x, kind)]
        lists = [_text(x) for x in given if not isinstance(x, kind)]
        operands, rest = lists[:len(terms)], lists[len(terms):]
        result = rest[0] if rest else None
    return _spelt(operands, result, [rank(x) for x in terms]), terms


def labels_of_dot(rank: int, other: int) -> Labels:
    """`np.dot` of operands of these ranks: the last axis of the left one is summed with the last
    but one of the right, or its only one; what has no axes is multiplied by."""
    first, rest = LETTERS[:rank], LETTERS[rank:rank + other]
    if not rank or not other:
        return Labels([first, rest], first + rest)
    at = max(other - 2, 0)
    second = rest[:at] + first[-1] + rest[at + 1:]
    return Labels([first, second], first[:-1] + second[:at] + second[at + 1:])


def _text(axes: Sequence[Any]) -> str:
    return "".join("..." if x is Ellipsis else LETTERS[x] for x in axes)


def _spelt(operands: list[str], result: str | None, ranks: Sequence[int]) -> Labels:
    used = set("".join(operands)) | set(result or "")
    free = [x for x in LETTERS if x not in used]
    lengths = [rank - len(o.replace("...", "")) if "..." in o else 0
               for o, rank in zip(operands, ranks, strict=True)]
    every = "".join(free[:max(lengths, default=0)])
    spelt = [o.replace("...", every[len(every) - n:]) for o, n in zip(operands, lengths,
                                                                     strict=True)]
    if result is None:
        named = "".join(operands).replace(".", "")
        result = every + "".join(sorted(x for x in set(named) if named.count(x) == 1))
    return Labels(spelt, result.replace("...", every))
