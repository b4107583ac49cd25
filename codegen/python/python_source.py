"""A kernel as readable Python source that Numba also takes: documentation and second oracle.

The text is one function of plain nested loops over its buffers, with the helper functions it needs
above it.  As plain Python it runs on NumPy scalars, under ``numba.njit(error_model="numpy")`` as
machine code.  Small integers are converted after every operation, because Numba computes with them
in int64; functions are ``np.exp`` rather than ``math.exp``, which raises where NumPy gives inf.
Math functions are those of the platform, so results may differ from fusec's own by a few ulp, and
``fma`` is written ``a * b + c``.
"""

from __future__ import annotations

import keyword
import linecache
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fusec.ir import Loc
from fusec.ir.sizes.dims import Dim
from fusec.ops import get
from fusec.ops.regions.index_maps import AxisIndex
from fusec.ops.rows.scans import start_of

from ..exported.identifiers import identifier, unused
from ..kernels.loop_ir import Expr, Kernel, Nest, Reduction, Stage, Store, walk
from ..kernels.scalar_rules import boolean_op
from .source_ops import HELPERS, REPEATING, Literal, literal, operation_text, start_text

INDENT = "    "
LONGEST_INLINE = 48  # longer parts of an expression get a name
RESERVED = frozenset({"np", "range", "abs", "min", "max", *HELPERS, *keyword.kwlist})


def kernel_source(kernel: Kernel) -> str:
    """The kernel as Python source: ``def name(inputs…, outputs…)`` writing to its outputs.

    Numba has no float16; kernels that use it run as plain Python only.
    """
    return _SourceWriter(kernel).text()


def load_source(text: str, njit: bool = False) -> Callable[..., None]:
    """The last function the text defines, compiled by Numba when ``njit``."""
    namespace: dict[str, Any] = {}
    exec(compile(text, "<fusec kernel>", "exec"), namespace)
    functions = [name for name, value in namespace.items() if _is_function(value)]
    if njit:
        import numba

        for name in functions:
            namespace[name] = numba.njit(error_model="numpy")(namespace[name])
    return namespace[functions[-1]]


def _is_function(value: Any) -> bool:
    return type(value) is type(_is_function)


def _name(value: str, taken: set[str]) -> str:
    """A valid, unused Python name close to a graph value's name."""
    return unused(identifier(value, "value"), taken, "_")


def _place_comment(loc: Loc) -> str:
    """``# model.py:12  y = x + 1`` as far as the source is at hand."""
    line = linecache.getline(loc.file, loc.line).strip()
    return f"# {loc}  {line}".rstrip()


class _SourceWriter:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.lines: list[str] = []
        self.helpers: dict[str, None] = {}
        self.counts: Counter[str] = Counter()
        self.scans: dict[int, str] = {}  # variables that hold what a scan has reached
        taken = set(RESERVED)
        # Names made below look like these; no buffer may have one.
        pattern = re.compile(r"(i|t|r|s|best|scratch)\d+$")
        names = [b.value for b in kernel.buffers]
        self.names = [_name(f"v{n}" if pattern.match(n) else n, taken) for n in names]
        self.name = _name(kernel.name, taken)

    def text(self) -> str:
        body = [line for nest in self.kernel.nests for line in self._nest(nest)]
        head = ["import numpy as np", "", ""]
        for name in self.helpers:
            head += [*HELPERS[name].strip().splitlines(), "", ""]
        if any("math." in line for line in [*head, *body]):
            head = ["import math", "", *head]
        comments = [_place_comment(loc) for loc in self.kernel.locs]
        shapes = [
            f"# {b.role} {name}: {b.dtype}{list(b.shape)}"
            for name, b in zip(self.names, self.kernel.buffers, strict=True)
        ]
        definition = f"def {self.name}({', '.join(self.names)}):"
        inside = [INDENT + line for line in [*comments, *shapes, *(body or ["pass"])]]
        return "\n".join([*head, definition, *inside]) + "\n"

    # -- loops

    def _nest(self, nest: Nest) -> Iterator[str]:
        for number, dtype in enumerate(nest.scratch):
            shape = ", ".join(map(str, nest.extents[nest.outer:]))
            yield f"scratch{number} = np.empty(({shape},), np.{dtype.name})"
        indent = ""
        for loop in range(nest.outer):
            yield f"{indent}for i{loop} in range({nest.extents[loop]}):"
            indent += INDENT
        for stage in nest.stages:
            yield from (indent + line for line in self._stage(nest, stage))

    def _stage(self, nest: Nest, stage: Stage) -> Iterator[str]:
        for r in stage.reductions:
            yield from self._start(r)
        for e in walk(stage.roots):
            if e.op == "scan":
                self.scans[id(e)] = f"s{len(self.scans)}"
                start = literal(e.dtype, start_of(e.attr, e.dtype), Literal.TYPED)
                yield f"{self.scans[id(e)]} = {start}"
        indent = ""
        if stage.inner:
            for loop in range(nest.outer, len(nest.extents)):
                yield f"{indent}for i{loop} in range({nest.extents[loop]}):"
                indent += INDENT
        body = _StageWriter(self, nest, stage).lines()
        yield from (indent + line for line in body)

    def _start(self, r: Reduction) -> Iterator[str]:
        if r.kind in ("argmin", "argmax"):
            yield f"r{r.number} = -1"
            yield f"best{r.number} = {start_text(r.kind[3:], r.value.dtype)}"
        else:
            yield f"r{r.number} = {start_text(r.kind, r.dtype)}"


class _StageWriter:
    """The statements of one stage; parts used once and short are written in place."""

    def __init__(self, writer: _SourceWriter, nest: Nest, stage: Stage) -> None:
        self.writer, self.nest, self.stage = writer, nest, stage
        self.code: list[str] = []
        self.texts: dict[int, str] = {}
        roots = stage.roots
        self.uses = Counter(
            id(a) for e in walk(roots) for a in e.args for _ in range(1 + (e.op in REPEATING))
        )
        self.uses.update(id(e) for e in roots)
        # Several results: all are computed before any is written.
        self.named = {id(e) for e in roots} if len(roots) > 1 else set()

    def lines(self) -> list[str]:
        for e in walk(self.stage.roots):
            self._expression(e)
        self.code += [self.texts[id(e)] for e in self.stage.checks
                      if not self.texts[id(e)].isidentifier()]
        for s in self.stage.stores:
            self._store(s)
        for number, e in self.stage.scratch:
            self.code.append(f"scratch{number}[{self._inner_index()}] = {self.texts[id(e)]}")
        for r in self.stage.reductions:
            self._combine(r)
        return self.code

    def _store(self, s: Store) -> None:
        place = self._element(s.access, [self.texts[id(i)] for i in s.index])
        text = self.texts[id(s.value)]
        if s.combine:
            text = self._applied(s.combine, s.value, [place, text])
        self.code.append(f"{place} = {text}")

    def _applied(self, op: str, like: Expr | Reduction, texts: list[str]) -> str:
        """The text of a binary op on operands of the type of ``like``."""
        operand = like.value if isinstance(like, Reduction) else like
        here = Expr.__new__(Expr)
        here.op, here.dtype, here.args, here.attr = op, like.dtype, (operand, operand), None
        text, helpers = operation_text(here, texts)
        self.writer.helpers.update(dict.fromkeys(helpers))
        return text

    def _expression(self, e: Expr) -> None:
        if e.op == "scan":
            self._scan(e)
            return
        is_leaf = not e.args or e.op == "load"
        text = self._leaf(e) if is_leaf else self._operation(e)
        plain = e.op in ("const", "param", "reduced", "index")
        repeated = self.uses[id(e)] > 1 or id(e) in self.named
        if not plain and (repeated or len(text) > LONGEST_INLINE):
            text = self._name(text)
        self.texts[id(e)] = text

    def _scan(self, e: Expr) -> None:
        """One more step: the variable holds the element until the next one."""
        name, scalar = self.writer.scans[id(e)], get(e.attr).scalar or ""
        op = boolean_op(scalar) if e.dtype == np.bool_ else scalar
        self.code.append(f"{name} = {self._applied(op, e, [name, self.texts[id(e.args[0])]])}")
        self.texts[id(e)] = name

    def _name(self, text: str) -> str:
        name = f"t{self.writer.counts['t']}"
        self.writer.counts["t"] += 1
        self.code.append(f"{name} = {text}")
        return name

    def _operation(self, e: Expr) -> str:
        texts = [
            self._constant(a, exact=_needs_types(e)) if a.op in ("const", "param")
            else self.texts[id(a)] for a in e.args
        ]
        text, helpers = operation_text(e, texts)
        self.writer.helpers.update(dict.fromkeys(helpers))
        return text

    def _leaf(self, e: Expr) -> str:
        if e.op in ("const", "param"):
            return self._constant(e, exact=True)
        if e.op == "load":
            return self._element(e.attr, [self.texts[id(a)] for a in e.args])
        if e.op == "scratch":
            return f"scratch{e.attr}[{self._inner_index()}]"
        return {"reduced": f"r{e.attr}", "index": f"np.int64(i{e.attr})"}[e.op]

    def _constant(self, e: Expr, exact: bool) -> str:
        value = self.writer.kernel.params[e.attr].value if e.op == "param" else e.attr
        return literal(e.dtype, value, Literal.TYPED if exact else Literal.PLAIN)

    def _element(self, number: int, args: Sequence[str] = ()) -> str:
        access = self.nest.accesses[number]
        index = ", ".join(_index_text(i, args) for i in access.index) or "()"
        return f"{self.writer.names[access.buffer]}[{index}]"

    def _inner_index(self) -> str:
        loops = range(self.nest.outer, len(self.nest.extents))
        return ", ".join(f"i{d}" for d in loops)

    def _combine(self, r: Reduction) -> None:
        text = self.texts[id(r.value)]
        if r.kind in ("argmin", "argmax"):
            self._combine_indexed(r, text)
            return
        here = [f"r{r.number}", text]
        self.code.append(f"r{r.number} = {self._applied(r.kind, r, here)}")

    def _combine_indexed(self, r: Reduction, text: str) -> None:
        if not text.isidentifier():
            text = self._name(text)
        best, dtype = f"best{r.number}", r.value.dtype
        sign = ">" if r.kind == "argmax" else "<"
        better = f"{text} {sign} {best}"
        if dtype.kind == "f":
            better += f" or ({text} != {text} and {best} == {best})"
        self.code += [
            f"if r{r.number} < 0 or {better}:",
            f"{INDENT}{best} = {text}",
            f"{INDENT}r{r.number} = {self._linear()}",
        ]

    def _linear(self) -> str:
        """The position within the inner loops."""
        text = ""
        for d in range(self.nest.outer, len(self.nest.extents)):
            inner = f"({text})" if " " in text else text
            text = f"{inner} * {self.nest.extents[d]} + i{d}" if text else f"i{d}"
        return text or "0"


_ONE_OF_THEM = frozenset({"select", "maximum", "minimum", "fmax", "fmin"})  # the results


def _needs_types(e: Expr) -> bool:
    """Whether plain literals among the operands would change the result's type."""
    return e.op in _ONE_OF_THEM or all(a.op in ("const", "param") for a in e.args)


def _index_text(i: AxisIndex, args: Sequence[str]) -> str:
    if i.loop == -1:
        return str(i.start)
    name = f"i{i.loop}" if i.computed is None else args[i.computed]
    text = name if i.step == 1 else f"{i.step} * ({name})" if i.computed is not None else (
        f"{i.step} * {name}")
    if i.start == 0:
        return text
    if isinstance(i.start, Dim):  # of which only the run knows whether it is negative
        return f"{text} + ({i.start})"
    return f"{text} {'+' if i.start > 0 else '-'} {abs(i.start)}"
