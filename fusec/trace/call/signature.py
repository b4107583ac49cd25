"""A function's parameters, and how a call's arguments are bound to them.

Imported when a function is decorated: parts that only calls need are elsewhere.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

from fusec.core.records import dataclass, field, replace
from fusec.errors import nearest, users_own

_POSITION_ONLY = inspect.Parameter.POSITIONAL_ONLY
_BY_POSITION = (_POSITION_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class Signature:
    """A function's parameters, and which of them (or parts, ``options['k']``) are static."""

    parameters: inspect.Signature
    names: tuple[str, ...]
    static: frozenset[str]
    order: tuple[str, ...]  # of a call's leaves: positional parameters, then the others sorted
    positional: int  # how many parameters can be passed by position; -1 with *args or **kwargs
    arity: int  # of calls that pass all parameters by position; -1 where that cannot be
    by_name: frozenset[str]  # parameters that can be passed by keyword
    defaults: dict[str, Any] = field(compare=False)
    partial_keywords: dict[str, Any] | None = field(default=None, compare=False)
    layouts: dict[Any, tuple[tuple[str, ...], tuple[bool, ...]]] = field(
        default_factory=dict, compare=False)  # paths of leaves, and which are static, by treespec

    @classmethod
    def of(cls, fn: Callable[..., Any], static: Sequence[str | int]) -> Signature:
        """Raises ``ValueError`` when ``static`` names no parameter."""
        parameters = _parameters(fn)
        names = tuple(parameters.parameters)
        chosen = frozenset(_static_name(names, s) for s in static)
        params = parameters.parameters.values()
        first = tuple(p.name for p in params if p.kind in _BY_POSITION)
        last = tuple(sorted(p.name for p in params if p.kind is inspect.Parameter.KEYWORD_ONLY))
        counted = len(first) + len(last) == len(names)  # else it has *args or **kwargs
        return cls(parameters, names, chosen, (*first, *last), len(first) if counted else -1,
                   len(first) if counted and not last else -1,
                   frozenset(p.name for p in params if p.kind is not _POSITION_ONLY),
                   {p.name: p.default for p in params if p.default is not p.empty},
                   keywords_of(fn) if isinstance(fn, functools.partial) else None)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """Positional and keyword arguments in normal form; raises TypeError as the call would."""
        values = self.in_order(args, kwargs)
        if values is not None:
            count = self.positional
            if len(values) == count:
                return values, {}
            return values[:count], dict(zip(self.order[count:], values[count:], strict=True))
        bound = self.parameters.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def in_order(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        """Arguments and defaults in `order`; None where only the slower `bind` can tell."""
        if not kwargs and len(args) == self.arity:
            return args
        if len(args) > self.positional:
            return None
        values, keywords_used = list(args), 0
        for name in self.order[len(args):]:
            if name in kwargs and name in self.by_name:
                values.append(kwargs[name])
                keywords_used += 1
            elif name in self.defaults:
                values.append(self.defaults[name])
            else:
                return None
        return tuple(values) if keywords_used == len(kwargs) else None

    def is_static(self, path: str) -> bool:
        """Whether a leaf is a Python value while tracing: ``options['k'][0]`` of ``options``."""
        return any(path == part or path.startswith((f"{part}[", f"{part}."))
                   for part in self.static)

    def with_static(self, paths: frozenset[str]) -> Signature:
        """The signature with these parts static too."""
        return replace(self, static=self.static | paths) if paths else self

    def path_of(self, position: int) -> str:
        """The name of a positional argument, for messages."""
        if position < len(self.names):
            return self.names[position]
        return f"arg{position}"


def _parameters(fn: Callable[..., Any]) -> inspect.Signature:
    """The parameters of a call of ``fn``.  Of a wrapper with ``__wrapped__`` these are the wrapped
    function's only where the wrapper passes on all arguments."""
    outer = inspect.signature(fn)
    if not isinstance(fn, (FunctionType, MethodType)):
        return outer
    inner = inspect.signature(fn, follow_wrapped=False)
    kinds = {p.kind for p in inner.parameters.values()}
    needed: set[Any] = {inspect.Parameter.VAR_POSITIONAL}
    if any(p.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
           for p in outer.parameters.values()):
        needed.add(inspect.Parameter.VAR_KEYWORD)
    return outer if needed <= kinds else inner


def _static_name(names: tuple[str, ...], static: str | int) -> str:
    if isinstance(static, int) and -len(names) <= static < len(names):
        return names[static]
    if static in names:
        return str(static)
    close = nearest(static, names) if isinstance(static, str) else []
    hint = f"did you mean {' or '.join(close)}?" if close else (
        f"it has {', '.join(names) or 'none'}")
    raise users_own(ValueError(f"static={static!r} names no parameter of the function; {hint}"))


def keywords_of(fn: Any) -> dict[str, Any]:
    """The keyword arguments of a partial, and of the partials that it wraps."""
    keywords: dict[str, Any] = {}
    while isinstance(fn, functools.partial):
        keywords = {**fn.keywords, **keywords}
        fn = fn.func
    return keywords
