"""The text of a persistent kernel as it grows: parameters, memory and numbers of the program.

Every thread of every block has all numbers and addresses of the program, computes them alike, and
takes the same branches.  What a nest leaves is in memory, behind a barrier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.codegen.structured.analyses.aliases import Aliases
from fusec.codegen.structured.analyses.iteration_counts import iterations
from fusec.codegen.structured.memory import (
    Constant,
    Memory,
    Operand,
    Register,
    Variable,
    View,
)
from fusec.codegen.structured.not_native import NotNativeError
from fusec.codegen.structured.program import StructuredProgram
from fusec.codegen.structured.statements import walk
from fusec.core.records import dataclass
from fusec.ir.sizes.bindings import Bindings, resolve
from fusec.ir.sizes.dims import Size, is_static, symbol, symbols_of

from ..module import CudaParam, ParamKind
from ..programs.program_text import address_text, is_still
from ..programs.residence import reads
from ..scalars.emitter import CudaEmitter, CudaValue, literal
from .hazards import Hazards
from .nest_calls import NestFunctions, NestGrid
from .numbers import (
    WORD,
    loaded,
    number_literal,
    number_type,
    placed,
    size_text,
    stored,
    type_in_memory,
    words_of,
    words_shown,
)

MOST_PARAMS = 400  # of 4 KiB that a launch's arguments may take
# Words of the state, which are 0 when the kernel begins: the exit that was taken plus one (or
# `INTERRUPTED`), its index and size, a word for checks of kernels, one for the wish to stop, that
# of barriers; then operands of the exit, addresses of what it leaves.
EXIT, INDEX, SIZE, STATUS, STOP, ARRIVED, FIRST = range(7)
INTERRUPTED = -1
MOST_THREADS = 1024
FEW_OPERATIONS = 64  # for which 64 registers do
MOST_UNWATCHED = 4096  # iterations, in some 10 ms: nobody has to be able to end that
MOST_WORK = 10**9  # ns of a CPU, of which a GPU takes a tenth or less
_LEFT = "@left@"  # replaced by the addresses of what an exit leaves, when these are known


@dataclass(frozen=True)
class KernelArgument:
    """A parameter and what it is given: ``of`` the call's sizes, where ``kind`` is "number"; else
    ("operand" or "target", position), ("input" or "result", position) of a number, ("fresh", size),
    ("scratch",), ("state",), ("exit",), ("flag",)."""

    param: CudaParam
    source: tuple[Any, ...]
    of: Callable[[Bindings], int] | None = None


_SPENT = "u32 spent = 0;"


class ProgramKernel:
    """See the module docstring; `hazards` says where barriers are.

    ``rules``: of statements that are not printed as in other programs, by type.
    """

    rules: Mapping[type, Callable[[Any, Any], None]] = {}

    def __init__(self, program: StructuredProgram, hazards: Hazards, stem: str = "") -> None:
        """``stem`` begins the names of its functions."""
        self.program, self.node, self.hazards = program, program.node, hazards
        self.em = CudaEmitter()
        self.functions = NestFunctions(stem)
        self.aliases = Aliases(program.body)
        self.head: list[str] = []
        self.arguments: dict[tuple[Any, ...], KernelArgument] = {}
        self.grids: list[NestGrid] = []
        self.scratch_bytes = 0
        self.zeros: list[tuple[str, str]] = []  # memory that begins as zeros, and its 64-bit words
        self.words: dict[Register, int] = {}  # of numbers that nests leave: offsets in the scratch
        self.unread: list[Register] = []  # of these, those that no thread has read yet
        self.readers = {r for x in walk(program.body) for r in reads(x)}
        self.operations = 0  # of an element, in the largest kernel
        self.left: dict[int, Memory] = {}
        self.sizes: set[str] = set()  # symbols that the kernel defines
        self.numbers: dict[int, np.dtype] = {}  # that are operands, by position
        self.results: dict[int, tuple[np.dtype, str]] = {}  # numbers, and how each is stored
        self.exits: dict[int, list[Operand | View]] = {}
        self.kept: dict[int, Operand] = {}  # arguments of calls that may raise, by ``host`` word
        self.launches = self.barriers = 0  # of an iteration of all loops; launches: if there were
        # Around the statement that is printed; one where there is none, so that all is counted.
        self.loops = int(not program.has_loops)
        self.times = iterations(program.body)
        self.selects = False  # whether data decides a size
        self.nests = 0  # that are printed; ``offsets`` of their memory in the scratch, by use
        self._declared: set[Any] = set()
        self.offsets: dict[Any, int] = {}

    # -- parameters

    def argument(
        self, source: tuple[Any, ...], kind: ParamKind = "pointer", is_written: bool = True,
        of: Callable[[Bindings], int] | None = None,
    ) -> str:
        """The parameter with this source."""
        if source not in self.arguments:
            if len(self.arguments) >= MOST_PARAMS:
                raise NotNativeError(f"more than {MOST_PARAMS} numbers and arrays")
            name = f"a{len(self.arguments)}"
            self.arguments[source] = KernelArgument(CudaParam(name, kind, is_written), source, of)
        return self.arguments[source].param.name

    def number_of(self, source: tuple[Any, ...], of: Callable[[Bindings], int]) -> str:
        """An integer that a launch gives."""
        return self.argument(("number", *source), "int64", False, of)

    def size(self, size: Size) -> str:
        """A size as an int64."""
        if is_static((size,)):
            return literal(np.dtype(np.int64), size)
        if self.is_of_call(size):
            return self.number_of(("size", size), lambda sizes: int(resolve(size, sizes)))
        return size_text(size, self._symbol)

    def size_once(self, size: Size) -> str:
        """A size that loops compare with."""
        text = self.size(size)
        return text if is_static((size,)) or self.is_of_call(size) else (
            self.em.named("i64", text, "size"))

    def _symbol(self, name: str) -> str:
        return f"size_{name}" if name in self.sizes else self.size(symbol(name))

    def define_size(self, name: str, value: str) -> None:
        """A size that the run knows from here on."""
        if name not in self.sizes:
            self.sizes.add(name)
            self.head.append(f"i64 size_{name} = 0;")
        self.em.line(f"size_{name} = {value};")

    def steps(self, view: View) -> tuple[Size, ...]:
        """The strides of a view, those that the run decides as sizes."""
        return tuple(self._step(step) if isinstance(step, Register) else step
                     for step in view.strides)

    def _step(self, register: Register) -> Size:
        name = f"step_{register!r}"
        self.define_size(name, repr(register))
        return symbol(name)

    def is_of_call(self, *sizes: Any) -> bool:
        """Whether these are known when the program begins."""
        return symbols_of(sizes) <= self.program.outer

    def limits_of(self, sizes: tuple[Any, ...]) -> Mapping[str, int] | None:
        """Upper bounds of sizes some of which only the run knows; None where a call knows all."""
        if self.is_of_call(sizes):
            return None
        limits = {**self.program.limits, **dict.fromkeys(
            (name for name in self.sizes if name.startswith("step_")), 0)}
        unknown = sorted(symbols_of(sizes) - limits.keys())
        if unknown:
            raise NotNativeError(f"a size that only the run knows, without a bound: {unknown[0]}")
        return limits

    def require_outer(self, *sizes: Any) -> None:
        """Sizes that are known when the program begins."""
        if not self.is_of_call(*sizes):
            raise NotNativeError("a size that only the run knows")

    # -- numbers

    def declare_number(self, thing: Register | Variable) -> str:
        """The name of a number, which all of the kernel knows."""
        if thing not in self._declared:
            self._declared.add(thing)
            self.head.append(f"{number_type(thing.dtype)} {thing!r};")
        return repr(thing)

    def define(self, register: Register, text: str) -> None:
        self.em.line(f"{self.declare_number(register)} = {text};")

    def value(self, operand: Operand) -> CudaValue:
        if isinstance(operand, Constant):
            return CudaValue(number_literal(operand.dtype, operand.value), operand.dtype)
        return CudaValue(repr(operand), operand.dtype)

    def word(self, register: Register) -> str:
        """Where a nest leaves a number."""
        if register not in self.words:
            self.declare_number(register)
            self.words[register] = self.reserve(WORD * words_of(register.dtype))
        return self.in_scratch(self.words[register])

    def fetch_numbers(self) -> None:
        """Read what nests have left in words."""
        waiting, self.unread = [r for r in self.unread if r in self.readers], []
        if waiting:
            self.wait_for([("word", r) for r in waiting], ())
        for register in waiting:
            self.define(register, loaded(register.dtype, self.word(register)))

    # -- memory

    def reserve(self, nbytes: int) -> int:
        """An offset in the scratch memory of a call."""
        offset = self.scratch_bytes
        self.scratch_bytes += -(-nbytes // 256) * 256
        return offset

    def scratch_for(self, key: Any, nbytes: int) -> str:
        """Scratch memory that all of a kind share."""
        if key not in self.offsets:
            self.offsets[key] = self.reserve(nbytes)
        return self.in_scratch(self.offsets[key])

    def in_scratch(self, offset: int) -> str:
        return f"{self.argument(('scratch',))} + {offset}"

    def memory_of(self, size: Size) -> str:
        """Memory of the call's own."""
        if is_static((size,)):
            return self.in_scratch(self.reserve(int(size)))
        self.require_outer(size)
        return self.argument(("fresh", len(self.arguments), size))

    def declare_memory(self, memory: Memory) -> None:
        if memory.left >= 0:
            self.left[memory.left] = memory
        if memory.origin in ("operand", "target"):
            start = self.argument((memory.origin, memory.position),
                                  is_written=memory.origin == "target")
        elif memory.origin == "alias":
            start = "nullptr"
        elif memory.origin in ("temp", "zeros"):
            start = self.memory_of(memory.nbytes)
        else:
            raise NotNativeError("a function that calls itself")
        if memory.origin == "operand":  # of one type, so that aliases may be at any
            start = f"const_cast<char *>({start})"
        self.head.append(f"char *{memory!r} = {start};")
        if memory.origin == "zeros":
            self.zeros.append((repr(memory), f"({self.size(memory.nbytes)} + 7) / 8"))

    def place(self, view: View) -> str:
        """The address of an array's first element."""
        return address_text(view, lambda operand: str(self.value(operand)))

    # -- waiting

    def wait_for(self, read: Iterable[Any], written: Iterable[Any]) -> None:
        """A barrier, where an access to this memory needs one."""
        scope = self.hazards.wait_for(read, written)
        self.barriers += bool(scope and self.loops)
        if scope == "block":
            self.em.line("__syncthreads();")
        elif scope:
            self.barrier()

    def note_launch(self, count: int) -> None:
        if self.loops:
            self.launches += count

    def barrier(self) -> None:
        self.em.line("if (gridDim.x == 1) __syncthreads(); else "
                     f"fusec_grid_barrier(reinterpret_cast<u32 *>({self.state(ARRIVED)}));")

    # -- the host

    def in_memory_of_threads(self, operand: Operand) -> str:
        """The address of a number that each thread has for itself."""
        kind, name = type_in_memory(operand.dtype), self.em.fresh("own")
        self.em.line(f"const {kind} {name} = {self.value(operand)};")
        return f"reinterpret_cast<const char *>(&{name})"

    def state(self, word: int) -> str:
        """Where a word of the state is."""
        return f"{self.argument(('state',))} + {WORD} * {word}"

    def leave(
        self, exit_: int, operands: Sequence[Operand | View] = (), index: str = "0",
        size: str = "0",
    ) -> None:
        """End the kernel at an exit; all threads come here."""
        em, self.exits[exit_] = self.em, list(operands)
        with em.block("if (is_leader())"):
            self.store_exit(exit_, operands, index, size)
            em.line(_LEFT)
        em.line("return;")

    def store_exit(
        self, exit_: int, operands: Sequence[Operand | View], index: str, size: str
    ) -> None:
        """The exit, and the numbers and arrays that its message shows, where the host reads."""
        em = self.em
        em.line(f"store<i64>({self.argument(('exit',))}, {exit_ + 1});")
        for word, text in ((INDEX, index), (SIZE, size)):
            em.line(f"store<i64>({self.state(word)}, i64({text}));")
        for word, operand in placed(operands, FIRST):
            if not isinstance(operand, View):
                em.line(f"{stored(self.value(operand)).format(self.state(word))};")
                continue
            em.line(f"store<u64>({self.state(word)}, u64({self.place_for_host(operand)}));")
            sizes = () if is_still(operand) else (*operand.shape, *self.steps(operand))
            for at, size in enumerate(sizes, word + 1):
                em.line(f"store<i64>({self.state(at)}, {self.size(size)});")

    def place_for_host(self, view: View) -> str:
        """Where the host reads an array that a message shows."""
        return self.place(view)

    def leave_where_a_check_failed(self, exit_: int, operands: Sequence[Operand | View]) -> None:
        """After a nest that checks."""
        self.wait_for([STATUS], ())
        with self.em.block(f"if (load<u32>({self.state(STATUS)}) != 0)"):
            self.leave(exit_, operands)

    def is_short(self, work: int) -> bool:
        """Whether nobody has to be able to end it: ``work`` is an iteration's ns of a CPU."""
        return self.times is not None and self.times <= MOST_UNWATCHED and (
            self.times * work <= MOST_WORK)

    def poll(self, cost: int, most: int) -> None:
        """Between two iterations: now and then see whether the host wants the kernel to end."""
        em = self.em
        if _SPENT not in self.head:
            self.head.append(_SPENT)
        em.line(f"spent += {cost};")
        with em.block(f"if (spent >= {most})"):
            em.line("spent = 0;")
            self.barrier()
            em.line(f"if (is_leader()) store<u32>({self.state(STOP)}, "
                    f"asked_to_stop({self.argument(('flag',), is_written=False)}));")
            self.barrier()
            with em.block(f"if (load<u32>({self.state(STOP)}) != 0)"):
                self.leave(INTERRUPTED - 1)

    @property
    def first_left(self) -> int:
        """The word of the state where addresses of results are that an exit leaves."""
        return FIRST + max((sum(map(words_shown, x)) for x in self.exits.values()), default=0)

    @property
    def state_words(self) -> int:
        return self.first_left + len(self.left)

    @property
    def most_threads(self) -> int:
        """Of a block: with fewer, each has more registers."""
        return MOST_THREADS if self.operations <= FEW_OPERATIONS else MOST_THREADS // 2

    def text(self, name: str) -> str:
        """The kernel, when all statements are printed."""
        left = [f"store<u64>({self.state(self.first_left + n)}, u64({memory!r}));"
                for n, memory in enumerate(self.left.values())]
        lines = [line.replace(_LEFT, " ".join(left)) for line in self.em.lines]
        body = [*(f"  {line}" for line in self.head), *self._start(), *lines, *self._end()]
        kinds = {"int64": "i64 ", "int32": "i32 "}
        params = ", ".join(
            kinds.get(a.param.kind, "char *" if a.param.is_written else "const char *")
            + a.param.name for a in self.arguments.values())
        bounds = f"__launch_bounds__({self.most_threads})"
        return "\n".join([f'extern "C" __global__ void {bounds} {name}({params}) {{', *body, "}"])

    @property
    def first_line(self) -> int:
        """The number of the first line of the statements in the text."""
        return 1 + len(self.head) + len(self._start())

    def _start(self) -> list[str]:
        """What is 0 when the statements begin."""
        lines = [f"  fill_with_zeros({memory}, {words});" for memory, words in self.zeros]
        return lines + self._printed_barrier() if lines else []

    def _printed_barrier(self) -> list[str]:
        before, self.em.lines = self.em.lines, []
        self.barrier()
        lines, self.em.lines = self.em.lines, before
        return lines

    def _end(self) -> list[str]:
        """The numbers that are results."""
        lines = [f"    {text};" for _, text in self.results.values()]
        return ["  if (is_leader()) {", *lines, "  }"] if lines else []
