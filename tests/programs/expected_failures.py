"""Programs that do not run under ``fusec.jit`` yet: the reason and the programs it stops.

A test asserts that each still fails with the words of its reason, so that a fix is noticed: remove
the name here then.  The report shows them, marked.
"""

from __future__ import annotations

BY_REASON: dict[str, tuple[str, ...]] = {
}

EXPECTED_FAILURES: dict[str, str] = {
    name: reason for reason, names in BY_REASON.items() for name in names
}
