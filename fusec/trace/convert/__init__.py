"""Source conversion: calls, items and operators of a traced function become hooks.

`convert` rewrites a function, `Hooks` is what the rewritten function calls, `CallTable` says which
callables a tracer handles itself.
"""

from __future__ import annotations

from fusec.code_roles import ON_BEHALF
from fusec.errors import hide_frames as strip_frames

from .cache import check_supported, convert
from .errors import SourceUnavailable, UnsupportedConstruct
from .hooks import Hooks
from .table import CallTable
from .transformer import Where
from .values import CALLS

FUSEC_ROLE = ON_BEHALF

__all__ = [
    "CALLS", "CallTable", "Hooks", "SourceUnavailable", "UnsupportedConstruct", "Where",
    "check_supported", "convert", "strip_frames",
]
