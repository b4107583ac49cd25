"""NumPy's own C functions, by which native loops draw, found in the installed NumPy and checked.

NumPy's module of generators exports its C functions, so a loop calls the function that the method
itself calls, whatever this NumPy's algorithm.  Before its first use in a process, each is compared
with its method on copies of the generator: values and state after them.  Where a function is
missing or differs, the loop calls Python, and `reason` says why.
"""

from __future__ import annotations

import copy
import ctypes
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from fusec.codegen.plan.control_program import HostSite
from fusec.core.records import dataclass
from fusec.ops.calls.drawings import CHOICE, F32, GENERATOR, Drawing
from fusec.ops.calls.host_calls import HostObject, context, generator_state
from fusec.runtime.native import address_of

from . import legacy_draws
from .legacy_draws import NEXT_DOUBLE

UNIFORM = "random_standard_uniform"  # the bit generator's own function, which takes its state
CHECKED = 40  # numbers of the self-check, for each sample of arguments
_C_TYPES: dict[str, Any] = {"f8": ctypes.c_double, "f4": ctypes.c_float, "i8": ctypes.c_int64}
# Ranges of integers that take each way of NumPy's, as first, last and count.
_RANGES = ((0, 9, 1), (-3, 100, 7), (0, (1 << 32) - 1, 3), (-5, 1 << 40, 1), (0, 1 << 62, 3),
           (-(1 << 63), (1 << 63) - 1, 2), (4, 4, 3), (0, (1 << 63) - 2, 3))
_reasons: dict[Any, str] = {}  # by method and generator, why Python is called; "": it is not
_addresses: dict[str, int] = {}


class _UnknownError(Exception):
    """The function or state is not found; the message says why."""


@dataclass(frozen=True)
class _Site:
    """A call site that draws, and the positions of its two words."""

    name: str
    target: HostObject
    drawing: Drawing
    function: int
    source: int


class Draws:
    """The sites of one argument block that draw, and their words.

    ``called`` gets the draws that Python has to make, and why.
    """

    def __init__(
        self, sites: Sequence[HostSite], at: Mapping[tuple[str, int], int], called: dict[str, str]
    ) -> None:
        self.called = called
        self.sites = [
            _Site(site.name, site.node.attrs["target"], site.drawing, at["draw", number],
                  at["source", number])
            for number, site in enumerate(sites) if site.drawing is not None]

    @contextmanager
    def ready(self, words: np.ndarray) -> Iterator[None]:
        """Fill the words; the generators' locks are held meanwhile, in one order in all threads."""
        locks: dict[int, Any] = {}
        for site in self.sites:
            generator = site.target.object_in(context())
            why = reason(generator, site.drawing)
            if why:
                self.called[site.name] = why
                words[site.function] = 0
                continue
            words[site.function] = _function(generator, site.drawing)
            words[site.source] = _source(generator, site.drawing)
            lock = _bits_of(generator).lock
            locks[id(lock)] = lock
        with ExitStack() as held:
            for _, lock in sorted(locks.items()):
                held.enter_context(lock)
            yield


def reason(generator: Any, drawing: Drawing) -> str:
    """Why native code cannot draw from it; "": it can."""
    if generator is None:
        return "the loop makes the generator"
    key = drawing.method, drawing.dtype, type(generator), type(_bits_of(generator))
    known = _reasons.get(key)
    if known is None:
        known = _reasons[key] = _looked_at(generator, drawing)
    return known


def _looked_at(generator: Any, drawing: Drawing) -> str:
    try:
        twin = copy.deepcopy(generator)
        return "" if _is_same(twin, copy.deepcopy(twin), drawing) else (
            f"this NumPy's {drawing.method} draws in another way")
    except Exception as error:  # of a bit generator of the user's, of a platform without symbols
        return f"{type(error).__name__}: {error}" if not isinstance(error, _UnknownError) else (
            str(error))


# -- where things are


def _bits_of(generator: Any) -> Any:
    kind = type(generator).__name__
    return generator.bit_generator if kind == GENERATOR else generator._bit_generator


def _name(generator: Any, drawing: Drawing) -> str:
    kind = type(generator).__name__
    name = drawing.functions.get(kind, "")
    if not name:
        raise _UnknownError(f"{kind}.{drawing.method} has an algorithm of its own")
    return name


def _function(generator: Any, drawing: Drawing) -> int:
    name = _name(generator, drawing)
    if name == UNIFORM:
        return _words(generator)[NEXT_DOUBLE]
    address = _addresses.get(name)
    if address is None:
        address = _addresses[name] = _found(name)
    return address


def _found(name: str) -> int:
    if name in legacy_draws.NAMES:
        return legacy_draws.addresses()[name]
    module = sys.modules[np.random.Generator.__module__]
    try:
        return address_of(getattr(ctypes.CDLL(module.__file__), name))
    except (OSError, AttributeError):
        raise _UnknownError(f"this NumPy does not export {name}") from None


def _source(generator: Any, drawing: Drawing) -> int:
    """The address of the state that the function takes."""
    name = _name(generator, drawing)
    if name == UNIFORM:
        return _words(generator)[0]
    if name.startswith("legacy_"):
        return id(generator) + _legacy_place(generator)
    return _address(generator)


def _address(generator: Any) -> int:
    """Of the bit generator's ``bitgen_t``."""
    return _capsule(_bits_of(generator).capsule, b"BitGenerator")


def _words(generator: Any) -> list[int]:
    """Of that: the state, then next_uint64, next_uint32, next_double, next_raw."""
    return list((ctypes.c_uint64 * 5).from_address(_address(generator)))


def _capsule(capsule: Any, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, name))


def _legacy_place(generator: Any) -> int:
    """Where in a ``RandomState`` its ``aug_bitgen_t`` lies, which begins with the address of the
    object's own copy of the bit generator's five words."""
    first, size = id(generator), type(generator).__basicsize__
    words = (ctypes.c_uint64 * (size // 8)).from_address(first)
    expected = _words(generator)
    for k, word in enumerate(words[: len(words) - 2]):
        inside = (word - first) // 8
        if 0 <= inside <= len(words) - 5 and word % 8 == first % 8 and (
                words[inside: inside + 5] == expected):
            return 8 * k
    raise _UnknownError("the state of this NumPy's RandomState lies elsewhere")


# -- the self-check


def _is_same(twin: Any, other: Any, drawing: Drawing) -> bool:
    """Whether the function gives the bits of the method, and leaves the same state."""
    check = _same_integers if drawing.is_bounded else _same_numbers
    return check(twin, other, drawing) and (
        _is_equal(generator_state(twin), generator_state(other)))


def _same_numbers(twin: Any, other: Any, drawing: Drawing) -> bool:
    kind = _C_TYPES[drawing.dtype.str[1:]]
    call = ctypes.CFUNCTYPE(kind, ctypes.c_void_p, *[ctypes.c_double] * len(drawing.parameters))(
        _function(other, drawing))
    state = _source(other, drawing)
    method, is_above = getattr(twin, drawing.method), [
        p.holds == "above" for p in drawing.parameters]
    named = {"dtype": F32} if drawing.dtype == F32 else {}
    for sample in drawing.samples:
        passed = [x - sample[k - 1] if above else x for k, (x, above) in enumerate(
            zip(sample, is_above, strict=True))]
        mine = [call(state, *passed) for _ in range(CHECKED)]
        theirs = [method(*sample, **named) for _ in range(CHECKED)]
        if _bits(mine, drawing.dtype) != _bits(theirs, drawing.dtype):
            return False
    return True


def _same_integers(twin: Any, other: Any, drawing: Drawing) -> bool:
    word = getattr(ctypes, f"c_uint{8 * drawing.dtype.itemsize}")
    fill = ctypes.CFUNCTYPE(None, ctypes.c_void_p, word, word, ctypes.c_int64, ctypes.c_bool,
                            ctypes.c_void_p)(_function(other, drawing))
    state, limits = _source(other, drawing), np.iinfo(drawing.dtype)
    masked = drawing.method == "randint"
    for low, high, count in _RANGES:
        low = 0 if drawing is CHOICE else low
        first, last = max(low, int(limits.min)), min(high, int(limits.max))
        results = np.empty(count, drawing.dtype)
        for _ in range(CHECKED // 4):
            fill(state, first % (1 << 64), last - first, count, masked, results.ctypes.data)
            size = None if count == 1 else count
            if results.tobytes() != _integers(twin, drawing, first, last, size).tobytes():
                return False
    return True


def _integers(twin: Any, drawing: Drawing, first: int, last: int, size: int | None) -> Any:
    """The method's own draws."""
    if drawing is CHOICE:
        return np.asarray(twin.choice(last + 1, size), np.int64)
    return np.asarray(getattr(twin, drawing.method)(first, last + 1, size, dtype=drawing.dtype))


def _bits(numbers: Sequence[Any], dtype: np.dtype) -> bytes:
    return np.array(numbers, dtype).tobytes()


def _is_equal(a: Any, b: Any) -> bool:
    """Whether two states, dicts of numbers and arrays, are the same."""
    if isinstance(a, dict):
        return all(_is_equal(a[key], b[key]) for key in a)
    return np.array_equal(a, b)


__all__ = ["Draws", "reason"]
