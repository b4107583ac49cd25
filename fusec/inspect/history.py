"""What was launched: a bounded record of calls, as data and as a table.

Launches that compiled something (misses) are always recorded, since they are rare; repeated ones
(hits) when ``fusec.config.history`` is on, or the log level asks for a line per launch.  Off, a
call costs its caller one attribute test: ``if history.on: history.record_call(...)``.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fusec.records import dataclass

from .. import config
from . import log
from .tables import Column, Tabular

if TYPE_CHECKING:
    from ..compiled_trace import CompiledTrace

# Whether launches that compiled nothing are recorded: the dispatcher reads it before it takes the
# time of one.
on: bool = False


class Launch(NamedTuple):
    """One call of a compiled function.

    ``elements`` is the size of its largest iteration domain, ``ops`` the scalar operations per
    element, ``hit`` False when the call compiled, ``build_ms`` the milliseconds that took,
    ``run_us`` the microseconds of the run, ``nbytes`` what kernels read from and wrote to arrays.
    """

    id: int
    function: str
    elements: int
    ops: int
    hit: bool
    build_ms: float
    run_us: float
    nbytes: int

    @property
    def gbps(self) -> float:
        """Gigabytes (1e9 bytes) per second."""
        return self.nbytes / (1e3 * self.run_us) if self.run_us > 0 else 0.0

    def __str__(self) -> str:
        outcome = "hit" if self.hit else f"miss, built in {self.build_ms:.1f} ms"
        return (f"#{self.id} {self.function}: {self.elements} elements, {self.ops} ops, {outcome}, "
                f"{self.run_us:.1f} us, {self.gbps:.2f} GB/s")


COLUMNS = (
    Column("id", lambda r: str(r.id)),
    Column("function", lambda r: r.function, left=True),
    Column("elements", lambda r: f"{r.elements:,}"),
    Column("ops", lambda r: str(r.ops)),
    Column("cache", lambda r: "hit" if r.hit else "miss", left=True),
    Column("build ms", lambda r: "" if r.hit else f"{r.build_ms:.1f}"),
    Column("run us", lambda r: f"{r.run_us:.1f}"),
    Column("GB/s", lambda r: f"{r.gbps:.2f}"),
)


@dataclass(frozen=True)
class History(Tabular):
    """Launches, oldest first; ``str()`` is a plain table, ``rich.print`` a drawn one."""

    rows: tuple[Launch, ...]
    hits_recorded: bool

    title = "fusec launches"
    empty = "no launch was recorded"

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Launch]:
        return iter(self.rows)

    def as_dicts(self) -> list[dict[str, Any]]:
        """A dict per launch with the fields of `Launch` and ``gbps``."""
        return [{**row._asdict(), "gbps": row.gbps} for row in self.rows]

    def columns(self) -> Sequence[Column]:
        return COLUMNS

    def shown_rows(self) -> Sequence[Launch]:
        return self.rows

    def notes(self) -> list[str]:
        if self.hits_recorded:
            return []
        return ["(only calls that compiled; fusec.config.history = True records every launch)"]


_ids = itertools.count(1)
_launches: deque[Launch] = deque(maxlen=config.history_size)


def record(
    function: str, *, elements: int, ops: int, hit: bool, build_ms: float = 0.0,
    run_us: float = 0.0, nbytes: int = 0,
) -> None:
    """Append a launch; hits are dropped unless they are wanted.  Logged at the launch rung."""
    if hit and not on:
        return
    launch = Launch(next(_ids), function, elements, ops, hit, build_ms, run_us, nbytes)
    _launches.append(launch)
    if log.enabled(log.LAUNCH):
        log.write(log.LAUNCH, str(launch))


def record_call(name: str, trace: CompiledTrace, build_ms: float, run_us: float) -> None:
    """Append a call of a trace, which was made for it where ``build_ms`` is not 0."""
    traffic = trace.build.schedule.traffic
    record(name, elements=max(traffic.points, default=1), ops=traffic.operations,
           hit=build_ms == 0.0, build_ms=build_ms, run_us=run_us, nbytes=sum(traffic.nbytes))


def history() -> History:
    """The recorded launches so far, at most ``fusec.config.history_size`` of them."""
    return History(tuple(_launches), on)


def clear() -> None:
    """Forget every launch and number the next one 1."""
    global _ids
    _launches.clear()
    _ids = itertools.count(1)


def _switch(_: Any) -> None:
    global on
    on = config.history or config.log_level >= log.LAUNCH


def _resize(size: int) -> None:
    global _launches
    _launches = deque(_launches, maxlen=size)


config.on_change("history", _switch, call_now=True)
config.on_change("log_level", _switch)
config.on_change("history_size", _resize)
