"""Why a function cannot be converted: it has no source, or it uses an unsupported construct."""

from __future__ import annotations

from fusec.errors import Diagnostic, FusecError, UnsupportedError
from fusec.ir.graph import Loc


class SourceUnavailable(FusecError):
    """A function cannot be converted because its source is not there; the message says why.

    Callers may still trace such a function through NumPy's protocols alone.
    """


class UnsupportedConstruct(UnsupportedError):
    """A function uses a construct that cannot be traced (``yield``, ``await``, ``async``).

    ``construct`` is its name; the message shows the user's line.
    """

    def __init__(self, construct: str | Diagnostic, loc: Loc | None = None) -> None:
        if isinstance(construct, Diagnostic):
            super().__init__(construct)
        else:
            super().__init__(
                f"{construct} cannot be traced: a compiled function runs from start to end in one "
                f"call",
                loc=loc,
                cure="return an array or a list, or keep this part outside the compiled function",
            )
        self.construct = self.diagnostic.title.partition(" cannot be traced")[0]
