"""Texts of kernels for people: its CUDA C++, and PTX where NVRTC is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..driver import nvrtc
from ..module import CudaModule


class KernelTexts(Mapping[str, str]):
    """``cu``: the source; ``ptx``: NVRTC's code of it for sm_80, compiled when it is asked for.

    ``ptx`` is among the names only where NVRTC is; asking for it elsewhere raises `NoNvrtcError`.
    """

    def __init__(self, *modules: CudaModule, py: str = "") -> None:
        """``py``: the text that launches them, where there is one."""
        self.modules, self._py = modules, py

    @property
    def module(self) -> CudaModule:
        """The module of a kernel that has one."""
        (module,) = self.modules
        return module

    def __getitem__(self, name: str) -> str:
        if name == "py" and self._py:
            return self._py
        if name == "cu":
            return "\n".join(dict.fromkeys(module.source for module in self.modules))
        if name == "ptx":
            made = [nvrtc.compile(module, nvrtc.ARCHITECTURES[0]) for module in self.modules]
            return "\n".join(dict.fromkeys(code.ptx for code in made))
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        names = ("cu", "ptx") if nvrtc.is_available() else ("cu",)
        return iter(("py", *names) if self._py else names)

    def __len__(self) -> int:
        return sum(1 for _ in self)
