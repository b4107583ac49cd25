"""The loop IR: kernels of loop nests over scalar expressions.

A `Kernel` is one traversal of one iteration domain.  Its nests (several only where piecewise index
functions split the domain into boxes) load operands through affine index maps, evaluate scalar
expressions and store.  A nest's first ``outer`` loops are independent; for each of their points
stages run in order over the other, *inner* loops: reductions of one are rank-0 values for the next.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, Literal

import numpy as np

from fusec.core.records import dataclass, replace
from fusec.ir import Loc, dtype_name
from fusec.ir.lazy_values import lazy
from fusec.ir.regions import span
from fusec.ir.sizes.bindings import Bindings, resolve
from fusec.ir.sizes.dims import maximum, minimum
from fusec.ops.regions.index_maps import AxisIndex, IndexMap


class Expr:
    """An interned scalar expression.

    Leaves: ``load`` (attr: access number; args: its computed indices, if any), ``scratch`` (attr:
    scratch number), ``reduced`` (attr: reduction number), ``param`` (attr: parameter number),
    ``const`` (attr: value), ``index`` (attr: loop number).  Everything else is an operation on
    ``args``; ``cast`` converts to ``dtype``; ``scan`` (attr: a binary op of the registry) combines
    its operand over the inner loop's points up to the present one; ``check_index`` is its first
    operand, wrapped, in range of its second, and ``verify`` its operand, which must be true (attr
    of both: the number in the program's order).
    """

    __slots__ = ("__weakref__", "args", "attr", "dtype", "op")
    op: str
    dtype: np.dtype
    args: tuple[Expr, ...]
    attr: Any

    def __repr__(self) -> str:
        return format_expr(self)


_interned: weakref.WeakValueDictionary[tuple, Expr] = weakref.WeakValueDictionary()
ESTIMATED = "estimated"  # the attr of an operation that a GPU may estimate
CHECKS = frozenset({"check_index", "checked_call", "verify"})
LEAVES = frozenset({"load", "scratch", "reduced", "param", "const", "index"})


def expr(op: str, dtype: np.dtype, *args: Expr, attr: Any = None) -> Expr:
    """The one expression with these parts."""
    key = (op, dtype, tuple(map(id, args)), type(attr), attr)
    interned = _interned.get(key)
    if interned is None:
        interned = Expr.__new__(Expr)
        interned.op, interned.dtype, interned.args, interned.attr = op, dtype, args, attr
        _interned[key] = interned
    return interned


def walk(roots: Sequence[Expr], known: Iterable[int] = ()) -> Iterator[Expr]:
    """Every expression below the roots once, operands first; not those whose ids are ``known``."""
    done, stack = set(known), [(e, False) for e in reversed(roots)]
    while stack:
        e, expanded = stack.pop()
        if id(e) in done:
            continue
        if expanded or not e.args:
            done.add(id(e))
            yield e
        else:
            stack.append((e, True))
            stack.extend((a, False) for a in reversed(e.args))


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory a kernel reads or writes; ``value`` names the graph value it holds."""

    value: str
    dtype: np.dtype
    shape: tuple[int, ...]
    role: Literal["in", "out"]


@dataclass(frozen=True, slots=True)
class Access:
    """A buffer read or written at an affine index of the nest's loops, or a computed one."""

    buffer: int
    index: IndexMap


@dataclass(frozen=True, slots=True)
class Store:
    """``index``: the access's computed indices, in the order of the axes.

    ``combine``: a scalar op that joins the element there with the value; in ``any_order``, where
    the program takes other last bits for it.
    """

    access: int
    value: Expr
    index: tuple[Expr, ...] = ()
    combine: str = ""
    any_order: bool = False


@dataclass(frozen=True, slots=True)
class Reduction:
    """Combine ``value`` over the inner loops; ``kind`` is a scalar op or ``argmin``/``argmax``."""

    number: int
    kind: str
    value: Expr
    dtype: np.dtype


@dataclass(frozen=True, slots=True)
class Stage:
    """One pass over the inner loops (``inner``) or one evaluation per outer point."""

    inner: bool
    stores: tuple[Store, ...] = ()
    scratch: tuple[tuple[int, Expr], ...] = ()
    reductions: tuple[Reduction, ...] = ()
    checks: tuple[Expr, ...] = ()  # evaluated for what they report, used or not

    @property
    def roots(self) -> list[Expr]:
        return [s.value for s in self.stores] + [e for _, e in self.scratch] + [
            r.value for r in self.reductions
        ] + list(self.checks) + [i for s in self.stores for i in s.index]

    def operations(self, computed: Iterable[Expr]) -> int:
        """Scalar operations of these expressions and of its reductions."""
        return len(self.reductions) + sum(
            1 + (e.op == "fma") for e in computed if e.op not in LEAVES)


@dataclass(frozen=True)
class Nest:
    """Loops ``extents`` (the first ``outer`` of them outer) around stages.

    The points of a ``sequential`` nest run in order: it may store to one place several times.
    Of one with a ``chunk``, each block of so many points of its only loop stores to places of its
    own: blocks may run at the same time, the points of one may not.
    """

    extents: tuple[int, ...]
    outer: int
    accesses: tuple[Access, ...]
    stages: tuple[Stage, ...]
    scratch: tuple[np.dtype, ...] = ()
    sequential: bool = False
    chunk: int = 0

    @property
    def roots(self) -> list[Expr]:
        return [e for stage in self.stages for e in stage.roots]

    def moving_in(self, stage: Stage) -> Iterator[Expr]:
        """The stage's expressions that depend on its loops; without loops, all of them."""
        loops = {*range(self.outer if stage.inner else 0, len(self.extents))}
        moving: set[int] = set()
        for e in walk(stage.roots):
            read = self.accesses[e.attr].index if e.op == "load" else ()
            if (not loops or e.op in ("scratch", "scan") or moving.intersection(map(id, e.args))
                    or (e.op == "index" and e.attr in loops) or any(i.loop in loops for i in read)):
                moving.add(id(e))
                yield e

    @property
    def has_reductions(self) -> bool:
        return any(stage.reductions for stage in self.stages)

    @property
    def has_scans(self) -> bool:
        return any(e.op == "scan" for e in walk(self.roots))

    @lazy
    def has_checks(self) -> bool:
        return any(e.op in CHECKS for e in walk(self.roots))


@dataclass(frozen=True, slots=True)
class Param:
    """A constant passed at run time, so that kernels differing only in constants are shared."""

    dtype: np.dtype
    value: Any


@dataclass(frozen=True)
class Kernel:
    """Nests with their buffers and constants: the unit of a launch."""

    name: str
    buffers: tuple[Buffer, ...]
    params: tuple[Param, ...]
    nests: tuple[Nest, ...]
    locs: tuple[Loc, ...] = ()

    @property
    def has_checks(self) -> bool:
        """Whether it may find that the program fails: see `Stage.checks`."""
        return any(nest.has_checks for nest in self.nests)

    def at_sizes(self, sizes: Bindings) -> Kernel:
        """The kernel with its sizes evaluated."""
        buffers = tuple(replace(b, shape=resolve(b.shape, sizes)) for b in self.buffers)
        nests = tuple(
            replace(n, extents=resolve(n.extents, sizes),
                    accesses=tuple(_access_at(a, sizes) for a in n.accesses))
            for n in self.nests
        )
        return replace(self, buffers=buffers, nests=nests)

    @property
    def operations(self) -> int:
        """Scalar operations per element, but for those done once for a row or for the call."""
        return sum(stage.operations(n.moving_in(stage)) for n in self.nests for stage in n.stages
                   if stage.inner or n.outer == len(n.extents))

    @property
    def work(self) -> int:
        """Scalar operations in all.

        A mathematical function counts as one, a multiplication with its addition as two, the
        op that joins an element to a reduction as one.
        """
        return sum(
            stage.operations(walk(stage.roots)) * math.prod(
                n.extents if stage.inner else n.extents[:n.outer])
            for n in self.nests for stage in n.stages)

    def bytes_of(self, buffer: int) -> int:
        """Bytes of the part of a buffer this kernel touches, each element counted once."""
        boxes = [
            _touched(a.index, n.extents, self.buffers[buffer].shape)
            for n in self.nests for a in n.accesses
            if a.buffer == buffer and 0 not in n.extents
        ]
        if not boxes:
            return 0
        info = self.buffers[buffer]
        if info.role == "out":
            count = sum(math.prod(axis[2] for axis in box) for box in boxes)
        else:
            count = math.prod(_hull(axis)[2] for axis in zip(*boxes, strict=True))
        return count * info.dtype.itemsize

    @property
    def bytes_loaded(self) -> int:
        return sum(self.bytes_of(i) for i, b in enumerate(self.buffers) if b.role == "in")

    @property
    def bytes_stored(self) -> int:
        return sum(self.bytes_of(i) for i, b in enumerate(self.buffers) if b.role == "out")

    def __str__(self) -> str:
        return print_kernel(self)


def _access_at(access: Access, sizes: Bindings) -> Access:
    index = tuple(
        i._replace(start=resolve(i.start, sizes), step=resolve(i.step, sizes))
        for i in access.index
    )
    return Access(access.buffer, index)


Span = tuple[int, int, int]


def _touched(index: IndexMap, extents: Sequence[int], shape: Sequence[int]) -> list[Span]:
    """Per axis (first, last, count) of the indices read, at most, where they are computed."""
    spans = []
    for axis, i in enumerate(index):
        if i.computed is not None:
            spans.append((0, shape[axis] - 1, minimum(shape[axis], math.prod(extents))))
            continue
        extent = extents[i.loop] if i.loop >= 0 else 1
        spans.append((*span(i.start, i.step, extent), extent if i.step else 1))
    return spans


def _hull(spans: Sequence[Span]) -> Span:
    low, high = reduce(minimum, (s[0] for s in spans)), reduce(maximum, (s[1] for s in spans))
    same = len({(s[0], s[1], s[2]) for s in spans}) == 1
    return (low, high, spans[0][2] if same else minimum(high - low + 1, sum(s[2] for s in spans)))

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>",
}


def format_expr(e: Expr) -> str:
    """One line: leaves by number, operations as calls or infix; shared parts are repeated."""
    if e.op in LEAVES and not e.args:
        return f"{e.op}{e.attr}" if e.op != "const" else repr(e.attr)
    if e.op in INFIX:
        return f"({format_expr(e.args[0])} {INFIX[e.op]} {format_expr(e.args[1])})"
    name = f"{e.op}_{dtype_name(e.dtype)}" if e.op in ("cast", "bitcast") else e.op
    return f"{name}({', '.join(map(format_expr, e.args))})"


def print_kernel(kernel: Kernel) -> str:
    """The loop nests as indented text with a type on every line; ``.loops`` artefacts."""
    return "\n".join(text for text, _ in kernel_lines(kernel))


Line = tuple[str, Expr | None]


def kernel_lines(kernel: Kernel) -> Iterator[Line]:
    """The lines of `print_kernel`, each with the expression that it computes, stores or joins."""
    yield f"kernel {kernel.name}:", None
    for b in kernel.buffers:
        yield f"  {b.role:3} {b.value}: {dtype_name(b.dtype)}[{','.join(map(str, b.shape))}]", None
    for i, p in enumerate(kernel.params):
        yield f"  param{i}: {dtype_name(p.dtype)} = {p.value!r}", None
    for number, nest in enumerate(kernel.nests):
        yield f"  nest {number}:", None
        yield from (("    " + text, e) for text, e in _nest_lines(kernel, nest))


def _nest_lines(kernel: Kernel, nest: Nest) -> Iterator[Line]:
    indent = ""
    in_order = " in order" if nest.sequential else ""
    for loop in range(nest.outer):
        yield f"{indent}for i{loop} in {nest.extents[loop]}{in_order}:", None
        indent += "  "
    for stage in nest.stages:
        inner = indent
        if stage.inner:
            for loop in range(nest.outer, len(nest.extents)):
                yield f"{inner}for i{loop} in {nest.extents[loop]}:", None
                inner += "  "
        yield from ((inner + text, e) for text, e in _stage_lines(kernel, nest, stage))


def _stage_lines(kernel: Kernel, nest: Nest, stage: Stage) -> Iterator[Line]:
    names: dict[int, str] = {}
    for e in walk(stage.roots):
        if e.op in ("const", "param", "reduced", "index"):
            names[id(e)] = _leaf_text(e)
            continue
        names[id(e)] = f"t{len(names)}"
        args = [names[id(a)] for a in e.args]
        text = (_access_text(kernel, nest, e.attr, args) if e.op == "load"
                else _operation_text(e, names))
        yield f"{names[id(e)]}: {dtype_name(e.dtype)} = {text}", e
    for number, value in stage.scratch:
        yield f"scratch{number} = {names[id(value)]}", value
    for r in stage.reductions:
        yield (f"r{r.number}: {dtype_name(r.dtype)} = {r.kind}-reduce {names[id(r.value)]}",
               expr("reduced", r.dtype, attr=r.number))
    for check in stage.checks:
        yield f"check {names[id(check)]}", check
    for s in stage.stores:
        place = _access_text(kernel, nest, s.access, [names[id(i)] for i in s.index])
        yield f"{place}{f' {s.combine}' if s.combine else ''} = {names[id(s.value)]}", s.value


def _leaf_text(e: Expr) -> str:
    prefix = {"param": "param", "reduced": "r", "index": "i"}
    return repr(e.attr) if e.op == "const" else f"{prefix[e.op]}{e.attr}"


def _operation_text(e: Expr, names: dict[int, str]) -> str:
    if e.op == "scratch":
        return f"scratch{e.attr}"
    args = [names[id(a)] for a in e.args]
    if e.op == "scan":
        return f"{e.attr}-scan {args[0]}"
    return f"{args[0]} {INFIX[e.op]} {args[1]}" if e.op in INFIX else f"{e.op}({', '.join(args)})"


def _access_text(kernel: Kernel, nest: Nest, number: int, args: Sequence[str] = ()) -> str:
    access = nest.accesses[number]
    index = ", ".join(index_text(i, args) for i in access.index)
    return f"{kernel.buffers[access.buffer].value}[{index}]"


def index_text(i: AxisIndex, args: Sequence[str]) -> str:
    if i.loop == -1:
        return str(i.start)
    name = f"i{i.loop}" if i.computed is None else args[i.computed]
    text = name if i.step == 1 else f"{i.step}*{name}"
    if not isinstance(i.start, int):
        return f"{text}+{i.start}"
    return text if i.start == 0 else f"{text}{i.start:+d}"
