"""NumPy's random numbers in a trace: drawn at run time, from the program's own generators.

``np.random.normal(mu)``, ``rng.integers(...)`` and their like become host calls: each call of the
compiled function draws NumPy's numbers, in the same order, and leaves the generators in the same
state.  Nothing is drawn while tracing.  The type of a method's result is asked of the method
itself, on a generator made for that purpose and arguments that stand in for traced ones.
"""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice, pairwise, product
from types import ModuleType
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.errors import FusecError, nearest, unsupported, user_error
from fusec.ir import TensorType
from fusec.ir.sizes.bindings import resolve
from fusec.ir.sizes.instantiate import Instantiation
from fusec.ir.sizes.symbolic_numbers import is_int
from fusec.ops.calls.host_calls import HostObject, is_generator
from fusec.ops.calls.library import LibraryCall, run_call

from ..facts.trees import leaves_in
from ..operands.operands import as_traced, store
from ..operands.sizes import define, is_number
from ..values.array import TracedArray
from ..values.trace import Trace
from .arguments import Encoder
from .asked_sizes import Asked, OperandLayout, Told, told
from .calls import result_like, type_of, types_in_symbols
from .host_calls import HostCalls, call_host
from .result_sizes import sized_types
from .short_axes import AS_THEY_ARE, Lengths, in_short
from .stand_ins import operand_of, stand_in

_MODULES = ("numpy.random", "random", "secrets")
_MAKERS = frozenset({
    "default_rng", "RandomState", "Generator", "SeedSequence", "PCG64", "PCG64DXSM", "MT19937",
    "Philox", "SFC64",
})
_REFUSED = {
    "bytes": "draw integers of dtype uint8", "spawn": "spawn before the call and pass the results",
    "get_state": "read it after the call", "set_state": "set it before the call",
}
_ALIASES = {"ranf": "random_sample", "sample": "random_sample", "seed": "seed"}


def is_random(fn: Any) -> bool:
    """Whether a callable draws random numbers or makes a generator: NumPy's, Python's, the
    operating system's.

    By module name: looking at ``np.random`` would import it.
    """
    owner = getattr(fn, "__self__", None)
    home = type(owner) if owner is not None and not isinstance(owner, ModuleType) else fn
    module = getattr(home, "__module__", None)
    if not isinstance(module, str) or (isinstance(fn, type) and fn.__name__ not in _MAKERS):
        return False
    return fn is os.urandom or any(module == m or module.startswith(m + ".") for m in _MODULES)


def drawn(trace: Trace, fn: Any) -> Callable[..., Any]:
    """The traced draw in the place of ``fn``; raises for generators that are not NumPy's."""
    owner, name = getattr(fn, "__self__", None), getattr(fn, "__name__", "")
    if is_generator(owner):
        return _Method(TracedGenerator(trace, _named(trace, owner), type(owner)), name)
    if _is_numpys(fn) and name in _MAKERS:
        return functools.partial(_make, trace, name)
    if _is_numpys(fn) and name in _ALIASES:
        legacy = _legacy()
        return _Method(TracedGenerator(trace, _named(trace, legacy), type(legacy)), _ALIASES[name])
    raise unsupported(
        "drawing random numbers" if not _is_numpys(fn) else f"np.random.{name}", loc=trace.loc,
        cure="use np.random or a np.random.Generator: those are drawn when the code runs",
        notes=("while tracing they would be drawn once and become constants",))


def _is_numpys(fn: Any) -> bool:
    module = getattr(fn, "__module__", None) or type(getattr(fn, "__self__", None)).__module__
    return isinstance(module, str) and module.startswith("numpy.random")


def _legacy() -> Any:
    """The generator behind ``np.random.rand`` and its like."""
    method: Any = np.random.rand
    return method.__self__


def _named(trace: Trace, generator: Any) -> HostObject:
    """A generator from outside, by a name of its own in this trace."""
    host = trace.part(HostCalls).generators.get(id(generator))
    if host is None:
        is_legacy = generator is _legacy()
        generators = trace.part(HostCalls).generators
        name = "np.random" if is_legacy else f"rng{len(generators)}"
        host = generators[id(generator)] = HostObject.of(name, held=generator)
    return host


class TracedGenerator:
    """A generator in a trace: an argument, or one that the function makes."""

    __slots__ = ("_kind", "_target", "_trace")

    def __init__(self, trace: Trace, target: HostObject, kind: type) -> None:
        self._trace, self._target, self._kind = trace, target, kind

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self._kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Method(self, name)


class _Method:
    """``rng.normal`` in a trace."""

    def __init__(self, generator: TracedGenerator, name: str) -> None:
        trace, kind = generator._trace, generator._kind
        if name in _REFUSED or (hasattr(kind, name) and not callable(getattr(kind, name))):
            raise unsupported(f"{kind.__name__}.{name}", loc=trace.loc, cure=_REFUSED.get(
                name, f"use {name} outside the compiled function"))
        if not hasattr(kind, name):
            raise _no_method(trace, kind, name)
        self.generator, self.name = generator, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _draw(self.generator, self.name, args, kwargs)


def _no_method(trace: Trace, kind: type, name: str) -> FusecError:
    own = [n for n in dir(kind) if not n.startswith("_") and n not in _REFUSED]
    wanted = {"rand": "random", "randint": "integers", "randn": "standard_normal",
              "random_sample": "random"}.get(name, "")
    close = [wanted] if wanted in own else nearest(name, own, 1)
    return user_error(
        AttributeError, f"{kind.__name__!r} object has no attribute {name!r}", trace.loc,
        f"a {kind.__name__} has {close[0]}" if close else "see its methods in NumPy's manual")


# ----------------------------------------------------------------------------------------- making


def _make(trace: Trace, name: str, *args: Any, **kwargs: Any) -> Any:
    """``np.random.default_rng(seed)`` in the function: made at every call, when the code runs."""
    if name == "default_rng" and len(args) == 1 and isinstance(args[0], np.random.Generator):
        return args[0]
    encoder = Encoder(trace, f"np.random.{name}")
    form = ("tuple", *[_made_form(encoder, x) for x in args])
    named = ("tuple", *[("tuple", k, _made_form(encoder, x)) for k, x in kwargs.items()])
    trace.part(HostCalls).slots += 1
    slot = HostObject.of(f"made{trace.part(HostCalls).slots}", slot=trace.part(HostCalls).slots)
    call_host(trace, "make", slot, name, [x.value for x in encoder.operands], form, named)
    kind = np.random.Generator if name == "default_rng" else getattr(np.random, name)
    return TracedGenerator(trace, slot, kind)


def _made_form(encoder: Encoder, x: Any) -> Any:
    if type(x) is TracedGenerator:
        return x._target
    if is_generator(x) or isinstance(x, (np.random.SeedSequence, np.random.BitGenerator)):
        return _named(encoder.trace, x)
    return encoder.encode(x, True)


# ---------------------------------------------------------------------------------------- drawing


def _fresh(kind: type) -> Any:
    return np.random.RandomState(0) if kind is np.random.RandomState else (
        np.random.Generator(np.random.PCG64(0)))


def _ask(kind: type, method: str, *args: Any, **kwargs: Any) -> Any:
    """The method's result on a generator of nobody's."""
    return getattr(_fresh(kind), method)(*args, **kwargs)


@functools.cache
def _parameters(kind: type, method: str) -> tuple[str, ...]:
    return tuple(inspect.signature(getattr(_fresh(kind), method)).parameters)


# Arguments that methods accept, by method and parameter or by parameter: a number, or a function of
# the shape.  1 where nothing is said.
_ACCEPTED: dict[Any, Any] = {
    "p": 0.5, "mode": 0.5, "low": 0, "left": 0, ("zipf", "a"): 2, ("integers", "high"): 2,
    ("randint", "high"): 2, "mean": 0.25, "cov": lambda shape: np.eye(shape[0]),
    "pvals": lambda shape: np.full(shape, 1 / shape[-1]),
    ("choice", "p"): lambda shape: np.full(shape, 1 / shape[0]),
}

# Numbers that say of how many is drawn.
_OF_HOW_MANY = {("choice", "a"), ("permutation", "x")}


def _accepted(
    plain: Any, is_size: bool, method: str, parameter: str, alone: bool, number: Any = None,
) -> Any:
    """A plain value of the same type and shape that the method accepts; ``number``: of this one."""
    accepted = _ACCEPTED.get((method, parameter), _ACCEPTED.get(parameter, 1))
    if number is not None and not callable(accepted):
        accepted = number
    elif alone and parameter == "low":
        accepted = 1  # the upper end, then
    if not isinstance(plain, np.ndarray):
        return plain if is_size else type(plain)(0.5 if callable(accepted) else accepted)
    value: Any = accepted(plain.shape) if callable(accepted) and plain.ndim else accepted
    if np.shape(value) in ((), plain.shape) and not callable(value):
        plain = np.array(np.broadcast_to(value, plain.shape)).astype(plain.dtype)
    return plain


_MOST_TRIED = 1000  # numbers for a draw that refuses others


def _draw(
    generator: TracedGenerator, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    trace, kind = generator._trace, generator._kind
    if not trace.active:
        raise user_error(TypeError, "a generator of a trace is used after the trace", trace.loc,
                         "make it outside the compiled function")
    if method == "shuffle":
        return _shuffle(generator, args, kwargs)
    out = kwargs.pop("out", None)
    target = None if out is None else as_traced(trace, out)
    if target is not None and method != "permuted":
        kwargs.setdefault("size", target.shape)
    call = _Call(trace, kind, method, args, kwargs)
    answer = call.answer()
    if answer.value is None:  # seed
        call_host(trace, "draw", generator._target, method, call.values, call.form, call.named)
        return None
    value = _emitted(generator, call, answer)
    if target is None:
        return result_like(trace, answer.value, value)
    if target.dtype != value.dtype:
        raise trace.error(TypeError(f"Supplied output array has the wrong type. Expected "
                                    f"{value.dtype}, got {target.dtype}"), [target.value])
    store(trace, target, value, "no", "the random numbers")
    return out


def _emitted(generator: TracedGenerator, call: _Call, answer: Told) -> Any:
    trace = generator._trace
    types: tuple[TensorType, ...] = (
        replace(type_of(trace, call.name, answer.value), shape=answer.shapes[0]),)
    types = call.symbolic_types(types, answer) or sized_types(
        trace, call.library, call.values, call.form, call.named, types, answer.stand_ins)
    value, = call_host(trace, "draw", generator._target, call.method, call.values, call.form,
                       call.named, types)
    define(trace, value)
    return value


class _Call:
    """The arguments of a draw as a form, and as plain values that stand in for them."""

    def __init__(
        self, trace: Trace, kind: type, method: str, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> None:
        self.trace, self.kind, self.method = trace, kind, method
        self.name = f"{kind.__name__}.{method}"
        self.library = LibraryCall("HostCall", functools.partial(_ask, kind, method))
        self.encoder = Encoder(trace, self.name)
        self.parameter_of: list[str] = []
        names = _parameters(kind, method) or ("",)
        of_args = [names[min(i, len(names) - 1)] for i in range(len(args))]
        forms = [self._encode(name, x) for name, x in zip(of_args, args, strict=True)]
        self.form = ("tuple", *forms)
        self.named = ("tuple", *[("tuple", k, self._encode(k, x)) for k, x in kwargs.items()])
        # What is asked, with sizes that the call names as operands, too: the last ones.
        self.sizes: list[Any] = []
        self.asked = (("tuple", *map(self._with_size, of_args, forms)), (
            "tuple", *[(tag, k, self._with_size(k, form)) for tag, k, form in self.named[1:]]))
        self.values = [x.value for x in self.encoder.operands]
        alone = len(args) + ("high" in kwargs) < 2
        self.accepted = [partial(_accepted, is_size=is_number(x), method=method, parameter=p,
                                 alone=alone)
                         for x, p in zip(self.encoder.operands, self.parameter_of, strict=True)]

    def _encode(self, parameter: str, x: Any) -> Any:
        decides = parameter in ("size", "args", "axis", "dtype", "replace", "x")
        form = self.encoder.encode(x, not decides or any(map(is_number, leaves_in(x))))
        added = len(self.encoder.operands) - len(self.parameter_of)
        self.parameter_of += [parameter] * added
        return form

    def _with_size(self, parameter: str, form: Any) -> Any:
        """The form of an argument; an operand where it says how many are drawn, or of how many."""
        numbers = form[1:] if type(form) is tuple and form[:1] == ("tuple",) else (form,)
        is_size = parameter == "size" or (self.method, parameter) in _OF_HOW_MANY
        if not is_size or not all(map(is_int, numbers)):
            return form
        self.sizes.insert(0, form)
        return ("operand", -len(self.sizes))

    def answer(self) -> Told:
        """NumPy's answer; raises NumPy's exceptions at the user's line."""
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return self._told()
            except Exception as error:
                refusal = error
            for _ in self._with_other_numbers():
                with suppress(Exception):
                    return self._told()
        raise self.trace.error(refusal, self.values, self.parameter_of) from None

    def _with_other_numbers(self) -> Iterator[None]:
        """Stand-ins of numbers below, between and above those that the program names: it is for
        the run to say whether the traced ones fit these (``rng.integers(4, n)``)."""
        given = resolve((self.form, self.named), {})
        named = sorted({x for x in leaves_in(given) if type(x) in (int, float)})
        numbers = {*named, *((a + b) / 2 for a, b in pairwise(named)), -1 << 30, 1 << 30}
        accepted = self.accepted
        for chosen in islice(product(sorted(numbers), repeat=len(accepted)), _MOST_TRIED):
            self.accepted = [partial(make, number=n)
                             for make, n in zip(accepted, chosen, strict=True)]
            yield
        self.accepted = accepted

    def _told(self) -> Told:
        return told(self._question(), self._known())

    def _known(self) -> list[OperandLayout]:
        return [*map(operand_of, self.encoder.operands), *map(_Size.of, self.sizes)]

    def _question(self) -> Asked:
        accepted, library = self.accepted, self.library

        def answer(plain: list[Any], form: Any) -> Any:
            values = [make(x) for make, x in zip(accepted, plain, strict=False)]
            drawn = run_call(library, [*values, *plain[len(accepted):]], *form)
            return type(drawn)() if type(drawn) in (int, float) else drawn  # which is no answer

        return Asked(answer, _stand_in, self.asked)

    def symbolic_types(
        self, types: tuple[TensorType, ...], answer: Told
    ) -> tuple[TensorType, ...]:
        """Those with sizes that follow from sizes of arguments; none where nothing does."""
        return types_in_symbols(self._known(), types, answer, self._question(), self.name)


@dataclass(frozen=True)
class _Size(OperandLayout):
    """A shape that the call names as the operand that has it; with the number where it is one."""

    @classmethod
    def of(cls, form: Any) -> _Size:
        is_shape = type(form) is tuple
        shape = form[1:] if is_shape else (form,)
        return cls(TensorType(np.dtype(np.int64), shape), (), None if is_shape else form)

    def at(self, sizes: Instantiation) -> _Size:
        return _Size(sizes.type(self.type), (), sizes.data(self.number))


def _stand_in(x: OperandLayout, lengths: Lengths = AS_THEY_ARE) -> Any:
    if type(x) is not _Size:
        return stand_in(x, "", lengths=lengths)
    size = in_short(resolve(x.type.shape, {}), lengths)
    return size if x.number is None else size[0]


def _shuffle(generator: TracedGenerator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """``rng.shuffle(x)``: the shuffled copy is written to the array."""
    trace = generator._trace
    x = kwargs.pop("x", None) if not args else args[0]
    if type(x) not in (TracedArray, np.ndarray):
        raise unsupported(f"shuffling a {type(x).__name__}", loc=trace.loc,
                          cure="make it an array: x = np.array(x)")
    call = _Call(trace, generator._kind, "shuffle", (x, *args[1:]), kwargs)
    call.answer()
    target = as_traced(trace, x)
    target.check_writeable()
    value, = call_host(trace, "change", generator._target, "shuffle", call.values, call.form,
                       call.named, (target.type,))
    target.write(value)
