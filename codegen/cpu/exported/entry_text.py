"""What a C program calls: the function that checks its arguments and chooses code for the CPU and
for the sizes, and the one that says how much memory a call takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fusec.core.records import dataclass, field
from fusec.ir.sizes.dims import Dim
from fusec.ir.sizes.polynomials import LEAST_ARGUMENT, MOST_ARGUMENT
from fusec.ir.sizes.size_questions import Computed
from fusec.ir.sizes.symbolic_numbers import stored

from ...exported.parts import ERRORS, OF_PARAMETER, ExportedFunction, Variant
from ..emitter import UNLIKELY, LlvmEmitter, literal
from ..size_text import F64, SizeText
from .call_text import parameters
from .questions import holds
from .workspace import Workspace

MOST_BYTES = 1 << 60
NOTHING_NAME = "fusec.nothing"  # behind arrays without elements; the longest vector and more
NOTHING = f"@{NOTHING_NAME} = internal constant [256 x i8] zeroinitializer, align 64"


@dataclass
class CEntry:
    """A function of the library as `EntryText` needs it: of each variant the workspace, and the
    names of its code for each level."""

    function: ExportedFunction
    workspaces: list[Workspace] = field(default_factory=list)
    codes: list[list[str]] = field(default_factory=list)


class EntryText:
    """Prints the functions of one `CEntry`; ``find_level`` names the function that gives the number
    of the CPU's level, -1 where it is too low, and "" where there is but one kind."""

    def __init__(self, entry: CEntry, find_level: str) -> None:
        self.entry, self.function, self.find_level = entry, entry.function, find_level

    def texts(self) -> Iterator[tuple[LlvmEmitter, str]]:
        yield self._printed("i32", self.function.name, f"{parameters(self.function)}, i64 %bytes",
                            self._call)
        sizes = "".join(f"i64 %n{k}, " for k in range(len(self.function.sizes)))
        results = "ptr %results, " if self.function.results else ""
        yield self._printed("i32", f"{self.function.name}_sizes",
                            f"{sizes}{results}ptr %workspace", self._tell_sizes)
        if self.function.has_shapes:
            yield self._printed("i32", f"{self.function.name}_shapes", f"{sizes}ptr %shapes",
                                self._tell_shapes)

    def _printed(
        self, type_: str, name: str, params: str, body: Callable[[LlvmEmitter], None]
    ) -> tuple[LlvmEmitter, str]:
        em = LlvmEmitter()
        body(em)
        return em, "\n".join([f"define {type_} @{name}({params}) nounwind {{", "entry:",
                              *em.allocas, *em.lines, "}"])

    # -- the call

    def _call(self, em: LlvmEmitter) -> None:
        level = self._level(em)
        for number, parameter in enumerate(self.function.parameters):
            if parameter.is_array:
                address = self._address(number)
                null = em.value(f"icmp eq ptr {address}, null")
                self._refuse(em, null, of_parameter("NULL", number))
                align = parameter.dtype.alignment
                if align > 1:
                    low = em.value(f"and i64 {em.value(f'ptrtoint ptr {address} to i64')}, "
                                   f"{align - 1}")
                    self._refuse(em, em.value(f"icmp ne i64 {low}, 0"),
                                 of_parameter("MISALIGNED", number))
        if self.function.state_bytes:
            address = em.value("ptrtoint ptr %state to i64")
            low = em.value(f"and i64 {address}, {self.function.state_align - 1}")
            null = em.value("icmp eq ptr %state, null")
            odd = em.value(f"icmp ne i64 {low}, 0")
            self._refuse(em, em.value(f"or i1 {null}, {odd}"), ERRORS["STATE"][0])
        for number, variant in enumerate(self.function.variants):
            with self.where_served(em, variant) as sizes:
                self._check_memory(em, sizes, variant, self.entry.workspaces[number])
                passed = self._backed(em, sizes, variant)
                self._run(em, level, self.entry.codes[number], passed)
        em.line(f"ret i32 {ERRORS['SIZES'][0]}")

    def _level(self, em: LlvmEmitter) -> str:
        if not self.find_level:
            return "0"
        level = em.value(f"call i32 @{self.find_level}()")
        self._refuse(em, em.value(f"icmp slt i32 {level}, 0"), ERRORS["CPU"][0])
        return level

    @staticmethod
    def _refuse(em: LlvmEmitter, condition: str, code: int) -> None:
        with em.branch(condition, UNLIKELY):
            em.line(f"ret i32 {code}")
            em.label(em.fresh("never"))

    def _address(self, number: int) -> str:
        count = len(self.function.arguments)
        return f"%a{number}" if number < count else f"%r{number - count}"

    @contextmanager
    def where_served(self, em: LlvmEmitter, variant: Variant) -> Iterator[SizeText]:
        """What is emitted inside runs where the variant is for the sizes, and returns."""
        sizes = SizeText(em, variant.symbol)
        tests = [em.value(f"icmp eq i64 %n{k}, {value}") for k, value in variant.fixed]
        tests += [em.value(f"icmp eq i64 %n{a}, %n{b}") for a, b in variant.equal]
        for number in sorted(set(variant.symbols.values())):
            above = em.value(f"sub i64 %n{number}, {LEAST_ARGUMENT}")
            tests.append(em.value(f"icmp ult i64 {above}, {MOST_ARGUMENT - LEAST_ARGUMENT}"))
        tests += self._fits(em, sizes, variant)
        with _nested(em, tests, iter(
                [lambda q=question: holds(sizes, q) for question in variant.questions])):
            yield sizes
            em.label(em.fresh("never"))

    def _fits(self, em: LlvmEmitter, sizes: SizeText, variant: Variant) -> list[str]:
        """That no number of bytes is beyond 64 bits, asked in floating point."""
        workspace = self.entry.workspaces[self.function.variants.index(variant)]
        given = [*(stored(type_.nbytes) for type_ in variant.types), *workspace.blocks]
        open_ = [n for n in given if isinstance(n, (Dim, Computed))]
        if not open_:
            return []
        total = sizes.magnitude(open_[0])
        for number in open_[1:]:
            total = em.value(f"fadd double {total}, {sizes.magnitude(number)}")
        return [em.value(f"fcmp olt double {total}, {literal(F64, float(MOST_BYTES))}")]

    def _check_memory(
        self, em: LlvmEmitter, sizes: SizeText, variant: Variant, workspace: Workspace
    ) -> None:
        if workspace.is_needed:
            needed = workspace.nbytes(em, sizes.number)
            small = em.value(f"icmp ult i64 %bytes, {needed}")
            null = em.value("icmp eq ptr %workspace, null")
            self._refuse(em, em.value(f"or i1 {small}, {null}"), ERRORS["WORKSPACE"][0])
        arrays = [k for k, p in enumerate(self.function.parameters) if p.is_array]
        begins = {k: em.value(f"ptrtoint ptr {self._address(k)} to i64") for k in arrays}
        ends = {k: em.add(begins[k], sizes.number(variant.types[k].nbytes)) for k in arrays}
        if workspace.is_needed:
            begins[-1] = em.value("ptrtoint ptr %workspace to i64")
            ends[-1] = em.add(begins[-1], needed)
        if self.function.state_bytes:
            begins[-2] = em.value("ptrtoint ptr %state to i64")
            ends[-2] = em.add(begins[-2], self.function.state_bytes)
        if len(begins) == len(arrays) + 2:
            before = em.value(f"icmp ult i64 {begins[-1]}, {ends[-2]}")
            after = em.value(f"icmp ult i64 {begins[-2]}, {ends[-1]}")
            self._refuse(em, em.value(f"and i1 {before}, {after}"), ERRORS["STATE"][0])
        written = [k for k in arrays if self.function.parameters[k].is_written]
        for k in arrays:
            for other in begins:
                if other < 0 or (other in written and other != k and (
                        k not in written or other < k)):
                    before = em.value(f"icmp ult i64 {begins[k]}, {ends[other]}")
                    after = em.value(f"icmp ult i64 {begins[other]}, {ends[k]}")
                    self._refuse(em, em.value(f"and i1 {before}, {after}"),
                                 of_parameter("OVERLAP", k))

    def _backed(self, em: LlvmEmitter, sizes: SizeText, variant: Variant) -> str:
        """What the code gets: for an argument without elements an address with memory behind, as
        it may load before it checks an index."""
        passed = [*parameters(self.function).split(", ")]
        for number in range(len(self.function.arguments)):
            nbytes = variant.types[number].nbytes
            if self.function.parameters[number].is_array and may_be_zero(nbytes):
                none = em.value(f"icmp eq i64 {sizes.number(nbytes)}, 0")
                address = self._address(number)
                em.declare(NOTHING)
                backed = em.value(f"select i1 {none}, ptr @{NOTHING_NAME}, ptr {address}")
                passed[passed.index(f"ptr {address}")] = f"ptr {backed}"
        return ", ".join(passed)

    def _run(self, em: LlvmEmitter, level: str, codes: Sequence[str], passed: str) -> None:
        params = parameters(self.function)
        for number, code in enumerate(codes):
            em.declare(f"declare hidden i64 @{code}({_types(params)})")
            run = f"call i64 @{code}({passed})"
            if number == len(codes) - 1:
                self._return(em, run)
                return
            with em.branch(em.value(f"icmp eq i32 {level}, {number}")):
                self._return(em, run)
                em.label(em.fresh("never"))

    @staticmethod
    def _return(em: LlvmEmitter, run: str) -> None:
        em.line(f"ret i32 {em.value(f'trunc i64 {em.value(run)} to i32')}")

    # -- sizes

    def _tell_sizes(self, em: LlvmEmitter) -> None:
        first = len(self.function.arguments)
        for number, variant in enumerate(self.function.variants):
            with self.where_served(em, variant) as sizes:
                if self.function.results:
                    with em.branch(em.value("icmp ne ptr %results, null")):
                        for k in range(len(self.function.results)):
                            at = em.value(f"getelementptr i64, ptr %results, i64 {k}")
                            nbytes = sizes.number(variant.types[first + k].nbytes)
                            em.line(f"store i64 {nbytes}, ptr {at}")
                with em.branch(em.value("icmp ne ptr %workspace, null")):
                    nbytes = self.entry.workspaces[number].nbytes(em, sizes.number)
                    em.line(f"store i64 {nbytes}, ptr %workspace")
                em.line("ret i32 0")
        em.line(f"ret i32 {ERRORS['SIZES'][0]}")


    def _tell_shapes(self, em: LlvmEmitter) -> None:
        first = len(self.function.arguments)
        for variant in self.function.variants:
            with self.where_served(em, variant) as sizes:
                # Without memory for them it says whether there is code for the sizes, as `_sizes`.
                null = em.value("icmp eq ptr %shapes, null")
                with em.branch(null, UNLIKELY):
                    em.line("ret i32 0")
                    em.label(em.fresh("never"))
                shapes = [n for type_ in variant.types[first:] for n in type_.shape]
                for k, size in enumerate(shapes):
                    at = em.value(f"getelementptr i64, ptr %shapes, i64 {k}")
                    em.line(f"store i64 {sizes.number(size)}, ptr {at}")
                em.line("ret i32 0")
        em.line(f"ret i32 {ERRORS['SIZES'][0]}")


def may_be_zero(number: Any) -> bool:
    """Whether a number of bytes is 0, or follows from sizes."""
    return isinstance(stored(number), (Dim, Computed)) or not int(stored(number))


def of_parameter(kind: str, number: int) -> int:
    """The code of an error of a parameter."""
    return OF_PARAMETER[kind][0] - number


@contextmanager
def _nested(em: LlvmEmitter, tests: Sequence[str], more: Iterator[Any]) -> Iterator[None]:
    """Where all of the tests hold, then all of ``more``, which are emitted where those did."""
    if tests:
        condition = tests[0]
        for test in tests[1:]:
            condition = em.value(f"and i1 {condition}, {test}")
        with em.branch(condition), _nested(em, (), more):
            yield
        return
    make = next(more, None)
    if make is None:
        yield
        return
    with em.branch(make()), _nested(em, (), more):
        yield


def _types(params: str) -> str:
    """The types of parameters, without their names."""
    return ", ".join(part.rpartition(" ")[0] for part in params.split(", "))


__all__ = ["NOTHING", "NOTHING_NAME", "CEntry", "EntryText", "of_parameter"]
