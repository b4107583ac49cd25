"""When a function may create Variables: in its first call, and they must be kept.

Rules: "Functions, not Sessions", section "Functions that create state".  A function that created
one in a later call would have another one for each of its traces, which no program means.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fusec.errors import FusecError, user_error
from fusec.ir import Loc

if TYPE_CHECKING:
    from fusec.state.variable import Variable
    from fusec.trace.objects.variables import Created

_CURE = ("create it once and keep it: if self.v is None: self.v = fusec.Variable(...), or let "
         "fusec.wrap_function keep it")


class Creations:
    """The Variables that one function, or one instance's method, has created."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_first = True
        self._made: list[tuple[weakref.ref[Variable], str, Loc | None]] = []

    def check(self, created: Sequence[Created]) -> None:
        """Raise ``ValueError`` where a trace after the first call created a Variable."""
        if created and not self._is_first:
            first = created[0]
            raise self._error(
                f"{self._name} creates {first.variable.title} after its first call", first.loc,
                "a function creates Variables in its first call only: each later trace would make "
                "its own")

    def check_called(self, created: Sequence[Created]) -> None:
        """Raise where Variables were created for a call that is not made."""
        if created:
            raise self._error(
                f"{self._name} creates {created[0].variable.title} when it is first called",
                created[0].loc, "no call was made here, so nothing gave it its value")

    def note_first_call(self, created: list[Created]) -> None:
        """The function was called; Variables of its trace are the program's now."""
        self._is_first = False
        self._made = [(weakref.ref(c.variable), c.variable.title, c.loc) for c in created]
        created.clear()

    def check_kept(self) -> None:
        """Raise where nothing keeps a Variable that the last call created."""
        entries, self._made = self._made, []
        gc.collect(1)  # converted functions are in circles with what they hold; they are young
        for reference, title, loc in entries:
            if reference() is None:
                raise self._error(f"nothing keeps {title}, which {self._name} creates", loc,
                                  "for memory of one call use an array: np.zeros(3)")

    @property
    def are_new(self) -> bool:
        """Whether the last call created some."""
        return bool(self._made)

    def clear(self) -> None:
        self._is_first = True

    def _error(self, title: str, loc: Any, note: str) -> FusecError:
        return user_error(ValueError, title, loc, _CURE, notes=[note])


__all__ = ["Creations"]
