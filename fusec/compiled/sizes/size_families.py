"""Calls whose arguments differ in sizes alone, and which sizes are constants of their traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fusec.trace.call.symbolic_arguments import SymbolicArguments

if TYPE_CHECKING:
    from .symbolic_traces import SymbolicTrace

MOST_TRACES = 8  # of arguments that differ in sizes alone; further ones are traced for their own
MOST_SEEN = 256  # kinds of calls, and values of constants in each, that are remembered
_Sized = Mapping[str, int]


class Family:
    """Calls that differ in sizes alone: their traces, and sizes that those need the values of."""

    def __init__(self) -> None:
        self.constants: set[str] = set()
        self.asked: dict[str, str] = {}  # where the value of each constant was
        self.traces: dict[tuple[int, ...], list[SymbolicTrace]] = {}  # by the constants' values
        self.general: list[SymbolicTrace] = []  # that need the value of none
        self.seen: dict[tuple[int, ...], _Sized] = {}  # the first call traced of each
        self.refusal = ""  # why sizes are no symbols
        self.follows_outside = True  # whether sizes and numbers outside are, where they vary

    def values(self, sizes: _Sized) -> tuple[int, ...]:
        """The sizes of a call that are constants of its trace."""
        return tuple(sizes[name] for name in sorted(self.constants))

    def first_of(self, values: tuple[int, ...], sizes: _Sized) -> _Sized:
        """The sizes of the first call with these constants, which may be this one."""
        if len(self.seen) >= MOST_SEEN and values not in self.seen:
            oldest = next(iter(self.seen))
            del self.seen[oldest]
            self.traces.pop(oldest, None)
        return self.seen.setdefault(values, sizes)

    def add(self, trace: SymbolicTrace) -> None:
        """Keep a trace; the sizes that it needs the values of are constants from now on."""
        if not trace.constants <= self.constants:
            self.constants |= trace.constants
            self.asked = trace.arguments.sizes.constants() | self.asked
            everything = [t for traces in self.traces.values() for t in reversed(traces)]
            self.traces.clear()
            first = [sizes for sizes in self.seen.values() if sizes]  # of foreseen calls none
            self.seen = {self.values(sizes): sizes for sizes in reversed(first)}
            for other in everything:
                self._keep(other)
        self._keep(trace)

        if not trace.constants:
            self.general = [trace, *self.general][:MOST_TRACES]

    def candidates(self, sizes: _Sized) -> Iterator[SymbolicTrace]:
        """Traces that may serve a call, among them those from before a size was a constant: one
        call of an odd size (1 of ``x[:len(x) // 2]``) says nothing of the others."""
        own = self.traces.get(self.values(sizes), [])
        yield from own
        yield from (trace for trace in self.general if not any(trace is t for t in own))

    def fixed_sizes(self, arguments: SymbolicArguments, paths: Sequence[str]) -> str:
        """Which sizes of arguments are constants, and where the trace asked for them."""
        names = [(f"{name}, asked at {self.asked[symbol]}" if self.asked.get(symbol) else name)
                 for symbol, name in arguments.names(paths).items() if symbol in self.constants]
        return f"it has the value of {'; of '.join(names)}" if names else ""

    def _keep(self, trace: SymbolicTrace) -> None:
        values = self.values(trace.arguments.sizes.hints)
        self.traces.setdefault(values, []).insert(0, trace)
