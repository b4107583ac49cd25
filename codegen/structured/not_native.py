"""Why a branch or loop runs step by step."""

from __future__ import annotations

from fusec.ir import Loc


class NotNativeError(Exception):
    """A loop or branch cannot be compiled as one native function; the message says why."""

    def __init__(self, reason: str, loc: Loc | None = None) -> None:
        super().__init__(reason)
        self.loc = loc
