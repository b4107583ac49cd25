"""Parts of programs that cannot leave the process."""

from __future__ import annotations

from collections.abc import Sequence

from fusec.core.records import dataclass
from fusec.ir import Loc


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
