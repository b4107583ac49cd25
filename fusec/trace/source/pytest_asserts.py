"""Assertions that pytest's import hook rewrote: a source is rewritten likewise, to be compared."""

from __future__ import annotations

import ast
import copy
import sys
from types import CodeType

_MODULE = "_pytest.assertion.rewrite"


def is_rewritten(code: CodeType) -> bool:
    """Whether code, or code inside it, reports failed assertions to pytest."""
    return "@pytest_ar" in code.co_names or any(
        is_rewritten(c) for c in code.co_consts if isinstance(c, CodeType))


def rewritten(module: ast.Module) -> ast.Module:
    """A copy as pytest's import hook leaves it."""
    copied = copy.deepcopy(module)
    sys.modules[_MODULE].rewrite_asserts(copied, b"")
    return copied
