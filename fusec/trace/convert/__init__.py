"""Converted functions, and the hooks that they call, with Python's own meaning."""

from __future__ import annotations

from fusec.core.code_roles import ON_BEHALF

FUSEC_ROLE = ON_BEHALF
