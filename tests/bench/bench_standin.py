"""A compiler that compiles nothing, for testing the harness without fusec's own pipeline."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fusec.bench.measuring.adapter import MeasuredBackend, MeasuredTraffic


class Identity:
    """A 'compiled' function: the eager one, its results passed through ``twist``."""

    def __init__(self, f: Callable[..., Any], twist: Callable[[Any], Any]) -> None:
        self.python_function = f
        self.twist = twist
        self.calls = 0

    def __call__(self, *args: Any) -> Any:
        self.calls += 1
        return self.twist(self.python_function(*args))


class StandIn(MeasuredBackend):
    """Answers the harness with fixed figures; ``twist`` alters results, ``ops`` is the op count."""

    def __init__(self, twist: Callable[[Any], Any] = lambda r: r, ops: int = 5,
                 traffic: tuple[MeasuredTraffic, ...] = (MeasuredTraffic(2, 1, 16_000, 8_000),),
                 externs: tuple[str, ...] = ()) -> None:
        self.twist, self.ops, self.kernels, self.libraries = twist, ops, traffic, externs
        self.used_threads: list[int] = []

    def is_function(self, f: Any) -> bool:
        return isinstance(f, Identity)

    def jit(self, f: Callable[..., Any]) -> Identity:
        return Identity(f, self.twist)

    def eager(self, compiled: Any) -> Callable[..., Any]:
        return compiled.python_function

    def compile_times(self, compiled: Any, args: Sequence[Any]) -> dict[str, float]:
        return {"trace": 1.0, "passes": 2.0, "codegen": 3.0, "llvm": 4.0}

    def traffic(self, compiled: Any, args: Sequence[Any]) -> tuple[MeasuredTraffic, ...]:
        return self.kernels

    def externs(self, compiled: Any, args: Sequence[Any]) -> tuple[str, ...]:
        return self.libraries

    def operations(self, compiled: Any, args: Sequence[Any]) -> int:
        return self.ops

    def max_threads(self) -> int:
        return 2

    @contextlib.contextmanager
    def threads(self, n: int) -> Iterator[None]:
        self.used_threads.append(n)
        yield
