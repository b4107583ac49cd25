"""What the hooks of one trace are asked by those who look at the user's objects."""

from __future__ import annotations

from types import FunctionType
from typing import Any, Protocol

from fusec.ir import Loc

from ..convert.call_table import CallTable
from ..rewrite.transformer import Where
from ..values.trace import Trace


class TracingHooks(Protocol):
    """Hooks, as far as objects of the user's need them."""

    trace: Trace
    table: CallTable
    where: Where
    functions: dict[FunctionType, None]  # of the program, called so far

    @property
    def loc(self) -> Loc: ...

    def call(self, where: Where, fn: Any, /, *args: Any, **kwargs: Any) -> Any: ...

    def getattr(self, where: Where, obj: Any, name: str) -> Any: ...

    def getitem(self, where: Where, obj: Any, key: Any) -> Any: ...

    def lifted_item(self, x: Any) -> Any: ...

    def note_made(self, made: Any) -> None: ...

    def note_of_class(self, kind: type, name: str) -> None: ...
