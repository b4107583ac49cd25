"""NVIDIA's disassembler: the machine code of a module as text, without a GPU or a driver."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from fusec.errors import FusecError


class NoDisassemblerError(FusecError):
    """NVIDIA's disassembler is needed, and there is none."""


def disassembler() -> str | None:
    """The program ``nvdisasm``: of the package ``nvidia-cuda-nvdisasm``, of a toolkit at
    ``CUDA_PATH``, or on ``PATH``."""
    package = importlib.util.find_spec("nvidia")
    folders = [Path(p) for p in (package.submodule_search_locations or ())] if package else []
    found = [p for folder in folders for p in sorted(folder.glob("*/bin/nvdisasm"))]
    if toolkit := os.environ.get("CUDA_PATH"):
        found.append(Path(toolkit, "bin", "nvdisasm"))
    return next((str(p) for p in found if p.is_file()), None) or shutil.which("nvdisasm")


def disassembled(cubin: bytes, *options: str) -> str:
    """The text of a module's machine code, with more ``options`` for the disassembler; raises
    `NoDisassemblerError`."""
    program = disassembler()
    if program is None:
        raise NoDisassemblerError("NVIDIA's disassembler nvdisasm was not found",
                                  cure="pip install nvidia-cuda-nvdisasm")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return subprocess.run([program, "-c", *options, file.name], capture_output=True, text=True,
                              check=True).stdout
