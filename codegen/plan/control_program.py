"""A branch or loop as one compiled function, as the runtime sees it: the words of its argument
block, the calls that it makes into Python, and its early exits.

A back end that compiles such functions makes a `ControlProgram`; the runtime calls it.  The block
is an array of 64-bit words; the function is ``i64 run(ptr block)`` and gives 0, or 1 plus the
number of the `ErrorExit` that was taken.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fusec.core.records import dataclass, field
from fusec.ir import Node, TensorType
from fusec.ir.lazy_values import lazy
from fusec.ir.sizes.dims import Size

if TYPE_CHECKING:
    from fusec.ops.calls.drawings import Drawing
    from fusec.passes.pipeline import BodyPasses

    from ..kernels.loop_ir import Param
    from ..kernels.specialise import LoopForm
    from ..machine_code.llvm import NativeCode
    from ..machine_code.native_nest import NativeNest, NestBlock
    from .block_templates import OpenBlock

RUN = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
CALLS = ("release", "hold", "call_python", "poll")  # functions of the lock; they take its state
# Instead of the axis of an error exit: for an extremum of an empty array; for numbers that the node
# does not take, which are in the first ``index`` word.
OF_NOTHING, OF_NUMBERS = -2, -3


class StructuredText(Protocol):
    """What people see of a structured program: its statements as text, and the ``passes`` that its
    sub-graphs went through."""

    passes: Sequence[BodyPasses]

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Word:
    """One word of the argument block.  ``kind`` names its contents:

    ========================  ======================================================================
    ``number``                a constant
    ``bits``                  a float64 that follows from sizes
    ``operand``, ``target``   the address of an operand, of a result
    ``scalar``                the bits of an operand
    ``rest``                  the second half of the number in the word before
    ``temp``                  the address of fresh memory of ``value`` bytes, which may be a size
    ``zeros``                 the same, all 0: bytes beyond an array's end show nobody's data
    ``nest``                  the address of a nest's argument block
    ``code``, ``finish``      the addresses of a nest's functions
    ``pool``                  the address of the function that spreads tasks over threads
    ``work``                  the estimated ns of one task of a nest
    those of `CALLS`          the addresses of functions of the interpreter's lock
    ``lock``                  the state of that lock
    ``size``                  the value of a symbol that is defined before the loop
    ``result``                where a scalar result is stored
    ``callback``              the address of Python's side of a host call
    ``draw``                  the address of the C function that draws for a host call; 0: call it
    ``source``                the address of the state that this function draws from
    ``host``                  an operand or result of a host call
    ``index``                 the index out of range; a second word: the size, if a run-time size
    ``left``                  the address of a result's memory, at an early exit
    ``deepest``               how deep Python lets a function call itself
    ``failure``               the status word of the nests, then `RECORD` of `.native_nest`
    ========================  ======================================================================
    """

    kind: str
    value: Size = 0


@dataclass(frozen=True)
class ErrorExit:
    """An early exit of the function: ``node`` raises.

    For an index out of range: the axis, and its size (None: it is in the second ``index`` word).
    Failures inside of a kernel are in the ``failure`` words.  For a scalar function that raised:
    ``call`` is its symbol and the ``host`` words of its arguments.  ``outgrown``: nothing raises; a
    result has more elements than there is memory for, and all has to run again, step by step.
    """

    node: Node
    axis: int = -1
    size: Size | None = 0
    call: tuple[str, tuple[tuple[int, np.dtype], ...]] | None = None
    outgrown: bool = False


@dataclass(frozen=True)
class HostSize:
    """An axis with a run-time size, and the word that holds the size.

    Python writes the word where the call ``defines`` the size; else the native function does.
    There is memory for a size up to ``limit``, which the operands' sizes give or, ``is_guessed``,
    nothing does.
    """

    axis: int
    word: int
    defines: bool
    limit: int | None = None
    is_guessed: bool = False


@dataclass(frozen=True)
class HostValue:
    """An operand or result of a host call, as a word: a number's bits, or an array's address.

    ``strides`` are None for a number.
    """

    word: int
    type: TensorType
    strides: tuple[int, ...] | None
    sizes: tuple[HostSize, ...] = ()


@dataclass(frozen=True)
class HostSite:
    """A call of Python from a native function; without the node's *order* operand and result.

    ``drawing``: how native code draws without the call, where NumPy's function is found at run time
    and accepts the arguments.
    """

    node: Node
    name: str
    operands: tuple[HostValue, ...]
    results: tuple[HostValue, ...]
    drawing: Drawing | None = None


@dataclass(frozen=True)
class EarlyExit:
    """The exit that a run left through, with the index and size that it reports; of a scalar
    function that raised, or a kernel in which a check failed, the arguments; of a library call
    its error.  ``lane``: in which it was, of a loop over lanes."""

    exit: ErrorExit
    index: int
    size: int
    arguments: tuple[Any, ...] = ()
    error: Exception | None = None
    lane: int = -1


@dataclass
class ControlCode:
    """A compiled control node of a back end that is not native: a Python function of arrays.

    ``code(operands, results, sizes)`` takes the operands in the node's order and the arrays of the
    results, those of ``copied`` filled; it puts the other results into the list.  At an early exit
    the arrays are as the loop left them.  ``nests``: the kernels' nests that it runs;
    ``texts``: its source, ``cu``, and other texts for people; ``kind``: its name, in words.
    """

    node: Node
    code: Callable[[Sequence[Any], list[Any], Mapping[str, int]], EarlyExit | None]
    nests: Sequence[Any]
    copied: list[int]
    texts: Mapping[str, str]
    structured: Callable[[], StructuredText]
    kind: str = "one function"


@dataclass(frozen=True, eq=False)
class LoopNest:
    """A nest that the function calls, and its argument block, which ``fill`` makes for the largest
    sizes."""

    largest: LoopForm
    params: tuple[Param, ...]
    code: NativeNest
    fill: Callable[[LoopForm, tuple[Param, ...]], NestBlock]
    open: Callable[[LoopForm, tuple[Param, ...]], OpenBlock]  # the same where it has symbols

    @lazy
    def block(self) -> NestBlock:
        return self.fill(self.largest, self.params)

    @lazy
    def open_block(self) -> OpenBlock:
        return self.open(self.largest, self.params)


@dataclass
class ControlProgram:
    """A compiled control node: ``operands`` in the node's order, ``words`` as `Word` says."""

    node: Node
    address: int
    code: NativeCode
    words: list[Word]
    nests: list[LoopNest]
    exits: Sequence[ErrorExit]
    copied: list[int]  # for each result, the operand that it starts as a copy of; -1: none
    sites: Sequence[HostSite]  # where it calls Python
    passed: list[str]  # the symbols of the ``size`` words, in order
    structured: Callable[[], StructuredText]  # which nothing keeps
    may_outgrow: bool = False  # a result may have no room: it runs again then, step by step
    is_divisible: bool = False  # ranges of its iterations may run at the same time
    together: int = 1  # as many of its iterations run in a vector
    lanes: str = ""  # how its loops over lanes run, in words
    # Work of Python's that native code could have done, with reasons, by the name that users know.
    called: dict[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The words of its block."""
        return len(self.words)

    @lazy
    def by_kind(self) -> dict[str, list[tuple[int, Size]]]:
        """The words of each kind, with their values."""
        found: dict[str, list[tuple[int, Size]]] = {}
        for at, word in enumerate(self.words):
            found.setdefault(word.kind, []).append((at, word.value))
        return found

    @lazy
    def kinds_with_sizes(self) -> list[str]:
        """The kinds of words whose values are no plain numbers."""
        return [kind for kind, words in self.by_kind.items()
                if any(type(value) is not int for _, value in words)]

    @property
    def kinds(self) -> Node:
        """The node, of whose types only dtypes and kinds may be read."""
        return self.node

    @property
    def python_calls(self) -> dict[str, str]:
        """What of Python's it calls, and why, where that may surprise."""
        always = dict.fromkeys((s.name for s in self.sites if s.drawing is None), "")
        return always | self.called
