"""``fallback="eager"``: calls that fusec refuses run as Python runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fusec.core import log
from fusec.errors import FallbackWarning, OverlapError
from fusec.trace.call.flat_call import FlatCall
from fusec.trace.values.exception_handlers import REFUSALS


class _RefusedError(Exception):
    """A call was refused before anything ran."""

    def __init__(self, refusal: BaseException) -> None:
        self.refusal = refusal


class Fallback:
    """The keys of one function that were refused."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0  # that ran eagerly
        self._refused: set[tuple] = set()

    def call(
        self, fn: Callable[..., Any], args: tuple, kwargs: dict[str, Any],
        flatten: Callable[[tuple, dict[str, Any]], FlatCall], run: Callable[[FlatCall], Any],
    ) -> Any:
        """The call compiled, or as Python runs it where fusec refuses it before anything ran."""
        key: tuple = ()
        try:
            call = flatten(args, kwargs)
            key = call.key
            if key not in self._refused:
                return run(call)
        except _RefusedError as found:
            self._refuse(fn, key, found.refusal)
        except REFUSALS as refusal:
            if key and not isinstance(refusal, OverlapError):  # raised by the run
                raise
            self._refuse(fn, key, refusal)
        self.calls += 1
        return fn(*args, **kwargs)

    @contextmanager
    def before_the_run(self) -> Iterator[None]:
        """Refusals within are known from those of the run."""
        try:
            yield
        except OverlapError:
            raise
        except REFUSALS as refusal:
            raise _RefusedError(refusal) from refusal

    def _refuse(self, fn: Callable[..., Any], key: tuple, refusal: BaseException) -> None:
        """Note that calls of this key run eagerly; warn once."""
        if not self._refused:
            code = getattr(fn, "__code__", None)
            where = (code.co_filename, code.co_firstlineno) if code else ("<unknown>", 1)
            log.warn(
                f"{self.name} runs uncompiled (fallback=\"eager\"; F.eager_calls counts such "
                f"calls): {refusal}", FallbackWarning, *where)
        self._refused.add(key)

    def clear(self) -> None:
        self._refused.clear()
