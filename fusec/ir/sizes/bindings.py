"""Values of the symbols in shapes, attributes and other plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .dims import Dim, symbols_of
from .polynomials import Size
from .symbolic_numbers import Symbolic

Bindings = Mapping[str, int]


def resolve(data: Any, bindings: Bindings) -> Any:
    """Plain data with every size in it evaluated."""
    if type(data) is Dim:
        return data.evaluate(bindings)
    if type(data) is Symbolic:  # while tracing, values are those of the traced call
        return data.hint
    if type(data) is tuple:
        return tuple(resolve(item, bindings) for item in data)
    return data


def evaluator(sizes: Iterable[Size]) -> Callable[[Bindings], tuple[int, ...]]:
    """One function that evaluates all of these sizes, quicker than one by one."""
    parts = "".join(f"{size_source(s, 'b')}," for s in sizes)
    return eval(f"lambda b: ({parts})", {"min": min, "max": max})


def size_source(size: Size, bindings: str) -> str:
    """A Python expression of a size, which may be a plain number."""
    return size.source(bindings) if isinstance(size, Dim) else str(size)


def attrs_evaluator(attrs: Mapping[str, Any]) -> Callable[[Bindings], dict[str, Any]]:
    """A function that gives a node's attributes with every size in them evaluated.

    Where no attribute holds a size, each call gives the same dict: callers must not change it.
    """
    if not symbols_of(tuple(attrs.values())):
        fixed = dict(attrs)
        return lambda bindings: fixed
    names: dict[str, Any] = {"min": min, "max": max}
    parts = (f"{name!r}: {_data_source(value, names)}" for name, value in attrs.items())
    run: Callable[[Bindings], dict[str, Any]] = eval(f"lambda b: {{{', '.join(parts)}}}", names)
    return run


def _data_source(data: Any, names: dict[str, Any]) -> str:
    if isinstance(data, Dim):
        return data.source("b")
    if type(data) is tuple and symbols_of(data):
        return f"({''.join(f'{_data_source(item, names)}, ' for item in data)})"
    name = f"value{len(names)}"
    names[name] = data
    return name


class _Typical(dict[str, int]):
    def __missing__(self, name: str) -> int:
        return TYPICAL


# What a symbol counts as where the compiler weighs sizes (the order of loops, say) and the answer
# changes speed alone: large, as axes of arrays are, and no multiple of anything (a prime).
TYPICAL = 4099
_TYPICAL = _Typical()


def typical(size: Size) -> Any:
    """The size, with `TYPICAL` for each symbol of the run: for estimates of cost, never for
    correctness.  A size that follows from arguments is itself, so a comparison is a question."""
    return size.evaluate(_TYPICAL) if type(size) is Dim else size


def bind(shape: tuple[Size, ...], actual: tuple[int, ...], bindings: dict[str, int]) -> bool:
    """Whether an array's shape is that of its type; binds the symbols that have no value yet."""
    if len(shape) != len(actual):
        return False
    for size, number in zip(shape, actual, strict=True):
        if isinstance(size, Dim) and size.name is not None:
            if bindings.setdefault(size.name, number) != number:
                return False
        elif resolve(size, bindings) != number:
            return False
    return True
