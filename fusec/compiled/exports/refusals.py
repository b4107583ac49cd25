"""Parts of programs that cannot leave the process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from fusec.core.records import dataclass
from fusec.ir import Loc
from fusec.trace.control.raised_exceptions import is_programs

from ..sizes.refused_sizes import at_tried_size

Made = TypeVar("Made")


@dataclass(frozen=True)
class Refusal:
    """A part of a program that no library without Python can do."""

    text: str
    loc: Loc | None

    def __str__(self) -> str:
        where = f" at {self.loc}" if self.loc is not None else ""
        return f"{self.text}{where}"


class RaisesAlwaysError(Exception):
    """A program that raises whatever the data is; ``error`` is what it raises."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class RefusedError(Exception):
    """A function has parts that cannot leave the process."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__("; ".join(map(str, refusals)))
        self.refusals = list(dict.fromkeys(refusals))


def of_one_size(
    name: str, size: int, places: Sequence[str], loc: Loc | None, planned: Callable[[int], Made],
) -> Made:
    """The plan where all open sizes, which are at these places, are this one.

    Raises the program's own error, or says that it refuses such a size.
    """
    def plan(size: int) -> Made:
        try:
            return planned(size)
        except RaisesAlwaysError as raised:
            raise raised.error from None

    try:
        return planned(size)
    except RaisesAlwaysError as raised:
        error = raised.error
    except Exception as raised:
        if not is_programs(raised):
            raise
        error = raised
    raise at_tried_size(name, error, size, " and ".join(places), loc, plan) if places else error
