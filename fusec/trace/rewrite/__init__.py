"""Source rewriting: calls, items, operators and control flow of a function become hook calls."""

from __future__ import annotations

from fusec.core.code_roles import ON_BEHALF

FUSEC_ROLE = ON_BEHALF
