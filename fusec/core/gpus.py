"""The GPUs that this process can use, through CuPy, which is imported when somebody asks."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

import numpy as np

from fusec.errors import FusecError

from .versions import install_command

# Whoever has arrays on GPUs; where none of them is loaded there can be none.
_LIBRARIES = ("cupy", "torch", "jax", "numba", "tensorflow", "paddle", "cudf")
_CUDA, _CUDA_MANAGED = 2, 13  # DLPack's numbers of devices
LEAST_CAPABILITY = 70  # what NVRTC makes code for; older machines lack what kernels use
notes: list[str] = []  # what is slower on them than it should be, for people
_OF_HOST = (np.ndarray, np.generic, int, float, complex, str)


class NoGpuError(FusecError):
    """A GPU is asked for, and this process has none."""


def package() -> Any:
    """CuPy; None where it is not installed.  Raises ``ImportError`` where it cannot be loaded."""
    if importlib.util.find_spec("cupy") is None:
        return None
    return importlib.import_module("cupy")


def cupy() -> Any:
    """CuPy, with a GPU; raises `NoGpuError`, which names the missing part."""
    try:
        found = package()
    except ImportError as error:
        raise NoGpuError(f"CuPy is installed and cannot be loaded: {error}",
                         cure=install_command("cuda", "--force-reinstall")) from error
    if found is None:
        raise NoGpuError("a GPU is used through CuPy, which is not installed",
                         cure=install_command("cuda"))
    try:
        number = found.cuda.runtime.getDeviceCount()
    except found.cuda.runtime.CUDARuntimeError as error:
        raise NoGpuError(
            f"CuPy finds no GPU that it can use: {error}",
            cure="install or update NVIDIA's driver: nvidia-smi says what there is") from error
    if not number:
        raise NoGpuError("CuPy finds no GPU", cure="nvidia-smi says what there is")
    has = int(found.cuda.Device(0).compute_capability)
    if has < LEAST_CAPABILITY:
        raise NoGpuError(f"GPU 0 is too old: it has compute capability {has // 10}.{has % 10}, and "
                         f"kernels need 7.0")
    return found


def missing() -> str:
    """Why there is no GPU, and the cure; empty where there is one."""
    try:
        cupy()
    except NoGpuError as error:
        return str(error).replace("\n  cure:", ":")
    return ""


def count() -> int:
    """How many GPUs there are; 0 where something is `missing`."""
    try:
        number: int = cupy().cuda.runtime.getDeviceCount()
    except NoGpuError:
        return 0
    return number


def used() -> int:
    """How many of them programs use: the back end has the driver of one."""
    return min(count(), 1)


def memory() -> int:
    """Bytes of the first one's memory."""
    total: int = cupy().cuda.runtime.memGetInfo()[1]
    return total


def may_have_arrays() -> bool:
    """Whether there may be an array on a GPU in this process."""
    return any(map(sys.modules.__contains__, _LIBRARIES))


def is_on_gpu(x: Any) -> bool:
    """Whether it is an array in the memory of a GPU, and says so: by ``__cuda_array_interface__``
    or DLPack."""
    if isinstance(x, _OF_HOST):
        return False
    if hasattr(x, "__cuda_array_interface__"):
        return True
    device = getattr(type(x), "__dlpack_device__", None)
    return device is not None and int(device(x)[0]) in (_CUDA, _CUDA_MANAGED)
