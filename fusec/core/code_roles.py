"""Whose code a function is: fusec's own, or a program's.

A module of fusec's that is not simply fusec's own says so, or its package does, in a global named
`ROLE`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Literal

Role = Literal["user's", "converted", "on behalf"]

ROLE = "FUSEC_ROLE"
# Written as users write theirs, such as the programs of the bench: in every way a user's code.
AS_USERS: Role = "user's"
# Python's own functions in Python: converted as a program is, but no lines that a user should see.
CONVERTED: Role = "converted"
# Does what the program said, in Python's terms, or calls a library for it: what Python raises here
# is the program's error, no defect of fusec.
ON_BEHALF: Role = "on behalf"


# Files of such modules, of which a function has been converted: errors name who called it.
converted_files: set[str] = set()


def note_converted(module_globals: Mapping[str, Any], file: str) -> None:
    """A function of a module of these globals has been converted; its code is in that file."""
    if _is_in_fusec(module_globals) and _role(module_globals) == CONVERTED:
        converted_files.add(file)


def is_ours(module_globals: Mapping[str, Any]) -> bool:
    """Whether a module of these globals is fusec's, and no program."""
    return _is_in_fusec(module_globals) and _role(module_globals) != AS_USERS


def is_written_as_users(module_globals: Mapping[str, Any]) -> bool:
    """Whether it is a module of fusec's whose functions are converted."""
    return _is_in_fusec(module_globals) and _role(module_globals) in (AS_USERS, CONVERTED)


def is_on_behalf(module_globals: Mapping[str, Any]) -> bool:
    """Whether an exception of Python's that is raised there is the program's."""
    return not _is_in_fusec(module_globals) or _role(module_globals) is not None


def _role(module_globals: Mapping[str, Any]) -> Role | None:
    # From dictionaries: `fusec.__getattr__` takes a millisecond to find names like an absent one.
    package = sys.modules.get(str(module_globals.get("__package__")))
    inherited = {} if package is None else vars(package)
    return module_globals.get(ROLE) or inherited.get(ROLE)


def _is_in_fusec(module_globals: Mapping[str, Any]) -> bool:
    return str(module_globals.get("__name__") or "").partition(".")[0] == "fusec"
