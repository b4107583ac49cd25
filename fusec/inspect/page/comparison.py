"""Two pages compared: graphs node by node, kernels by their content, times."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fusec.core.records import dataclass

from .page import read, save

Json = dict[str, Any]
MOST = 400  # nodes that are listed of each kind


def save_comparison(
    before: str | os.PathLike[str], after: str | os.PathLike[str], path: str | os.PathLike[str]
) -> Path:
    """Write the page that compares two pages, the newest trace of each.

    Raises ``ValueError`` for files that are no pages of this format, ``OSError`` for those that
    cannot be read or written.
    """
    names = [Path(os.fspath(each)).stem for each in (before, after)]
    return save(path, compared(read(before), read(after), names))


def compared(before: Json, after: Json, names: Sequence[str]) -> Json:
    """The document of a comparison: the newest traces of both, and what differs."""
    sections: Json = {"head": {**after["head"], "traces": [], "findings": [], "left_out": 0}}
    functions = [side["head"]["function"] for side in (before, after)]
    sections["head"]["function"] = " → ".join(dict.fromkeys(functions))
    sides = []
    for place, (side, name) in enumerate(zip((before, after), names, strict=True)):
        newest = len(side["head"]["traces"]) - 1
        trace = side["head"]["traces"][newest]
        sections["head"]["traces"].append(
            {**trace, "title": f"{'before' if place == 0 else 'after'}: {name}"})
        own = {key.partition("/")[0]: part for key, part in side.items()
               if key.endswith(f"/{newest}")}
        sections |= {f"{key}/{place}": part for key, part in own.items()}
        sides.append(PageSide(name, side["head"], own))
    sections["comparison"] = difference(*sides)
    return sections


@dataclass
class PageSide:
    """One of two pages: its name, and the sections of its newest trace."""

    name: str
    head: Json
    parts: Json

    @property
    def kernels(self) -> list[Json]:
        found: list[Json] = self.parts["kernels"]["kernels"]
        return found

    @property
    def steps(self) -> dict[str, float]:
        """Microseconds of each step that was measured."""
        return dict(self.parts.get("runs", {}).get("steps", ()))

    def loops(self, kernel: Json) -> str:
        """The loops of a kernel without its name, which says nothing of its content."""
        text: str = self.parts[f"code{kernel['text']}"]["parts"][0][1]
        return text.partition("\n")[2]


@dataclass
class Seen:
    """A node of one side: ``key`` is equal for nodes that compute the same of the same inputs."""

    name: str
    node: Json
    kernel: str
    key: int


def nodes_of(side: PageSide) -> list[Seen]:
    """The nodes of a page's last graph, those of kernels in their place; none without operands."""
    part = side.parts["graph"]
    graphs, found = part["graphs"], list[Seen]()
    _walk(graphs, part.get("optimized", part["traced"]), "", None, found)
    return [seen for seen in found if seen.node["i"] and seen.node["o"] != "Fused"]


def _walk(
    graphs: list[Json], number: int, kernel: str, given: list[int] | None, found: list[Seen]
) -> list[int]:
    """Adds the nodes of a graph; the keys of its results.  ``given``: those of its inputs."""
    if number < 0:
        return []
    graph, keys = graphs[number], list[list[int]]()
    inputs = {node: place for place, node in enumerate(graph["inputs"])}
    for place, node in enumerate(graph["nodes"]):
        operands = [keys[source][min(out, len(keys[source]) - 1)] for source, out in node["i"]]
        if place in inputs and given is not None and inputs[place] < len(given):
            keys.append([given[inputs[place]]])
            continue
        own = hash((node["o"], node.get("a"), node["t"], tuple(operands),
                    node["n"] if node["o"] == "Input" else ""))
        inner = [_walk(graphs, g, node["n"] if node["o"] == "Fused" else kernel,
                       operands if node["o"] == "Fused" else None, found)
                 for _, g in node.get("g", ())]
        results = inner[0] if node["o"] == "Fused" and inner and inner[0] else [own]
        keys.append(results)
        found.append(Seen(node["n"], node, kernel, own))
    return [keys[source][min(out, len(keys[source]) - 1)] for source, out in graph["outputs"]]


def difference(before: PageSide, after: PageSide) -> Json:
    """All that differs between two sides."""
    left, right = nodes_of(before), nodes_of(after)
    pairs = matched(left, right)
    taken = {id(seen) for pair in pairs for seen in pair}
    changed = [[a.name, b.name, what] for a, b in pairs if (what := _changes(a, b))]
    return {
        "names": [before.name, after.name],
        "facts": [*_facts(before, after)],
        "same": len(pairs) - len(changed), "changed": changed[:MOST],
        "gone": [[s.name, s.node["t"]] for s in left if id(s) not in taken][:MOST],
        "new": [[s.name, s.node["t"]] for s in right if id(s) not in taken][:MOST],
        "moved": _moved(pairs)[:MOST],
        "kernels": kernels(before, after, pairs),
        "others": others(before, after, pairs),
        "boundaries": [_only(before, after), _only(after, before)],
        "stages": [[stage, *(side.parts.get("runs", {}).get("times", {}).get(stage)
                             for side in (before, after))] for stage in _stages(before, after)],
    }


def matched(left: Sequence[Seen], right: Sequence[Seen]) -> list[tuple[Seen, Seen]]:
    """Nodes in pairs: those of equal content first, then those of equal name and op."""
    pairs: list[tuple[Seen, Seen]] = []
    rest = list(left), list(right)
    for key in (lambda s: (s.key, s.name), lambda s: s.key, lambda s: (s.name, s.node["o"])):
        table: defaultdict[Any, list[Seen]] = defaultdict(list)
        for seen in reversed(rest[1]):
            table[key(seen)].append(seen)
        for seen in rest[0]:
            if table[key(seen)]:
                pairs.append((seen, table[key(seen)].pop()))
        taken = {id(seen) for pair in pairs for seen in pair}
        rest = _without(rest[0], taken), _without(rest[1], taken)
    return pairs


def _without(side: Sequence[Seen], taken: set[int]) -> list[Seen]:
    return [seen for seen in side if id(seen) not in taken]


def _changes(a: Seen, b: Seen) -> str:
    """How two nodes of one name differ; empty where they are equal."""
    if a.key == b.key:
        return ""
    fields = [f"{title} {a.node.get(key, '')} → {b.node.get(key, '')}"
              for title, key in (("type", "t"), ("attributes", "a"), ("device", "d"))
              if a.node.get(key) != b.node.get(key)]
    return ", ".join(fields) or "it reads other values"


def _moved(pairs: Sequence[tuple[Seen, Seen]]) -> list[list[str]]:
    """Nodes that left a kernel, or came into one."""
    return [[b.name, a.kernel, b.kernel] for a, b in pairs if bool(a.kernel) != bool(b.kernel)]


def kernels(
    before: PageSide, after: PageSide, pairs: Sequence[tuple[Seen, Seen]]
) -> list[list[Any]]:
    """Rows of kernels: number before and after (or None), how they differ, microseconds."""
    together: defaultdict[tuple[str, str], int] = defaultdict(int)
    for seen, other in pairs:
        together[seen.kernel, other.kernel] += 1
    places = [{k["name"]: n for n, k in enumerate(side.kernels)} for side in (before, after)]
    found: dict[int, int] = {}
    for (a, b), _ in sorted(together.items(), key=lambda item: (-item[1], item[0])):
        if a in places[0] and b in places[1]:
            old, new = places[0][a], places[1][b]
            if old not in found and new not in found.values():
                found[old] = new
    rows: list[list[Any]] = [
        [old, found.get(old), _how(before, after, old, found.get(old))]
        for old in range(len(before.kernels))]
    rows += [[None, new, "only after"] for new in range(len(after.kernels))
             if new not in found.values()]
    return [[old, new, how, _us(before, old), _us(after, new)] for old, new, how in rows]


def others(
    before: PageSide, after: PageSide, pairs: Sequence[tuple[Seen, Seen]]
) -> list[list[Any]]:
    """Rows of library calls, branches and loops: node and name before and after (or None), and
    microseconds."""
    sides = [{step["node"]: step["name"] for kind in ("externs", "control")
              for step in side.parts["kernels"][kind]} for side in (before, after)]
    now_of = {a.name: b.name for a, b in pairs if a.name in sides[0] and b.name in sides[1]}
    rows = [(node, now_of.get(node)) for node in sides[0]]
    rows += [(None, node) for node in sides[1] if node not in now_of.values()]
    return [[_step(sides[0], old), _step(sides[1], new), _time(before, old), _time(after, new)]
            for old, new in rows]


def _step(names: Json, node: str | None) -> list[str] | None:
    return None if node is None else [node, names[node]]


def _time(side: PageSide, node: str | None) -> float | None:
    return None if node is None else side.steps.get(node)


def _how(before: PageSide, after: PageSide, old: int, new: int | None) -> str:
    if new is None:
        return "only before"
    a, b = before.kernels[old], after.kernels[new]
    if before.loops(a) == after.loops(b):
        return "the same loops"
    gained, lost = (sorted(set(x["nodes"]) - set(y["nodes"])) for x, y in ((b, a), (a, b)))
    words = [f"{word} {_few(names)}" for word, names in (("also", gained), ("without", lost))
             if names]
    return ", ".join(words) or "other sizes or constants" if _shape(before.loops(a)) == _shape(
        after.loops(b)) else ", ".join(words) or "other loops"


def _shape(loops: str) -> str:
    return re.sub(r"\d+", "0", loops)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _us(side: PageSide, number: int | None) -> float | None:
    return None if number is None else side.steps.get(side.kernels[number]["name"])


def _only(side: PageSide, other: PageSide) -> list[str]:
    """Reasons why kernels are apart that the other side has not."""
    def reasons(of: PageSide) -> list[str]:
        return [text for kernel in of.kernels for text in kernel["boundaries"]]

    known = set(reasons(other))
    return [text for text in reasons(side) if text not in known]


def _facts(before: PageSide, after: PageSide) -> Iterator[list[Any]]:
    """Facts of both sides, whether they differ or not."""
    sides = before, after
    machines = [side.head["machine"] for side in sides]
    yield ["function", *(side.head["function"] for side in sides)]
    yield ["signature", *(side.head["traces"][-1]["signature"] for side in sides)]
    yield ["versions", *(m["versions"] for m in machines)]
    yield ["machine", *(f"{m['cpu']}, {m['threads']} threads" for m in machines)]
    yield ["kernels", *(len(side.kernels) for side in sides)]
    yield ["library calls", *(len(side.parts["kernels"]["externs"]) for side in sides)]
    yield ["a call", *(side.parts.get("runs", {}).get("call_us") for side in sides)]


def _stages(before: PageSide, after: PageSide) -> list[str]:
    return [*dict.fromkeys(stage for side in (before, after)
                           for stage in side.parts.get("runs", {}).get("times", {}))]
