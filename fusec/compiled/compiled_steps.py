"""The kernels, library calls, branches and loops of a compiled function, for people and tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fusec.codegen.machine_code.native_nest import NativeNest
from fusec.codegen.plan.call_plan import CallPlan
from fusec.codegen.plan.control_program import ControlCode
from fusec.codegen.structured.calls.call_statements import NodeCall
from fusec.codegen.structured.kernel_statements import RunKernel
from fusec.core.display.amounts import count_text
from fusec.ir import Loc, dtype_name
from fusec.ir.sizes.dims import Dim
from fusec.ops import get
from fusec.ops.calls.checks import is_check
from fusec.ops.calls.host_calls import called_on_host
from fusec.ops.calls.library import LIBRARY, called_name
from fusec.ops.rows.windows import UNLIMITED
from fusec.passes.pipeline import BodyPasses

from .reports.explain import KernelOperand


class CompiledKernel:
    """One kernel of a compiled function, for people and tests."""

    def __init__(self, step: RunKernel) -> None:
        self.step = step
        self.kernel = step.kernel

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def lines(self) -> tuple[Loc, ...]:
        """The user's lines this kernel computes."""
        return self.kernel.locs

    @property
    def ops(self) -> int:
        """Scalar operations per element."""
        return self.kernel.operations

    @property
    def bytes_loaded(self) -> dict[str, int]:
        """Bytes read from each operand, every element counted once (row passes stay in cache)."""
        return self._bytes("in")

    @property
    def bytes_stored(self) -> dict[str, int]:
        """Bytes written to each operand."""
        return self._bytes("out")

    def _bytes(self, role: str) -> dict[str, int]:
        return {
            b.value: self.kernel.bytes_of(i) for i, b in enumerate(self.kernel.buffers)
            if b.role == role
        }

    @property
    def operands(self) -> list[KernelOperand]:
        return [
            KernelOperand(b.value, f"{dtype_name(b.dtype)}[{','.join(map(str, b.shape))}]",
                          self.kernel.bytes_of(i), b.role)
            for i, b in enumerate(self.kernel.buffers)
        ]

    @property
    def boundaries(self) -> tuple[str, ...]:
        """Why this kernel was not merged with those it reads from."""
        return self.step.boundaries

    @property
    def source(self) -> str:
        """The same loops as readable Python that Numba compiles."""
        from fusec.codegen.python.python_source import kernel_source

        return kernel_source(self.kernel)

    @property
    def loops(self) -> str:
        """The loop IR as text."""
        return str(self.kernel)

    @property
    def asm(self) -> Mapping[str, str]:
        """``ll``: LLVM IR as emitted, ``opt``: after LLVM's optimiser, ``asm``: machine code; of
        CUDA kernels ``cu``, the source, and ``ptx``.

        Of a kernel with several nests the texts of the first are followed by those of the others.
        """
        if not self.step.code:
            raise AttributeError(f"{self.name} is lowered but not compiled: call .compile() first")
        texts = [getattr(n, "asm", None) for n in self.step.code]
        if all(isinstance(t, Mapping) for t in texts):
            return _Joined([t for t in texts if t is not None])
        if not all(isinstance(n, NativeNest) for n in self.step.code):
            raise AttributeError(f"{self.name} is run by a back end that makes no machine code")
        codes = {id(n.code): n.code for n in self.step.code}.values()
        return {
            "ll": "\n".join(c.source for c in codes),
            "opt": "\n".join(c.llvm_ir for c in codes),
            "asm": "\n".join(c.assembly for c in codes),
        }

    @property
    def mode(self) -> str:
        """How its nests run: ``map``, ``row``, ``column`` or ``flat``."""
        return "+".join(dict.fromkeys(f.mode for f in self.step.forms))

    def __repr__(self) -> str:
        return (f"<kernel {self.name}: {count_text(self.ops, 'operation')}, "
                f"{count_text(len(self.kernel.nests), 'nest')}>")


class _Joined(Mapping[str, str]):
    """Texts of several nests, each made when it is asked for."""

    def __init__(self, parts: Sequence[Mapping[str, str]]) -> None:
        self.parts = parts

    def __getitem__(self, name: str) -> str:
        return "\n".join(part[name] for part in self.parts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts[0])

    def __len__(self) -> int:
        return len(self.parts[0])


class CompiledExtern:
    """One library call of a compiled function."""

    def __init__(self, step: NodeCall) -> None:
        self.step = step

    @property
    def name(self) -> str:
        node = self.step.node
        if node.op == "HostCall":
            return called_on_host(node.attrs)
        if node.op == "NumPy":
            ufunc = get(node.attrs["of"]).ufunc
            return f"np.{ufunc.__name__ if ufunc else node.attrs['of'].lower()}"
        if node.op in LIBRARY:
            return called_name(node.op, node.attrs["form"])
        if self._is_size:
            return "size"
        return get(node.op).called or f"np.{node.op.lower()}"

    @property
    def _is_size(self) -> bool:
        """Whether it makes a size of an integer, where others slice an array."""
        node = self.step.node
        return node.op == "Extent" and not isinstance(node.attrs["limit"], Dim) and (
            node.attrs["limit"] >= UNLIMITED)

    @property
    def loc(self) -> Loc | None:
        return self.step.node.loc

    @property
    def reason(self) -> str:
        if self._is_size:
            return "an integer of data is the length of an array, or a step"
        if get(self.step.node.op).picks or self.step.node.op == "Extent":
            return "an element or part at a run-time index, outside any loop"
        if self.step.node.op == "HostCall":
            return "called in program order, with the arrays and numbers of the run"
        if self.step.node.op == "Reshape":
            return "the memory order changes, so the array is copied"
        if self.step.node.op == "NumPy":
            return "complex numbers: NumPy computes it"
        if self.step.node.op in LIBRARY:
            return "NumPy's own library code computes it"
        if self.step.node.op == "MatMul":
            return "matrix products go to BLAS"
        return "a size here is only known when the code runs"

    def __repr__(self) -> str:
        return f"<library call {self.name}>"


class CompiledControl:
    """A branch or loop of a compiled function."""

    def __init__(self, step: NodeCall) -> None:
        assert step.run is not None
        self.step, self.run = step, step.run

    @property
    def name(self) -> str:
        node = self.step.node
        if "function" in node.attrs:
            return f"call of {node.attrs['function']}"
        return "loop" if node.op == "Loop" else "branch"

    @property
    def loc(self) -> Loc | None:
        return self.step.node.loc

    @property
    def is_native(self) -> bool:
        """Whether it runs as one compiled function."""
        return self.run.is_native

    @property
    def calls(self) -> list[str]:
        """Python functions that the native one calls, as far as its runs show."""
        return self.run.calls

    @property
    def reason(self) -> str:
        """How it runs, and why not natively."""
        if isinstance(self.run.program, ControlCode):
            return self.run.program.kind
        if self.run.is_native:
            count = self.run.nests
            fused = f" with {count_text(count, 'fused nest')}" if count else ""
            lanes = ", its lanes on several threads" if self.run.is_divisible else ""
            lanes += f", {self.run.lanes}" if self.run.lanes else ""
            text = f"one native function{fused}{lanes}"
            return text + (f", which calls Python: {', '.join(self.calls)}" if self.calls else "")
        return f"step by step from Python: {self.run.reason}"

    @property
    def structured(self) -> str:
        """The structured IR that the native function is made of, as text; empty where it has
        none."""
        program = self.run.program
        return "" if program is None else str(program.structured())

    @property
    def passes(self) -> Sequence[BodyPasses]:
        """What each of its sub-graphs went through when it was lowered, wherever it runs."""
        return self.run.passes

    @property
    def asm(self) -> Mapping[str, str]:
        """``ll``, ``opt`` and ``asm`` of the native function, or ``cu`` and ``ptx`` of a CUDA
        device's; empty where there is none."""
        if isinstance(self.run.program, ControlCode):
            return self.run.program.texts
        code = self.run.code
        return {} if code is None else {
            "ll": code.source, "opt": code.llvm_ir, "asm": code.assembly}

    def __repr__(self) -> str:
        return f"<{self.name}: {self.reason}>"


def library_steps(call_plan: CallPlan) -> list[CompiledExtern]:
    """The library calls among the steps."""
    return [CompiledExtern(s) for s in call_plan.externs
            if s.run is None and not is_check(s.node)]


def control_steps(call_plan: CallPlan) -> list[CompiledControl]:
    """The branches and loops among the steps."""
    return [CompiledControl(s) for s in call_plan.externs if s.run is not None]
