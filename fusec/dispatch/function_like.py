"""`FunctionLike`: a jitted function with ``like=``."""

from __future__ import annotations

from threading import get_ident
from typing import Any

from fusec.core.tracers import TRACERS
from fusec.errors import nearest, short_errors, user_error

from .function import Function


class FunctionLike(Function):
    """A `Function` whose results are of the kind of one argument's arrays."""

    def __init__(self, fn: Any, *, like: str, **options: Any) -> None:
        """``like``: the name of a parameter.  Raises ``ValueError`` where there is none."""
        super().__init__(fn, **options)
        if like not in self._signature.names:
            raise user_error(
                ValueError, f"like={like!r}: {self.__name__} has no such parameter",
                cure="name the parameter whose kind of array the results have",
                candidates=nearest(like, self._signature.names) if isinstance(like, str) else ())
        self.like = like

    @property
    def options(self) -> dict[str, Any]:
        return {**super().options, "like": self.like}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if TRACERS and get_ident() in TRACERS:  # its caller's results are what is converted
            return super().__call__(*args, **kwargs)
        with short_errors:
            convert = self._dispatching().conversion(self.like, args, kwargs)
        result = super().__call__(*args, **kwargs)
        return result if convert is None else convert(result)
