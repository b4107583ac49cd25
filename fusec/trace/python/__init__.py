"""Python's builtins, its `math` and its iterators on traced values."""

from fusec.core.code_roles import ON_BEHALF

FUSEC_ROLE = ON_BEHALF
