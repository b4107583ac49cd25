"""The launches: a bounded record of calls, as data and as a table.

Launches that compiled something (misses) are always recorded, since they are rare; repeated ones
(hits) when ``fusec.config.history`` is on, or the log level asks for a line per launch.  Off, a
call costs its caller one attribute test: ``if history.on: history.record_call(...)``.  A profile
needs to see calls, too, so that is on while one is taken.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fusec import config
from fusec.core import device_rates, log, timeline
from fusec.core.display.tables import Column, Tabular
from fusec.core.records import dataclass

if TYPE_CHECKING:
    from ..compiled_trace import CompiledTrace

# Whether somebody wants to know of calls that compile nothing: callers read it before they take
# the time of one.
on: bool = False
_keeps_hits = False


class LaunchRecord(NamedTuple):
    """One call of a compiled function.

    ``elements`` is the size of its largest iteration domain, ``ops`` the scalar operations per
    element, ``hit`` False when the call compiled, ``build_ms`` the milliseconds that took,
    ``run_us`` the microseconds of the run, ``nbytes`` the bytes that kernels read and wrote,
    ``work`` their scalar operations in all (a mathematical function counts as one), both as far as
    sizes are known before the run; ``has_calls``: libraries, loops or branches did some of it.
    """

    id: int
    function: str
    elements: int
    ops: int
    hit: bool
    build_ms: float
    run_us: float
    nbytes: int
    work: int = 0
    device: str = ""
    has_calls: bool = False

    @property
    def gbps(self) -> float:
        """Gigabytes (1e9 bytes) per second."""
        return self.nbytes / (1e3 * self.run_us) if self.run_us > 0 else 0.0

    @property
    def gflops(self) -> float:
        """Scalar operations of kernels, 1e9 per second."""
        return self.work / (1e3 * self.run_us) if self.run_us > 0 else 0.0

    @property
    def limit_percent(self) -> float | None:
        """How much of the time the device needs at least, for these bytes or for these operations,
        at the rates that were measured of it (`fusec.devices`); above 100 where arrays lie in a
        cache.  None where that is not known."""
        asked = device_rates.rates_of
        rates = None if asked is None or self.has_calls else asked(self.device)
        if rates is None or not self.nbytes or self.run_us <= 0:
            return None
        least_ns = max(self.nbytes / rates.bytes_per_ns, self.work / rates.flops_per_ns)
        return least_ns / (10 * self.run_us)

    def __str__(self) -> str:
        outcome = "hit" if self.hit else f"miss, built in {self.build_ms:.1f} ms"
        rate = f", {self.gbps:.2f} GB/s" if self.nbytes else ""
        return (f"#{self.id} {self.function}: {self.elements} elements, {self.ops} ops, {outcome}, "
                f"{self.run_us:.1f} us{rate}")


COLUMNS = (
    Column("id", lambda r: str(r.id)),
    Column("function", lambda r: r.function, left=True),
    Column("elements", lambda r: f"{r.elements:,}"),
    Column("ops", lambda r: str(r.ops)),
    Column("cache", lambda r: "hit" if r.hit else "miss", left=True),
    Column("build ms", lambda r: "" if r.hit else f"{r.build_ms:.1f}"),
    Column("run us", lambda r: f"{r.run_us:.1f}"),
    Column("GB/s", lambda r: f"{r.gbps:.2f}" if r.nbytes else ""),
)
# Those that are shown where they say something.
MORE = (
    Column("GFLOP/s", lambda r: f"{r.gflops:.2f}" if r.work else ""),
    Column("% of limit", lambda r: "" if r.limit_percent is None else f"{r.limit_percent:.0f}"),
)
DEVICE = Column("device", lambda r: r.device, left=True)  # where not all is done by the first CPU


@dataclass(frozen=True)
class History(Tabular):
    """Launches, oldest first; ``str()`` is a plain table, ``rich.print`` a drawn one."""

    rows: tuple[LaunchRecord, ...]
    hits_recorded: bool

    title = "fusec launches"
    empty = "no launch was recorded"

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[LaunchRecord]:
        return iter(self.rows)

    def as_dicts(self) -> list[dict[str, Any]]:
        """A dict per launch with the fields of `LaunchRecord`, ``gbps``, ``gflops`` and
        ``limit_percent``."""
        return [{**row._asdict(), "gbps": row.gbps, "gflops": row.gflops,
                 "limit_percent": row.limit_percent} for row in self.rows]

    def columns(self) -> Sequence[Column]:
        shown = [column for column in MORE if any(map(column.show, self.rows))]
        elsewhere = any(row.device not in ("", "CPU:0") for row in self.rows)
        return [*COLUMNS, *shown, *([DEVICE] if elsewhere else [])]

    def shown_rows(self) -> Sequence[LaunchRecord]:
        return self.rows

    def notes(self) -> list[str]:
        if self.hits_recorded:
            return []
        return ["(only calls that compiled; fusec.config.history = True records every launch)"]


_ids = itertools.count(1)
_launches: deque[LaunchRecord] = deque(maxlen=config.history_size)


def record(
    function: str, *, elements: int, ops: int, hit: bool, build_ms: float = 0.0,
    run_us: float = 0.0, nbytes: int = 0, work: int = 0, device: str = "", has_calls: bool = False,
) -> None:
    """Append a launch; hits are dropped unless they are wanted.  Logged at the launch rung."""
    if hit and not _keeps_hits:
        return
    launch = LaunchRecord(next(_ids), function, elements, ops, hit, build_ms, run_us, nbytes, work,
                          device, has_calls)
    _launches.append(launch)
    if log.enabled(log.LAUNCH):
        log.write(log.LAUNCH, str(launch))


def record_call(name: str, trace: CompiledTrace, build_ms: float, run_us: float) -> None:
    """Append a call of a trace, which was made for it where ``build_ms`` is not 0."""
    call_plan = trace.build.call_plan
    traffic = call_plan.traffic
    record(name, elements=max(traffic.points, default=1), ops=traffic.operations,
           hit=build_ms == 0.0, build_ms=build_ms, run_us=run_us, nbytes=sum(traffic.nbytes),
           work=sum(traffic.work), has_calls=bool(call_plan.externs),
           device=trace.devices or timeline.device_here().rpartition("device:")[2])


def history() -> History:
    """The recorded launches so far, at most ``fusec.config.history_size`` of them."""
    return History(tuple(_launches), _keeps_hits)


def clear() -> None:
    """Forget every launch and number the next one 1."""
    global _ids
    _launches.clear()
    _ids = itertools.count(1)


def watch() -> None:
    """See whether calls are to be watched: to be called when a profile begins or ends."""
    global on, _keeps_hits
    _keeps_hits = config.history or config.log_level >= log.LAUNCH
    on = _keeps_hits or timeline.on


def _switch(_: Any) -> None:
    watch()


def _resize(size: int) -> None:
    global _launches
    _launches = deque(_launches, maxlen=size)


config.on_change("history", _switch, call_now=True)
config.on_change("log_level", _switch)
config.on_change("history_size", _resize)
