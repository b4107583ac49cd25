"""The functions that a C++ program calls: one that checks its arguments and launches the plan for
its sizes, those that say how much memory a call takes, and one for errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from fusec.core.records import dataclass, field
from fusec.ir.sizes.dims import Dim
from fusec.ir.sizes.polynomials import LEAST_ARGUMENT, MOST_ARGUMENT
from fusec.ir.sizes.size_questions import Computed
from fusec.ir.sizes.symbolic_numbers import stored

from ...exported.parts import (
    ERRORS,
    OF_PARAMETER,
    CheckFailure,
    ExportedFunction,
    NoTextError,
    Variant,
)
from ...structured.kernel_statements import RunKernel
from .host_text import HostText
from .kernels import ExportedKernels
from .launch_text import WORD, ConstantBlock, LaunchText, StatusWords, failure_of_kernel
from .loops import ExportedLoop
from .size_numbers import SizeNumbers

MOST_BYTES = 1 << 60
DRIVER = -100_000  # minus the driver's CUresult
USED_ERRORS = ("SIZES", "WORKSPACE")
USED_OF_PARAMETERS = ("NULL", "MISALIGNED", "OVERLAP")


@dataclass
class CudaEntry:
    """A function of the library, with the C++ of its parameters: as they are declared, and their
    names.  ``calls`` are those of its variants."""

    function: ExportedFunction
    declared: Sequence[str]
    status: StatusWords
    calls: list[LaunchText] = field(default_factory=list)

    @property
    def sizes(self) -> str:
        return ", ".join(f"int64_t {n}" for n in self.function.sizes)

    @property
    def names(self) -> str:
        """All arguments, of which complex numbers are two."""
        return ", ".join([*self.function.sizes, *(
            p.rpartition(" ")[2].lstrip("*") for part in self.declared for p in part.split(", "))])


def planned_entry(
    function: ExportedFunction, declared: Sequence[str], kernels: ExportedKernels,
    constants: ConstantBlock,
) -> CudaEntry:
    """The launches of all variants.  One that has no text is left out where there are others: a
    call of such sizes is an error."""
    status = StatusWords(function)
    entry = CudaEntry(function, declared, status)
    loops = [_loops(variant, kernels, status) for variant in function.variants]
    for k, (variant, own) in enumerate(zip([*function.variants], loops, strict=True)):
        try:
            with ExitStack() as stack:
                if variant.reopened is not None:
                    stack.enter_context(variant.reopened())
                entry.calls.append(LaunchText(function, variant, kernels, constants, status, own))
        except NoTextError:
            if not k:
                raise
            function.variants.remove(variant)
    return entry


def _loops(
    variant: Variant, kernels: ExportedKernels, status: StatusWords
) -> dict[int, tuple[ExportedLoop, int]]:
    """The kernels of its loops; what its checks say has its words then."""
    made: dict[int, tuple[ExportedLoop, int]] = {}
    nodes = variant.call_plan.graph.nodes
    for step in variant.call_plan.steps:
        if not isinstance(step, RunKernel):
            made[id(step)] = kernels.loop(step, variant.programs[step])
            if failures := made[id(step)][0].failures:
                status.word(failures)
        elif step.kernel.has_checks:
            status.word([failure_of_kernel(nodes, step)])
    return made


class CudaEntryText:
    """Prints the functions of one `CudaEntry`."""

    def __init__(self, entry: CudaEntry) -> None:
        self.entry, self.function = entry, entry.function

    def texts(self) -> Iterator[str]:
        function, name = self.function, self.function.name
        passed = ", ".join(filter(None, [self.entry.sizes, *self.entry.declared]))
        comma = ", " if passed else ""
        for k, call in enumerate(self.entry.calls):
            yield _function(f"int64_t {name}_bytes{k}({self.entry.sizes})", call.workspace())
            yield _function(f"int {name}_call{k}(const Library &library, {passed}{comma}"
                            "char *workspace, CUstream stream)", call.call())
        yield _function(f"int {name}(const Library &library, {passed}{comma}void *workspace, "
                        "size_t workspace_bytes, CUstream stream)", self._printed(self._call))
        sizes = f"{self.entry.sizes}, " if self.entry.sizes else ""
        yield _function(f"int64_t {name}_workspace_bytes({self.entry.sizes})",
                        self._printed(self._tell_workspace))
        if function.results:
            yield _function(f"int {name}_sizes({sizes}size_t *out_bytes)",
                            self._printed(self._tell_sizes))
        if function.has_shapes:
            yield _function(f"int {name}_shapes({sizes}int64_t *shapes)",
                            self._printed(self._tell_shapes))
        yield _function(f"int {name}_wait(const void *workspace, CUstream stream)",
                        self._printed(self._wait))
        yield _function(f"int {name}_error(int code, failure *failed)",
                        self._printed(self._error))

    @staticmethod
    def _printed(body: Callable[[HostText], None]) -> str:
        text = HostText()
        body(text)
        return "\n".join(text.lines)

    # -- the call

    def _call(self, text: HostText) -> None:
        for number, parameter in enumerate(self.function.parameters):
            if parameter.is_array:
                text.line(f"if (!{parameter.name}) return {of_parameter('NULL', number)};")
                if parameter.dtype.alignment > 1:
                    text.line(f"if (uint64_t({parameter.name}) % {parameter.dtype.alignment}) "
                              f"return {of_parameter('MISALIGNED', number)};")

        def run(k: int, sizes: SizeNumbers) -> None:
            text.line(f"const int64_t needed = {self.function.name}_bytes{k}("
                      f"{', '.join(self.function.sizes)});")
            text.line("if (needed && (!workspace || uint64_t(workspace) % 256 || "
                      "workspace_bytes < size_t(needed))) return WORKSPACE;")
            self._check_memory(text, sizes, self.function.variants[k])
            text.line(f"return {self.function.name}_call{k}(library, "
                      f"{', '.join(filter(None, [self.entry.names]))}"
                      f"{', ' if self.entry.names else ''}static_cast<char *>(workspace), stream);")

        self._where_served(text, run)

    def _where_served(self, text: HostText, then: Callable[[int, SizeNumbers], None]) -> None:
        """Print what happens for the sizes of each variant, and returns; then the error."""
        for k, variant in enumerate(self.function.variants):
            sizes = self.entry.calls[k].sizes
            tests = [*self._tests(variant, sizes)]
            with text.block(f"if ({' && '.join(tests)})" if tests else ""):
                then(k, sizes)
        text.line("return SIZES;")

    def _tests(self, variant: Variant, sizes: SizeNumbers) -> Iterator[str]:
        names = self.function.sizes
        yield from (f"{names[k]} == {value}" for k, value in variant.fixed)
        yield from (f"{names[a]} == {names[b]}" for a, b in variant.equal)
        for number in sorted(set(variant.symbols.values())):
            yield (f"{names[number]} >= {LEAST_ARGUMENT} && "
                   f"{names[number]} < {MOST_ARGUMENT}LL")
        given = [stored(t.nbytes) for t in variant.types]
        given += [stored(p.memory.nbytes) for p in variant.call_plan.temps]
        open_ = [n for n in given if isinstance(n, (Dim, Computed))]
        if open_:
            total = " + ".join(map(sizes.magnitude, open_))
            yield f"{total} < {float(MOST_BYTES)!r}"
        yield from map(sizes.holds, variant.questions)

    def _check_memory(self, text: HostText, sizes: SizeNumbers, variant: Variant) -> None:
        parameters = self.function.parameters
        arrays = [k for k, p in enumerate(parameters) if p.is_array]
        nbytes = {k: text.number(sizes.number(variant.types[k].nbytes)) for k in arrays}
        written = [k for k in arrays if parameters[k].is_written]
        for k in arrays:
            text.line(f"if (detail::overlap({parameters[k].name}, {nbytes[k]}, workspace, needed)) "
                      f"return {of_parameter('OVERLAP', k)};")
            for other in written:
                if other != k and (k not in written or other < k):
                    text.line(f"if (detail::overlap({parameters[k].name}, {nbytes[k]}, "
                              f"{parameters[other].name}, {nbytes[other]})) "
                              f"return {of_parameter('OVERLAP', k)};")

    # -- sizes

    def _tell_workspace(self, text: HostText) -> None:
        self._where_served(text, lambda k, _: text.line(
            f"return {self.function.name}_bytes{k}({', '.join(self.function.sizes)});"))

    def _tell_sizes(self, text: HostText) -> None:
        first = len(self.function.arguments)

        def tell(number: int, sizes: SizeNumbers) -> None:
            types = self.function.variants[number].types[first:]
            for k, type_ in enumerate(types):
                text.line(f"out_bytes[{k}] = size_t({text.number(sizes.number(type_.nbytes))});")
            text.line("return 0;")

        self._where_served(text, tell)

    def _tell_shapes(self, text: HostText) -> None:
        first = len(self.function.arguments)

        def tell(number: int, sizes: SizeNumbers) -> None:
            types = self.function.variants[number].types[first:]
            for k, size in enumerate(n for type_ in types for n in type_.shape):
                text.line(f"shapes[{k}] = {text.number(sizes.number(size))};")
            text.line("return 0;")

        self._where_served(text, tell)

    # -- errors

    def _wait(self, text: HostText) -> None:
        words = self.entry.status.words
        count = len(words)
        if count:
            text.line(f"int64_t words[{count}];")
            text.line("FUSEC_TRY(detail::driver(cuMemcpyDtoHAsync(words, CUdeviceptr(workspace), "
                      f"{WORD * count}, stream)));")
        text.line("FUSEC_TRY(detail::driver(cuStreamSynchronize(stream)));")
        for k, (first, failures) in enumerate(words):
            code = f"{first} + int(words[{k}])" if failures > 1 else f"{first + 1}"
            text.line(f"if (words[{k}]) return {code};")
        text.line("return 0;")

    def _error(self, text: HostText) -> None:
        with text.block("switch (code)"):
            for code, failure in _cases(self.function):
                file = "nullptr" if failure.loc is None else quoted(failure.loc.file)
                line = 0 if failure.loc is None else failure.loc.line
                text.line(f"case {code}: *failed = failure{{{quoted(failure.text)}, {file}, "
                          f"{line}}}; return 0;")
        with text.block("if (code < DRIVER)"):
            text.line('*failed = failure{"a call of the CUDA driver failed: its CUresult is '
                      f'{DRIVER} minus the code", nullptr, 0}};')
            text.line("return 0;")
        text.line("return -1;")


def _cases(function: ExportedFunction) -> Iterator[tuple[int, CheckFailure]]:
    yield from ((ERRORS[key][0], CheckFailure(ERRORS[key][1], None)) for key in USED_ERRORS)
    for first, text in (OF_PARAMETER[key] for key in USED_OF_PARAMETERS):
        for number, parameter in enumerate(function.parameters):
            if parameter.is_array:
                yield first - number, CheckFailure(f"{parameter.name} {text}", None)
    yield from enumerate(function.failures, 1)


def of_parameter(kind: str, number: int) -> int:
    """The code of an error of a parameter."""
    return OF_PARAMETER[kind][0] - number


def quoted(text: str) -> str:
    """A text as C++ writes it."""
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in (34, 63, 92) else f"\\{b:03o}"
                         for b in text.encode()) + '"'


def _function(head: str, body: str) -> str:
    """An inline function; parameters that it does not read are said to be unused."""
    parameters = head.partition("(")[2].rstrip(")").split(", ")
    names = [p.rpartition(" ")[2].lstrip("*&") for p in parameters]
    unused = [f"  (void){name};\n" for name in names
              if name and not re.search(rf"\b{name}\b", body)]
    return f"static inline {head} {{\n{''.join(unused)}{body}\n}}\n"
