"""A recording as events of Chrome's trace-event format: a process for each device, its threads."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator
from typing import Any

from fusec.core import timeline

from ..ir.device_names import DeviceName

_PROGRAM = "program and compiler"
Json = dict[str, Any]
_Raw = tuple[str, str, str, int, int, str, Any, Any]  # see `timeline.FIELDS`


class TimelineRows:
    """The events of a recording, each with the number of its device and of its thread.

    Viewers bind the end of an arrow to the span around it in the same row.  A value may be handed
    over by the thread that sends it, so the ends are put to the spans of their device: the last
    one that had begun when the value was sent, the first that ended after it was received.
    """

    def __init__(self, recording: timeline.Recording) -> None:
        self._start = recording.start
        self._threads = [(name, ident, entries[:]) for name, ident, entries in recording.threads]
        self.lost = any(len(entries) >= timeline.MOST for *_, entries in self._threads)
        self._devices: dict[str, int] = {}
        self._flows: dict[Any, int] = {}
        self._spans: dict[str, list[tuple[int, int, int]]] = {}  # (start, end, thread) by device

    def events(self) -> Iterator[Json]:
        """The events of the file: names of rows first."""
        raw = [(thread, event) for thread, (*_, entries) in enumerate(self._threads, 1)
               for event in _events(entries)]
        for thread, event in raw:
            if event[0] == "X":
                self._spans.setdefault(event[1], []).append((event[3], event[4], thread))
        for spans in self._spans.values():
            spans.sort()
        yield from self._names({(event[1], thread) for thread, event in raw})
        for thread, event in raw:
            made = self._made(thread, event)
            if made is not None:
                yield made

    def _names(self, rows: set[tuple[str, int]]) -> Iterator[Json]:
        for order, device in enumerate(sorted({device for device, _ in rows}, key=_order)):
            number = self._devices[device] = order + 1
            yield {"ph": "M", "name": "process_name", "pid": number, "tid": 0,
                   "args": {"name": _title(device)}}
            yield {"ph": "M", "name": "process_sort_index", "pid": number, "tid": 0,
                   "args": {"sort_index": order}}
        for device, thread in sorted(rows):
            name, ident, _ = self._threads[thread - 1]
            yield {"ph": "M", "name": "thread_name", "pid": self._devices[device], "tid": thread,
                   "args": {"name": f"{name} ({ident})"}}

    def _made(self, thread: int, event: _Raw) -> Json | None:
        phase, device, name, start, end, kind, loc, args = event
        common = {"ph": phase, "name": name, "pid": self._devices[device], "tid": thread,
                  "ts": self._us(start)}
        if phase == "X":
            shown = {**({} if loc is None else {"line": str(loc)}), **(args or {})}
            return {**common, "cat": kind, "dur": max(0, end - start) / 1e3,
                    "args": {key: _plain(value) for key, value in shown.items()}}
        if phase == "C":
            return {**common, "args": {name: _plain(args)}}
        return self._flow(common, device, start, args)

    def _flow(self, common: Json, device: str, at: int, key: Any) -> Json | None:
        span = self._sending(device, at) if common["ph"] == "s" else self._receiving(device, at)
        if span is None:
            return None
        start, end, thread = span
        ends = {"bp": "e"} if common["ph"] == "f" else {}
        return {**common, **ends, "cat": "transfer", "tid": thread,
                "ts": self._us(min(max(at, start), end)),
                "id": self._flows.setdefault(key, len(self._flows) + 1)}

    def _sending(self, device: str, at: int) -> tuple[int, int, int] | None:
        spans = self._spans.get(device, [])
        number = bisect.bisect_right(spans, (at, math.inf, 0))
        return spans[number - 1] if number else None

    def _receiving(self, device: str, at: int) -> tuple[int, int, int] | None:
        spans = self._spans.get(device, [])
        around = self._sending(device, at)
        if around is not None and around[1] >= at:
            return around
        number = bisect.bisect_right(spans, (at, math.inf, 0))
        return spans[number] if number < len(spans) else None

    def _us(self, ns: int) -> float:
        return (ns - self._start) / 1e3


def _events(entries: list[Any]) -> Iterator[_Raw]:
    """The events of one thread; a list that was read while it grew has whole ones."""
    yield from zip(*(entries[field::timeline.FIELDS] for field in range(timeline.FIELDS)),
                   strict=True)


def _order(device: str) -> tuple[bool, str, int]:
    """The program first, then devices by type and number."""
    if not device:
        return False, "", 0
    name = DeviceName.parse(device)
    return True, name.type or "", name.index or 0


def _title(device: str) -> str:
    return f"/device:{DeviceName.parse(device).short}" if device else _PROGRAM


def _plain(value: Any) -> Any:
    """As JSON has it, which knows no infinity."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
