"""The results of a benchmark, as an object that prints itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from fusec.core.display.notebook import Shown, headline, preformatted, table

from ..measuring.adapter import MeasuredTraffic
from ..measuring.equality import Equality
from ..measuring.stats import Timing, count, digits, duration

SMALL_SECONDS = 2e-5
NEAR_LIMIT = 0.6
LIBRARY_SHARE = 0.25


@dataclass(frozen=True)
class PeerResult:
    """A peer's time on the same inputs, or why there is none."""

    version: str
    timing: Timing | None
    note: str = ""
    error_ulp: float | None = None
    first_call_ms: float | None = None


@dataclass(frozen=True)
class Report(Shown):
    """The outcome of :func:`fusec.benchmark`.

    Times are seconds per call, ``compile_ms`` milliseconds per stage, memory and traffic bytes.
    ``compiled`` maps a thread count to its timing; ``eager_kept`` and ``compiled_kept`` are the
    times with the last eight results kept alive (None where those would not fit in 2 GiB).
    """

    name: str
    eager: Timing
    compiled: Mapping[int, Timing]
    eager_kept: Timing | None
    compiled_kept: Timing | None
    equality: Equality
    compile_ms: Mapping[str, float]
    first_call_ms: float | None
    peak_eager: int
    peak_compiled: int
    traffic: tuple[MeasuredTraffic, ...]
    externs: tuple[str, ...]
    operations: int
    limit_seconds: Mapping[int, float]
    peers: Mapping[str, PeerResult] = field(default_factory=dict)
    program: str = ""
    size: int = 0
    dtype: str = ""
    remarks: tuple[str, ...] = ()  # what disturbed the measurement, in sentences
    held_up: tuple[str, ...] = ()  # which loops and branches run in Python, and why
    native_loops: int = 0  # those, branches among them, that are compiled functions
    products_in_loops: int = 0

    @property
    def threads(self) -> int:
        """The largest thread count measured; the headline figures are of this one."""
        return max(self.compiled)

    @property
    def best(self) -> Timing:
        return self.compiled[self.threads]

    @property
    def speedup(self) -> float:
        """Eager over compiled with all threads; above one fusec is faster."""
        return self.eager.seconds / self.best.seconds

    @property
    def kernels(self) -> int:
        return len(self.traffic)

    @property
    def fused(self) -> bool:
        """Some kernel or native loop does the work of several operations."""
        return 0 < self.kernels + self.native_loops < self.operations - len(self.externs)

    @property
    def total_compile_ms(self) -> float:
        return sum(self.compile_ms.values())

    @property
    def break_even_calls(self) -> float:
        """Calls after which compiling has paid; infinity when it never does."""
        saved = self.eager.seconds - self.best.seconds
        return self.total_compile_ms / 1e3 / saved if saved > 0 else float("inf")

    @property
    def bytes_moved(self) -> int:
        return sum(kernel.nbytes for kernel in self.traffic)

    @property
    def gb_per_s(self) -> float:
        return self.bytes_moved / self.best.seconds / 1e9

    @property
    def limit_share(self) -> float:
        """The time that streaming the same bytes takes, as a share of the compiled time."""
        return self.limit_seconds.get(self.threads, 0.0) / self.best.seconds

    @property
    def distinguishable(self) -> bool:
        """Whether the two confidence intervals are apart."""
        return self.best.high < self.eager.low or self.eager.high < self.best.low

    @property
    def verdict(self) -> str:
        """One sentence: who is faster, and when it is NumPy, why."""
        if not self.equality.equal:
            return f"The results differ, so the times mean nothing: {self.equality.reason}."
        if not self.distinguishable:
            return f"No measurable difference: {self.eager} eager, {self.best} compiled."
        if self.speedup >= 1.0:
            return (f"fusec is {digits(self.speedup)}x as fast as NumPy: "
                    f"{duration(self.eager.seconds)} -> {duration(self.best.seconds)}.")
        return f"NumPy is {digits(1.0 / self.speedup)}x as fast as fusec here{self._because()}."

    def _because(self) -> str:
        reason = self.why_not_faster()
        return f": {reason}" if reason else ""

    def why_not_faster(self) -> str:
        """The likeliest cause, with the figures it rests on."""
        if self.held_up:
            return "; ".join(self.held_up)
        limit = self.limit_seconds.get(self.threads, 0.0)
        if self.externs and self.limit_share < LIBRARY_SHARE:
            return self._why_library_calls_are_not()
        if not self.operations:
            return "the result is a constant, and each call gives a copy of its own"
        if self.best.seconds < SMALL_SECONDS:
            return (f"too small: {duration(limit)} of data traffic in a compiled call of "
                    f"{duration(self.best.seconds)}, the rest is arithmetic and dispatch; NumPy "
                    f"needs {duration(self.eager.seconds)}")
        if self.operations <= 1:
            return "there is one operation, so nothing to fuse"
        if self.limit_share > NEAR_LIMIT:
            return (f"memory-bound: the kernels already run at {100 * self.limit_share:.0f} % of "
                    f"what this machine can stream")
        if self.products_in_loops:
            return (f"{plural(self.products_in_loops, 'product')} of matrices in a native loop: it "
                    "adds them up itself, in an order that does not depend on the machine, where "
                    "NumPy calls BLAS; jit what one iteration does, and loop over that in Python")
        return (f"compute-bound: {plural(self.kernels, 'kernel')} at {100 * self.limit_share:.0f} "
                f"% of what this machine can stream; NumPy's own loops do this arithmetic faster")

    def _why_library_calls_are_not(self) -> str:
        if self.best.seconds < SMALL_SECONDS:
            return (f"too small: NumPy needs {duration(self.eager.seconds)}, and a call that runs "
                    f"{plural(len(self.externs), 'library call')} and "
                    f"{plural(self.kernels, 'kernel')} one by one takes some microseconds "
                    "whatever the sizes; give it more elements a call")
        names = ", ".join(sorted(set(self.externs)))
        return (f"library-bound: the time is in {names}; the kernels "
                f"move {count(self.bytes_moved)}B, {100 * self.limit_share:.0f} % of the time")

    def to_dict(self) -> dict[str, Any]:
        """Everything measured and derived, as plain data for JSON."""
        derived = ("threads", "speedup", "kernels", "fused", "total_compile_ms",
                   "break_even_calls", "bytes_moved", "gb_per_s", "limit_share", "verdict")
        data = asdict(self) | {name: getattr(self, name) for name in derived}
        if data["break_even_calls"] == float("inf"):
            data["break_even_calls"] = None
        return data

    def __str__(self) -> str:
        lines = [self.verdict, f"  {self.equality}", f"  eager     {self.eager}"]
        lines += [f"  compiled  {timing}  ({n} thread{'s' if n > 1 else ''})"
                  for n, timing in sorted(self.compiled.items())]
        lines += [self._kept_line(), self._compile_line(), self._memory_line(), self._work_line()]
        lines += [f"  {name:9} {peer_text(peer)}" for name, peer in self.peers.items()]
        lines += [f"  note: {remark}" for remark in self.remarks]
        return "\n".join(lines)

    def html(self) -> str:
        times = {"eager": self.eager} | {
            f"compiled, {plural(n, 'thread')}": t for n, t in sorted(self.compiled.items())}
        times |= {f"{n} ({p.version})": p.timing for n, p in self.peers.items() if p.timing}
        rows = [[name, duration(t.seconds), f"{duration(t.low)} … {duration(t.high)}",
                 f"{digits(self.eager.seconds / t.seconds)}x"] for name, t in times.items()]
        lines = [str(self.equality), self._kept_line(), self._compile_line(), self._memory_line(),
                 self._work_line(), *(f"note: {remark}" for remark in self.remarks)]
        return headline(self.verdict) + table(
            ("", "a call", "95 % interval", "speed-up"), rows, (True, False, False, False)
        ) + preformatted("\n".join(line.strip() for line in lines))

    def _kept_line(self) -> str:
        if self.eager_kept is None or self.compiled_kept is None:
            return "  last 8 results kept alive: not measured, they exceed 2 GiB"
        return (f"  last 8 results kept alive: eager {duration(self.eager_kept.seconds)}, "
                f"compiled {duration(self.compiled_kept.seconds)}")

    def _compile_line(self) -> str:
        split = " + ".join(f"{stage} {digits(ms)}" for stage, ms in self.compile_ms.items())
        calls = self.break_even_calls
        pays = "never pays" if calls == float("inf") else f"pays after {count(calls)} calls"
        return f"  compile   {digits(self.total_compile_ms)} ms ({split}), {pays}"

    def _memory_line(self) -> str:
        return (f"  peak memory: eager {count(self.peak_eager)}B, "
                f"compiled {count(self.peak_compiled)}B")

    def _work_line(self) -> str:
        kinds = ((self.kernels, "kernel"), (self.native_loops, "native loop"),
                 (len(self.externs), "library call"))
        parts = [plural(n, noun) for n, noun in kinds if n] or ["no kernel"]
        work = f"  {plural(self.operations, 'operation')} in {', '.join(parts)}"
        return work if not self.traffic else (
            f"{work}; {count(self.bytes_moved)}B a call, {digits(self.gb_per_s)} GB/s, "
            f"{100 * self.limit_share:.0f} % of the streaming limit")


def plural(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def peer_text(peer: PeerResult) -> str:
    """A peer's cell: its time, or why there is none."""
    return f"{peer.timing} ({peer.version})" if peer.timing else f"- ({peer.note})"
