"""The registry: every op is one `Op` row, declared in the file of its family."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from fusec.core.records import dataclass
from fusec.ir import TensorType, Value

from .admission.admission import Admission

OpKind = Literal[
    "source", "elementwise", "view", "piecewise", "gather", "reduce", "fold", "scan", "composite",
    "extern", "call",
]
Types = tuple[TensorType, ...]
Lowering = Literal["fused", "decompose", "library", "structural"]
_LOWERING: dict[str, Lowering] = {
    "composite": "decompose", "extern": "library", "source": "structural", "call": "structural",
}
InferRule = Callable[[Sequence[TensorType], Mapping[str, Any]], Types]
NodeRule = Callable[..., Sequence[Value]]  # (builder, node, …): nodes that say it, as `decompose`
REAL = "?iuf"  # kinds of dtypes


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One row.

    ``kind`` decides how the op is compiled: *elementwise* ops become the scalar op ``scalar``;
    *view*, *piecewise* and *gather* ops become index functions; *reduce* ops become accumulators
    combining with ``scalar``, *fold* ops are expressions of every element along short axes, *scan*
    ops accumulators that give every step; *composite* ops are rewritten
    by ``decompose`` before anything else; *extern* ops call ``reference``, a library.
    ``reference`` is NumPy's own evaluation always:
    ``reference(*arrays, **attrs)``.  ``ufunc`` resolves dtypes exactly as NumPy does.  ``cost`` is
    in units of one addition.  ``doc`` is a line on its result and its attrs.

    The rules of a transformation are columns too.  None says that nobody has written the rule yet,
    so a program with such a row must be refused; it never says that there is nothing to do.
    """

    name: str
    kind: OpKind
    infer: InferRule
    reference: Callable[..., Any]
    arity: int | None = None
    scalar: str | None = None
    ufunc: np.ufunc | None = None
    numpy: tuple[Callable[..., Any], ...] = ()
    decompose: NodeRule | None = None
    # Kinds of dtypes, or single ones, of operands (of `Cast` and sources: of results); for rows of
    # a ufunc NumPy says it.
    takes: str | tuple[str, ...] = REAL + "c"
    attrs: tuple[str, ...] = ()  # names, in the order in which rewrite rules write them
    called: str = ""  # in the user's words, where it is no function of NumPy's of the same name
    cost: float = 1.0
    commutative: bool = False
    associative: bool = False
    stateful: bool = False
    since: int = 1  # the version of the graph format that first had the row
    attrs_since: tuple[tuple[str, int], ...] = ()  # the same of attributes that came later
    doc: str = ""
    # What passes and back ends ask.
    first_matters: bool = False  # of floats, though it is commutative: of 0.0 and -0.0, or two NaNs
    is_sum: bool = False  # of its operands, the second one negated where it does not commute
    is_product: bool = False  # rounded once: a sum may take its factors into an Fma
    shows_product: bool = False  # of a product it is one still
    mixes_dtypes: bool = False  # operands need not share one
    jumps: bool = False  # where an operand hardly changes
    is_estimated: bool = False  # of float32 by a GPU, where a program permits it
    is_folded: bool = True  # of constants, where it is elementwise or a reduction
    may_raise: bool = False  # while it runs, a library's own error aside that nobody foresees
    is_control: bool = False  # it runs the graphs in its attrs, as data decides
    repeats: bool = False  # it may run them more than once
    shows_memory: bool = False  # its first operand's, as views do
    combines: bool = False  # kernels may combine elements with it that an index names twice
    keeps_kind: bool = False  # of an int and a float it makes either, of two floats a float
    joins: str = ""  # of a reduction: the op that joins two elements
    of_booleans: str = ""  # the reduction that is the same for booleans
    chooses: bool = False  # among the elements, of which there must be one
    is_given: bool = False  # an argument or a constant: nothing is computed
    is_transfer: bool = False  # between devices, or iterations
    raises: Literal["", "never", "often"] = ""  # a call whose operands are there
    checks: Literal["", "index", "condition", "call"] = ""  # what it raises for is its own business
    picks: Literal["", "read", "write"] = ""  # a part at indices that only the run knows
    is_of_sizes: bool = False  # a size of the run, or defined by it: no element is computed
    # Rules that transformations of graphs ask.  Importing `fusec.ops.derivatives`, which says what
    # they are, fills the first three.
    partials: Any = None  # of an elementwise row: a derivative for each operand
    jvp: Any = None  # tangents of the results, from those of the operands
    vjp: Any = None  # cotangents of the operands, from those of the results
    split: Any = None  # how blocks of its result are computed; `fusec.ops.splitting` fills it
    batching: NodeRule | None = None  # the row for all elements along one more axis
    export: Any = None  # the row in ONNX's ops; `fusec.ops.onnx` fills it
    admits: Admission | None = None  # what is admitted of it where a graph is read in

    @property
    def lowering(self) -> Lowering:
        """The lowering of the row's nodes: loops, other nodes, calls, or nothing of their own."""
        return _LOWERING.get(self.kind, "fused")


class _Rows(dict[str, Op]):
    def __missing__(self, name: str) -> Op:
        close = ", ".join(difflib.get_close_matches(name, self, 3)) or "none close"
        raise KeyError(f"no op {name!r} in the registry ({close})")


_ROWS = _Rows()
# The row of that name; raises ``KeyError`` naming the closest rows.  Passes ask for each node, some
# hundred times in all: a function of ours around it would take twice as long.
get: Callable[[str], Op] = _ROWS.__getitem__


def is_known(name: str) -> bool:
    """Whether there is a row of that name."""
    return name in _ROWS


def register(op: Op) -> Op:
    """Add a row; raises ``ValueError`` for a second row of the same name."""
    if op.name in _ROWS:
        raise ValueError(f"internal error: op {op.name!r} is declared twice")
    _ROWS[op.name] = op
    return op


def all_ops() -> Iterator[Op]:
    """Every row, in order of declaration."""
    return iter(_ROWS.values())
