"""Code and constants of one module lie where the system has room, however far apart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = '''
import ctypes

import numpy as np

import fusec
from fusec.codegen.machine_code import llvm

PRIVATE, NO_RESERVE, PAGE = 0x22, 0x4000, 4096
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t, *[ctypes.c_int] * 3], ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def taken(nbytes):
    return libc.mmap(None, nbytes, 0, PRIVATE | NO_RESERVE, -1, 0)


fusec.jit(lambda x: np.sin(x))(np.ones(3))  # loads what it needs itself
border, nbytes, singles = taken(6 << 30), 1 << 30, []
while nbytes >= PAGE:  # fill all room above
    address = taken(nbytes)
    if address < border:
        libc.munmap(address, nbytes)
        nbytes //= 2
    elif nbytes == PAGE:
        singles.append(address)
values = ", ".join(f"double {n}.0" for n in range(64))
for n, address in enumerate(singles[:8]):
    libc.munmap(address, PAGE)  # for the code alone
    code = llvm.compile_ir(f"""
@c = private constant [64 x double] [{values}]
define double @f(i64 %i) {{
  %p = getelementptr [64 x double], ptr @c, i64 0, i64 %i
  %x = load double, ptr %p
  %y = fadd double %x, {n}.25
  ret double %y
}}""", 2)
    f = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(code.address("f"))
    assert f(7) == 7 + n + 0.25
x = np.linspace(0, 1, 1000)
np.testing.assert_allclose(fusec.jit(lambda x: np.exp(x) * 3)(x), np.exp(x) * 3)
print(len(singles) > 0)
'''


@pytest.mark.one_python
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="numbers of mmap")
def test_more_than_two_gibibytes_apart(tmp_path: Path) -> None:
    """As beside large arrays: LLVM ended the process."""
    environment = {**os.environ, "FUSEC_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, text=True,
                          capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "True"
