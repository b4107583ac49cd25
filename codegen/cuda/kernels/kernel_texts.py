"""Texts of a kernel for people: its CUDA C++, and PTX where NVRTC is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..driver import nvrtc
from ..module import CudaModule


class KernelTexts(Mapping[str, str]):
    """``cu``: the source; ``ptx``: NVRTC's code of it for sm_80, compiled when it is asked for.

    ``ptx`` is among the names only where NVRTC is; asking for it elsewhere raises `NoNvrtcError`.
    """

    def __init__(self, module: CudaModule) -> None:
        self.module = module

    def __getitem__(self, name: str) -> str:
        if name == "cu":
            return self.module.source
        if name == "ptx":
            return nvrtc.compile(self.module, nvrtc.ARCHITECTURES[0]).ptx
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(("cu", "ptx") if nvrtc.is_available() else ("cu",))

    def __len__(self) -> int:
        return sum(1 for _ in self)
