"""Why a loop cannot be compiled as a whole."""

from __future__ import annotations

from fusec.ir import Loc


class NotNativeError(Exception):
    """Something in a loop that only runs step by step; the message names it."""

    def __init__(self, reason: str, loc: Loc | None = None) -> None:
        super().__init__(reason)
        self.loc = loc
