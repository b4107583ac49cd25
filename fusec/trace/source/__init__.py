"""Sources of functions, from wherever Python keeps them, checked against their bytecode."""

from __future__ import annotations

from fusec.core.code_roles import ON_BEHALF

FUSEC_ROLE = ON_BEHALF
