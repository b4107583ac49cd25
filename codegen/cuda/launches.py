"""Launches as prepared calls have them, at addresses that a call fills in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from .kernels.launch_plan import Layout
from .module import CudaKernel

Base = tuple[str, int]  # the kind of a place and its number; "block" and "numbers"
BLOCK: Base = ("block", 0)
NUMBERS: Base = ("numbers", 0)
_WORDS: dict[str, Any] = {"pointer": np.uint64, "int32": np.int32, "int64": np.int64}


class Address(NamedTuple):
    """An argument that only the call knows: bytes after the beginning of an array or block."""

    base: Base
    offset: int


class Filled(NamedTuple):
    """A launch with all arguments: what CuPy's functions are called with."""

    function: Any
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    words: tuple[Any, ...]
    shared: int


class Named(Protocol):
    """A kernel, or a node, that a launch is of: for messages."""

    @property
    def name(self) -> str: ...
    @property
    def locs(self) -> Sequence[Any]: ...


class Launched(Protocol):
    """Code that a driver has loaded, of a nest or of a loop."""

    @property
    def loaded(self) -> Any: ...
    @property
    def kernel(self) -> CudaKernel: ...


class AnyLaunch(Protocol):
    """A launch of a kernel, or of a library's."""

    @property
    def args(self) -> tuple[Address | int, ...]: ...

    def filled(self, where: Mapping[Base, int]) -> Filled:
        """The launch at these addresses."""


class Launch(NamedTuple):
    """One launch of a kernel; ``args`` are `Address` es and integers, one a parameter."""

    one: Launched
    layout: Layout
    args: tuple[Address | int, ...]

    def filled(self, where: Mapping[Base, int]) -> Filled:
        """See `AnyLaunch.filled`."""
        kernel, layout = self.one.kernel, self.layout
        return Filled(
            function_for(self.one.loaded.functions[kernel.name], kernel, layout.blocks),
            (layout.blocks, 1, 1), (*layout.threads, 1),
            tuple(_WORDS[param.kind](value(arg, where))
                  for param, arg in zip(kernel.params, self.args, strict=True)),
            layout.shared)


class Segment:
    """Launches one after another; ``bases`` are the arrays and blocks whose addresses a call gives,
    in this order."""

    def __init__(self, launches: Sequence[AnyLaunch], kernels: Sequence[Named]) -> None:
        self.launches, self.kernels = launches, kernels
        self.bases: list[Base] = [*dict.fromkeys(
            base for launch in launches for base in bases_of(launch.args))]


class CopyPart(NamedTuple):
    """Bytes that are copied before a loop, which changes the copy: of memory, or a constant."""

    to: Address
    of: Address | np.ndarray
    nbytes: int

    @property
    def bases(self) -> list[Base]:
        return bases_of((self.to, self.of))


def bases_of(args: Iterable[Any]) -> list[Base]:
    """The arrays and blocks that addresses among them are of."""
    return [arg.base for arg in args if isinstance(arg, Address)]


def value(arg: Address | int, where: Mapping[Base, int]) -> int:
    """An argument as a number."""
    return where[arg.base] + arg.offset if isinstance(arg, Address) else arg


def function_for(function: Any, kernel: CudaKernel, blocks: int) -> Any:
    """CuPy's function for a launch of so many blocks, which may have to wait for each other."""
    if kernel.is_cooperative and blocks > 1:
        return partial(function, enable_cooperative_groups=True)
    return function
