"""Keywords of a call with ``**mapping``, joined as Python joins them."""

from __future__ import annotations

from typing import Any

Keywords = tuple[tuple[str | None, Any], ...]  # None: a mapping


def joined(fn: Any, keywords: Keywords) -> dict[str, Any]:
    """The keywords of a call of ``fn``; raises ``TypeError`` in Python's words."""
    result: dict[str, Any] = {}
    for name, value in keywords:
        mapping = {name: value} if name is not None else value
        if not hasattr(mapping, "keys"):
            raise TypeError(f"{_title(fn)} argument after ** must be a mapping, not "
                            f"{type(mapping).__name__}")
        for key in mapping.keys():  # noqa: SIM118 (as Python asks: it may be no dict)
            if key in result:
                raise TypeError(f"{_title(fn)} got multiple values for keyword argument {key!r}")
            result[key] = mapping[key]
    return result


def _title(fn: Any) -> str:
    """A callable as CPython's messages name it."""
    name, home = getattr(fn, "__qualname__", str(fn)), getattr(fn, "__module__", None)
    return f"{name}()" if home in (None, "builtins") else f"{home}.{name}()"
