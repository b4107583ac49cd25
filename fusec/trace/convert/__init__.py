"""Source conversion: calls, items and operators of a traced function become hooks."""

from __future__ import annotations

from fusec.code_roles import ON_BEHALF

FUSEC_ROLE = ON_BEHALF
