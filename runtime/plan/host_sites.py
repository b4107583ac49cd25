"""Python's side of calls from native loops; see ``fusec.codegen.plan.control_program``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import copyto, ndarray

from fusec.codegen.plan.control_program import HostSite, HostValue
from fusec.errors import UnsupportedError
from fusec.ir import Node, TensorType
from fusec.ops import get
from fusec.ops.calls.host_calls import prepared
from fusec.ops.calls.library import LIBRARY, call_text, leaves_of

MOST_PLACES = 8
Run = Callable[[Sequence[Any]], tuple[Any, ...]]
Cell = Callable[[int, np.dtype], np.ndarray]  # a word, by its number, as an array of one number


class OutgrownError(Exception):
    """A result has more elements than there is memory for."""


class _Memory:
    """Memory that belongs to the native function, as NumPy's array interface."""

    def __init__(self, address: int, value: HostValue, shape: tuple[int, ...]) -> None:
        self.__array_interface__ = {
            "data": (address, False), "shape": shape, "strides": value.strides,
            "typestr": value.type.dtype.str, "version": 3,
        }


class HostCaller:
    """The callbacks of one argument block; ``error`` is what the last one raised.

    ``called`` gets the draws that native code left to Python.
    """

    def __init__(self, sites: list[HostSite], cell: Cell, called: dict[str, str]) -> None:
        self.cell, self.called = cell, called
        self.error: Exception | None = None
        self.callbacks = [self._callback(site) for site in sites]

    def address(self, number: int) -> int:
        """Of the object that native code calls; it lives as long as this one."""
        return id(self.callbacks[number])

    def _callback(self, site: HostSite) -> Callable[[], bool]:
        do = self._product(site) if _is_product(site) else self._results_kept(site)

        def call() -> bool:
            try:
                do()
            except Exception as error:  # the error of a line; a signal's goes through native code
                self.error = error
                return False
            return True

        return call

    def _product(self, site: HostSite) -> Callable[[], Any]:
        """A product of matrices goes straight into its place."""
        a, b, place = (self._array(v) for v in (*site.operands, *site.results))
        return lambda: np.matmul(a(), b(), out=place())

    def _results_kept(self, site: HostSite) -> Callable[[], None]:
        run = _of_the_host(site.node) if site.node.op == "HostCall" else _of_a_library(site.node)
        if site.drawing is not None:
            run = self._noted(site, run)
        operands = [self._reader(value) for value in site.operands]
        keep = [self._writer(value) for value in site.results]
        if len(keep) == 1 and site.drawing is None and (call := _one_call(site.node)) is not None:
            return _of_one_result(call, operands, *keep)

        def do() -> None:
            for write, result in zip(keep, run([read() for read in operands]), strict=False):
                write(result)

        return do

    def _noted(self, site: HostSite, run: Run) -> Run:
        """The call, which also says that native code could not draw."""
        def noted(operands: Sequence[Any]) -> tuple[Any, ...]:
            self.called.setdefault(site.name, "arguments that only the method looks at")
            return run(operands)

        return noted

    def _reader(self, value: HostValue) -> Callable[[], Any]:
        if value.strides is not None:
            return self._array(value)
        number = self.cell(value.word, value.type.dtype)
        return number.item if value.type.is_weak else lambda: number[0]

    def _array(self, value: HostValue) -> Callable[[], np.ndarray]:
        address = self.cell(value.word, np.dtype(np.int64))
        if not value.sizes:
            return self._fixed_array(value, address)
        sizes = self._sizes(value)

        def array() -> np.ndarray:
            shape = list(value.type.shape)
            for axis, size in sizes.items():
                shape[axis] = size.item()
            return np.asarray(_Memory(address.item(), value, tuple(shape)))

        return array

    def _fixed_array(self, value: HostValue, address: np.ndarray) -> Callable[[], np.ndarray]:
        """Arrays are cached by address: loops use few of them, and making one takes 1 µs."""
        shape: Any = value.type.shape
        arrays: dict[int, np.ndarray] = {}

        def array() -> np.ndarray:
            place = address.item()
            existing = arrays.get(place)
            if existing is None:
                if len(arrays) == MOST_PLACES:
                    arrays.clear()
                existing = arrays[place] = np.asarray(_Memory(place, value, shape))
            return existing

        return array

    def _sizes(self, value: HostValue) -> dict[int, np.ndarray]:
        return {s.axis: self.cell(s.word, np.dtype(np.int64)) for s in value.sizes}

    def _writer(self, value: HostValue) -> Callable[[Any], None]:
        type_ = value.type
        if value.strides is None:
            number = self.cell(value.word, type_.dtype)
            return lambda result: number.__setitem__(0, _checked(result, type_))
        array, sizes = self._array(value), self._sizes(value)
        defined = [(s, sizes[s.axis]) for s in value.sizes if s.defines]
        if not sizes:
            return lambda result: copyto(array(), _checked(result, type_))

        def write(result: Any) -> None:
            for word, size in defined:
                if result.ndim <= word.axis:
                    raise _unexpected(result, type_)
                if result.shape[word.axis] > word.limit:
                    raise OutgrownError if word.is_guessed else _unexpected(result, type_)
                size[0] = result.shape[word.axis]
            memory = array()
            if memory.shape != result.shape or memory.dtype != result.dtype:
                raise _unexpected(result, type_)
            memory[...] = result

        return write


def _is_product(site: HostSite) -> bool:
    values = (*site.operands, *site.results)
    return site.node.op == "MatMul" and all(v.strides is not None and not v.sizes for v in values)


def _of_the_host(node: Node) -> Run:
    run = prepared(node.attrs)
    return lambda operands: (run(operands),)


def _of_a_library(node: Node) -> Run:
    reference, attrs = get(node.op).reference, dict(node.attrs)

    def run(operands: Sequence[Any]) -> tuple[Any, ...]:
        results = reference(*operands, **attrs)
        return results if isinstance(results, tuple) else (results,)

    return run


def _one_call(node: Node) -> Callable[..., Any] | None:
    """The library's function of the operands alone, as Python's own code; None for one that writes
    into its first operand, or gives several results."""
    row = LIBRARY.get(node.op)
    if row is None or row.writes or len(node.types) != 1:
        return None
    names = [f"x{k}" for k in range(len(node.inputs))]
    bound: dict[str, Any] = {}

    def bind(stem: str, value: Any) -> str:
        name = f"{stem}_{len(bound)}"
        bound[name] = value
        return name

    text = call_text(row, node.attrs["form"], node.attrs["named"], names, bind)
    call: Callable[..., Any] = eval(f"lambda {', '.join(names)}: {text}", bound)
    return call


def _of_one_result(
    call: Callable[..., Any], operands: Sequence[Callable[[], Any]], write: Callable[[Any], None]
) -> Callable[[], None]:
    """Most calls have one operand or two: these are passed without a list."""
    if len(operands) == 1:
        (read,) = operands
        return lambda: write(_leaf(call(read())))
    if len(operands) == 2:
        first, second = operands
        return lambda: write(_leaf(call(first(), second())))
    return lambda: write(_leaf(call(*[read() for read in operands])))


def _leaf(result: Any) -> Any:
    """A result, out of the tuple or list that holds it alone."""
    return leaves_of(result)[0] if isinstance(result, (tuple, list)) else result


def _checked(result: Any, type_: TensorType) -> Any:
    """The result, if it has the type that NumPy was found to return when the call was traced."""
    if type(result) is ndarray:
        if result.dtype != type_.dtype or result.shape != type_.shape:
            raise _unexpected(result, type_)
        return result
    if type(result) is not float or type_.dtype != np.float64 or type_.shape:
        array = np.asarray(result)
        if array.dtype != type_.dtype or array.shape != type_.shape:
            raise _unexpected(array, type_)
    return result


def _unexpected(result: np.ndarray, type_: TensorType) -> UnsupportedError:
    return UnsupportedError(
        f"the type of a result of a library call depends on the data: it is {result.dtype}"
        f"{list(result.shape)} here, {type_} was compiled",
        cure="call it before or after the compiled function")
