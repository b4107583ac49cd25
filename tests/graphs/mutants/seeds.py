"""Small graphs for each op: those of the samples of every row, and by hand those of ops that read
or write where data says."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from fusec.ir import Graph
from fusec.ir.text.json_form import graph_from_json
from fusec.ir.text.parse import parse_graph
from fusec.ops import all_ops

HERE = Path(__file__).resolve().parent
LOCAL = ("HostCall", "ScalarCall")  # they call objects of the program

_COMPRESS = ('%c = Compress(%m, %x) {form=("tuple", ("operand", 0), ("operand", 1)), '
             'named=("tuple",), results=(type(f64[n]),)} : f64[n]')
_LOOP = """graph f(x: f64[10], y: i64[4], k: i64~, l: i64) {
  %zero = Const {value=0} : i64~
  %loop = Loop(%zero, %x, %y, %k, %l) {carried=2, test=graph t(p: i64~, x: f64[10], y: i64[4],
                                                            k: i64~, l: i64) {
    %most = Const {value=3} : i64~
    %t = Less(%p, %most) : bool~
    return %t
  }, body=graph b(p: i64~, x: f64[10], y: i64[4], k: i64~, l: i64) {
    %one = Const {value=1} : i64~
    %next = Add(%p, %one) : i64~
    BODY
    return %next
    update x = %new
  }} : (i64~, f64[10])
  return %loop:0, %loop:1
}"""
TEXTS: dict[str, tuple[str, ...]] = {
    "CheckIndex": ("""graph f(x: f64[10], i: i64[4], n: i64) {
  %l = Const {value=i64(10)} : i64
  %k = CheckIndex(%i, %l) {axis=0} : i64[4]
  %g = Gather(%x, %k) {axes=(0,), at=0} : f64[4]
  return %g
}""", """graph f(x: f64[10], m: bool[10], i: i64[4], n: i64) {
  COMPRESS
  %l = Size(%c) {size=size("n")} : i64~
  %k = CheckIndex(%i, %l) {axis=0} : i64[4]
  %g = Gather(%c, %k) {axes=(0,), at=0} : f64[4]
  %s = Sum(%g) {axes=(0,)} : f64
  return %s, %g
}""", _LOOP.replace("BODY", """%ten = Const {value=i64(10)} : i64
    %j = CheckIndex(%k, %ten) {axis=0} : i64
    %g = Gather(%x, %j) {axes=(0,), at=0, kind="scalar"} : f64
    %new = Add(%x, %g) : f64[10]""")),
    "BoundsCheck": ("""graph f(x: f64[10], i: i64[4], n: i64) {
  %l = Const {value=i64(10)} : i64
  %k = BoundsCheck(%i, %l) {axis=0} : bool
  return %x
}""", _LOOP.replace("BODY", """%b = BoundsCheck(%y, %l) {axis=0} : bool
    %new = Neg(%x) : f64[10]""")),
    "Gather": ("""graph f(x: f64[4,5], i: i64[3], j: i64[2,3]) {
  %r = Const {value=i64(4)} : i64
  %c = Const {value=i64(5)} : i64
  %k = CheckIndex(%i, %r) {axis=0} : i64[3]
  %l = CheckIndex(%j, %c) {axis=1} : i64[2,3]
  %g = Gather(%x, %k, %l) {axes=(0, 1), at=0} : f64[2,3]
  %h = Gather(%x, %l) {axes=(1,), at=1} : f64[4,2,3]
  %z = Add(%h, %g) : f64[4,2,3]
  return %z
}""", """graph f(x: f64[4,5], i: i64[3]) {
  %n = Iota {size=4, dtype=i64} : i64[4]
  %s = Slice(%n) {starts=(1,), steps=(1,), sizes=(3,)} : i64[3]
  %g = Gather(%x, %s) {axes=(0,), at=0} : f64[3,5]
  %t = Sum(%g) {axes=(1,)} : f64[3]
  return %t, %i
}""", """graph f(x: f64[10], m: bool[10], q: i64[2,3]) {
  COMPRESS
  %s = Sum(%q) {axes=(1,)} : i64[2]
  %g = Gather(%c, %s) {axes=(0,), at=0} : f64[2]
  return %g
}"""),
    "Scatter": ("""graph f(x: f64[4,5], i: i64[3], v: f64[3,5]) {
  %r = Const {value=i64(4)} : i64
  %k = CheckIndex(%i, %r) {axis=0} : i64[3]
  %g = Scatter(%x, %v, %k) {axes=(0,), at=0} : f64[4,5]
  return %k
  update x = %g
}""", """graph f(x: f64[10], i: i64[4], v: f64[4]) {
  %r = Const {value=i64(10)} : i64
  %k = CheckIndex(%i, %r) {axis=0} : i64[4]
  %g = Scatter(%x, %v, %k) {axes=(0,), at=0, combine="Add"} : f64[10]
  return %g
}""", """graph f(x: f64[10], m: bool[10], i: i64[4], v: f64[4]) {
  COMPRESS
  %g = Scatter(%c, %v, %i) {axes=(0,), at=0} : f64[n]
  return %g
}"""),
    "Pick": ("""graph f(x: f64[4,5], i: i64, j: i64) {
  %p = Pick(%x, %i) {axes=(0,)} : f64[5]
  %q = Pick(%x, %i, %j) {axes=(0, 1), kind="scalar"} : f64
  %z = Add(%p, %q) : f64[5]
  return %z
}""", _LOOP.replace("BODY", """%g = Pick(%x, %k) {axes=(0,), kind="scalar"} : f64
    %new = Add(%x, %g) : f64[10]"""), """graph f(x: f64[10], m: bool[10], i: i64) {
  COMPRESS
  %p = Pick(%c, %i) {axes=(0,), kind="scalar"} : f64
  return %p
}"""),
    "PickUpdate": ("""graph f(x: f64[4,5], i: i64, v: f64[5]) {
  %p = PickUpdate(%x, %v, %i) {axes=(0,)} : f64[4,5]
  return
  update x = %p
}""", _LOOP.replace("BODY", """%v = Const {value=f64(5.0)} : f64
    %w = Reshape(%v) {shape=()} : f64[]
    %new = PickUpdate(%x, %w, %k) {axes=(0,)} : f64[10]""")),
    "Extent": ("""graph f(x: f64[10], k: i64~, l: i64~) {
  %e = Extent(%k, %l) {given=(True, True), step=2, limit=10, length="n"} : (i64~, bool[n])
  %s = Size(%e:1) {size=size("n")} : i64~
  %w = Window(%x, %e, %s) {axes=(0,), steps=(2,), sizes=(size("n"),)} : f64[n]
  %z = Add(%w, %w) : f64[n]
  return %z
}""",),
    "Window": ("""graph f(x: f64[4,10], k: i64~) {
  %zero = Const {value=0} : i64~
  %e = Extent(%k) {given=(False, True), step=1, limit=10, length="n"} : (i64~, bool[n])
  %s = Size(%e:1) {size=size("n")} : i64~
  %w = Window(%x, %zero, %s) {axes=(1,), steps=(1,), sizes=(size("n"),)} : f64[4,n]
  %z = Sum(%w) {axes=(1,)} : f64[4]
  return %z
}""", """graph f(x: f64[10], k: i64~) {
  %c = Const {value=3} : i64~
  %w = Window(%x, %k, %c) {axes=(0,), steps=(2,), sizes=(3,)} : f64[3]
  return %w
}""", _LOOP.replace("BODY", """%e = Extent(%k) {given=(True, False), step=1, limit=10,
                                                  length="n"} : (i64~, bool[n])
    %s = Size(%e:1) {size=size("n")} : i64~
    %w = Window(%x, %e, %s) {axes=(0,), steps=(1,), sizes=(size("n"),)} : f64[n]
    %t = Sum(%w) {axes=(0,)} : f64
    %new = Add(%x, %t) : f64[10]""")),
    "WindowUpdate": ("""graph f(x: f64[10], k: i64~, v: f64[3]) {
  %c = Const {value=3} : i64~
  %w = WindowUpdate(%x, %v, %k, %c) {axes=(0,), steps=(2,), sizes=(3,)} : f64[10]
  return
  update x = %w
}""", _LOOP.replace("BODY", """%e = Extent(%k) {given=(True, False), step=1, limit=10,
                                                  length="n"} : (i64~, bool[n])
    %s = Size(%e:1) {size=size("n")} : i64~
    %w = Window(%x, %e, %s) {axes=(0,), steps=(1,), sizes=(size("n"),)} : f64[n]
    %t = Neg(%w) : f64[n]
    %new = WindowUpdate(%x, %t, %e, %s) {axes=(0,), steps=(1,), sizes=(size("n"),)} : f64[10]""")),
    "Reserve": (_LOOP.replace("BODY", """%e = Extent(%k) {given=(False, True), step=1, limit=10,
                                                     length="n"} : (i64~, bool[n])
    %s = Size(%e:1) {size=size("n")} : i64~
    %w = Window(%x, %e, %s) {axes=(0,), steps=(1,), sizes=(size("n"),)} : f64[n]
    %o = Exp(%w) : f64[n]
    %r = Reserve(%o) {shape=(10,)} : f64[10]
    %v = Window(%r, %e, %s) {axes=(0,), steps=(1,), sizes=(size("n"),)} : f64[n]
    %t = Sum(%v) {axes=(0,)} : f64
    %new = Add(%x, %t) : f64[10]"""),),
    "Slice": ("""graph f(x: f64[10], m: bool[10]) {
  COMPRESS
  %s = Slice(%c) {starts=(size("min(n,1)"),), steps=(1,), sizes=(size("max(n-1,0)"),)} :
      f64[max(n-1,0)]
  return %s
}""", """graph f(x: f64[4,5]) {
  %s = Slice(%x) {starts=(3, 0), steps=(-1, 2), sizes=(4, 3)} : f64[4,3]
  %z = Exp(%s) : f64[4,3]
  return %z
}"""),
    "SliceUpdate": ("""graph f(x: f64[4,5], v: f64[2,3]) {
  %s = SliceUpdate(%x, %v) {starts=(1, 0), steps=(2, 2), sizes=(2, 3)} : f64[4,5]
  return
  update x = %s
}""", """graph f(x: f64[10], m: bool[10]) {
  COMPRESS
  %s = Slice(%c) {starts=(0,), steps=(1,), sizes=(size("max(n-1,0)"),)} : f64[max(n-1,0)]
  %u = SliceUpdate(%c, %s) {starts=(size("min(n,1)"),), steps=(1,), sizes=(size("max(n-1,0)"),)} :
      f64[n]
  return %u
}"""),
    "Concat": ("""graph f(x: f64[10], m: bool[10]) {
  COMPRESS
  %k = Concat(%c, %x, %c) {axis=0} : f64[2*n+10]
  return %k
}""",),
    "Diagonal": ("""graph f(x: f64[4,5]) {
  %d = Diagonal(%x) {axes=(0, 1), offset=1} : f64[4]
  %z = Exp(%d) : f64[4]
  return %z
}""",),
    "Fill": ("""graph f(x: f64[10], m: bool[10], v: f64) {
  COMPRESS
  %s = Size(%c) {size=size("n")} : i64~
  %z = Fill(%v, %s) {shape=(size("n"),)} : f64[n]
  %y = Add(%z, %c) : f64[n]
  return %y
}""",),
}
INDEXING = tuple(TEXTS)


def by_hand(row: str) -> Iterator[Graph]:
    for text in TEXTS.get(row, ()):
        yield parse_graph(text.replace("COMPRESS", _COMPRESS))


def traced() -> dict[str, str]:
    """A graph of each row's sample, as JSON."""
    sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "ops"),
                    str(HERE.parents[1] / "differential"), str(HERE.parents[2])]
    from real_graphs import real_graphs

    return {row: graph.to_json() for row, graph in real_graphs(1) if not graph.ops & {*LOCAL}}


@cache
def seeds(path: Path) -> dict[str, list[Graph]]:
    """Graphs for each row; ``path`` keeps those that are traced."""
    if not path.exists():
        path.write_text(json.dumps(traced()))
    texts = json.loads(path.read_text())
    found = {row.name: [*by_hand(row.name), *(
        [graph_from_json(texts[row.name])] if row.name in texts else [])] for row in all_ops()}
    return {row: graphs for row, graphs in found.items() if graphs}
