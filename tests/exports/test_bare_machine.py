"""A library is made where no other program can be started, and loaded as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .test_c_library import pytestmark as needs_v3

pytestmark = needs_v3
PROGRAM = """
import ctypes, os, shutil, subprocess, sys
import numpy as np
import fusec

def refuse(*args, **more):
    raise AssertionError("a program was started")

subprocess.Popen.__init__ = os.posix_spawn = os.system = os.fork = refuse
assert not any(map(shutil.which, ("cc", "gcc", "clang", "ld", "ar", "as")))
made = fusec.export_c({"f": (lambda x: np.tanh(x).sum(), (fusec.TensorSpec((None,)),))},
                      sys.argv[1] + "/bare", ("v3", "v4"))
library, x, out = ctypes.CDLL(str(made.shared)), np.arange(50.0), ctypes.c_double()
nbytes = ctypes.c_size_t()
assert library.f_sizes(ctypes.c_int64(50), None, ctypes.byref(nbytes)) == 0
memory = np.empty(nbytes.value, np.uint8)
code = library.f(ctypes.c_int64(50), ctypes.c_void_p(x.ctypes.data), ctypes.byref(out),
                 ctypes.c_void_p(memory.ctypes.data), nbytes)
assert (code, out.value) == (0, fusec.jit(lambda x: np.tanh(x).sum())(x))
fusec.wheel_stub(made.folder)
"""


def test_no_compiler_and_no_linker(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": "", "FUSEC_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", PROGRAM, tmp_path], env=environment,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
