"""A recording as a picture: a row for each thread of each device, spans within spans below them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fusec.core.display.notebook import escape
from fusec.core.records import dataclass

Event = dict[str, Any]
_WIDTH, _BAR, _GAP, _TOP = 760, 18, 14, 34
_LONGEST_TITLE = 48  # letters
_COLOURS = {  # of kinds: warm where devices compute, grey where somebody waits
    "call": "#d9e2ec", "trace": "#9fb3c8", "passes": "#829ab1", "codegen": "#627d98",
    "compile": "#486581", "imports": "#bcccdc", "task": "#fce3c5", "kernel": "#f59e42",
    "library": "#e8693a", "control": "#d1495b", "copy": "#6fb98f", "wait": "#eeeeee",
}
_DARK = ("codegen", "compile", "passes", "library", "control")
_STYLE = ("text{font:11px sans-serif;fill:#243b53} .light{fill:#fff} .axis{stroke:#bcccdc}"
          " .flow{stroke:#2f855a;fill:none;stroke-width:1.3;marker-end:url(#tip)}")
_TIP = ('<defs><marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" '
        'markerHeight="6" orient="auto"><path d="M0 0L6 3L0 6z" fill="#2f855a"/></marker></defs>')
_PIXELS_A_LETTER = 6.2  # a little more than what DejaVu Sans, a wide font, takes on average
_LEAST_WIDTH = 0.4  # pixels; what is narrower and lies beside another is left out


@dataclass
class _Row:
    """Where a thread is drawn; ``ends`` are those of the spans around the present one."""

    title: str
    spans: list[tuple[Event, int]]  # and how many it lies within
    top: float = 0.0

    @property
    def height(self) -> float:
        return _BAR * (1 + max(depth for _, depth in self.spans))


def drawn(events: list[Event]) -> str:
    """The picture as SVG text; ``events`` are those of the file for viewers."""
    rows, bottom = _rows(events), float(_TOP)
    for row in rows.values():
        row.top = bottom
        bottom += row.height + _GAP
    spans = [span for row in rows.values() for span, _ in row.spans]
    start = min((span["ts"] for span in spans), default=0.0)
    end = max((span["ts"] + span["dur"] for span in spans), default=1.0)
    scale = _Scale(_left(rows.values()), start, max(end - start, 1e-3))
    parts = [*_axis(scale, bottom), *_legend({span["cat"] for span in spans}, scale.left)]
    for row in rows.values():
        parts += _bars(row, scale)
    parts += _arrows(events, rows, scale)
    width, height = scale.left + _WIDTH + 20, bottom + 24
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}"><style>{_STYLE}</style>'
            f'{_TIP}<rect width="100%" height="100%" fill="#fff"/>\n'
            + "\n".join(parts) + "\n</svg>\n")


def _left(rows: Iterable[_Row]) -> float:
    """Where the bars begin: right of the titles."""
    longest = max((len(row.title) for row in rows), default=0)
    return 24 + _PIXELS_A_LETTER * longest


@dataclass(frozen=True)
class _Scale:
    """Microseconds to pixels."""

    left: float
    start: float
    length: float

    def __call__(self, us: float) -> float:
        return self.left + _WIDTH * (us - self.start) / self.length


def _rows(events: list[Event]) -> dict[tuple[int, int], _Row]:
    """The rows that have spans, in the order of devices and threads."""
    titles = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events
               if e["name"] == "thread_name"}
    spans: dict[tuple[int, int], list[Event]] = {}
    for event in events:
        if event["ph"] == "X":
            spans.setdefault((event["pid"], event["tid"]), []).append(event)
    return {key: _Row(_title(titles[key[0]], threads[key]), _nested(spans[key]))
            for key in sorted(spans)}


def _title(device: str, thread: str) -> str:
    """The device, and the thread where that is not the device's own."""
    name = thread.partition(" (")[0]
    if name == device.replace("/device:", "fusec-"):
        return device
    title = "".join(letter if letter.isprintable() else "?" for letter in f"{device} · {name}")
    return title if len(title) <= _LONGEST_TITLE else f"{title[:_LONGEST_TITLE - 1]}…"


def _nested(spans: list[Event]) -> list[tuple[Event, int]]:
    """Spans from left to right, each with the number of those that it lies within."""
    ends: list[float] = []
    result = []
    for span in sorted(spans, key=lambda e: (e["ts"], -e["dur"])):
        while ends and ends[-1] <= span["ts"] + 1e-3:
            ends.pop()
        result.append((span, len(ends)))
        ends.append(span["ts"] + span["dur"])
    return result


def _bars(row: _Row, scale: _Scale) -> Iterator[str]:
    yield (f'<text x="{scale.left - 8:g}" y="{row.top + 13:g}" text-anchor="end">'
           f"{escape(row.title)}</text>")
    drawn_to: dict[int, float] = {}
    for span, depth in row.spans:
        left, right = scale(span["ts"]), scale(span["ts"] + span["dur"])
        if right < drawn_to.get(depth, 0.0) + _LEAST_WIDTH:
            continue
        drawn_to[depth] = right = max(right, left + _LEAST_WIDTH)
        yield from _bar(span, left, right - left, row.top + depth * _BAR)


def _bar(span: Event, left: float, width: float, top: float) -> Iterator[str]:
    kind, line = span["cat"], span["args"].get("line", "")
    told = f"{span['name']} ({kind}): {span['dur'] / 1e3:.3f} ms {line}".rstrip()
    yield (f'<rect x="{left:.2f}" y="{top:g}" width="{width:.2f}" height="{_BAR - 2}" rx="2" '
           f'fill="{_COLOURS.get(kind, "#cccccc")}"><title>{escape(told)}</title></rect>')
    if width > _PIXELS_A_LETTER * len(span["name"]) + 6:
        light = ' class="light"' if kind in _DARK else ""
        yield f'<text x="{left + 4:.2f}" y="{top + 12:g}"{light}>{escape(span["name"])}</text>'


def _arrows(
    events: list[Event], rows: dict[tuple[int, int], _Row], scale: _Scale
) -> Iterator[str]:
    """From the bottom of the row that sends to the top of the one that receives, or up."""
    begun = {e["id"]: e for e in events if e["ph"] == "s"}
    for event in events:
        start = begun.get(event.get("id")) if event["ph"] == "f" else None
        if start is None:
            continue
        source, target = rows[start["pid"], start["tid"]], rows[event["pid"], event["tid"]]
        down = source.top < target.top
        y1 = source.top + (source.height if down else 0)
        y2 = target.top + (0 if down else target.height)
        x1, x2 = scale(start["ts"]), scale(event["ts"])
        yield (f'<path class="flow" d="M{x1:.2f} {y1:g}C{x1:.2f} {(y1 + y2) / 2:g} {x2:.2f} '
               f'{(y1 + y2) / 2:g} {x2:.2f} {y2:g}"/>')


def _axis(scale: _Scale, bottom: float) -> Iterator[str]:
    step = _round_step(scale.length / 6)
    for number in range(int(scale.length / step) + 1):
        x = scale(scale.start + number * step)
        yield f'<line class="axis" x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{bottom:g}"/>'
        yield (f'<text x="{x:.1f}" y="{bottom + 14:g}" text-anchor="middle">'
               f"{number * step / 1e3:g} ms</text>")


def _round_step(us: float) -> float:
    """1, 2 or 5 times a power of ten, at least so much."""
    power = 1e-3
    while True:
        for factor in (1, 2, 5):
            if factor * power >= us:
                return factor * power
        power *= 10


def _legend(kinds: set[str], x: float) -> Iterator[str]:
    for kind, colour in _COLOURS.items():
        if kind in kinds:
            yield f'<rect x="{x:g}" y="8" width="11" height="11" rx="2" fill="{colour}"/>'
            yield f'<text x="{x + 15:g}" y="17">{kind}</text>'
            x += 28 + _PIXELS_A_LETTER * len(kind)
