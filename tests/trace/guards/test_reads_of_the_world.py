"""Reads of the world while a function is traced: a warning that names them, as of `open`."""

from __future__ import annotations

import datetime
import os
import socket
import subprocess
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import SideEffectWarning

X = np.arange(3.0)
FOLDER = Path(tempfile.mkdtemp())
ARRAY, TEXT, RAW = FOLDER / "a.npy", FOLDER / "a.txt", FOLDER / "a.bin"
np.save(ARRAY, X)
TEXT.write_text("2.5")
X.tofile(RAW)
READS: dict[str, Callable[[Any], Any]] = {
    "np.load": lambda x: x + np.load(ARRAY),
    "np.loadtxt": lambda x: x + np.loadtxt(TEXT),
    "np.genfromtxt": lambda x: x + np.genfromtxt(TEXT),
    "np.fromfile": lambda x: x + np.fromfile(RAW),
    "np.memmap": lambda x: x + np.memmap(RAW, np.float64, "r"),
    "Path.read_text": lambda x: x * float(TEXT.read_text()),
    "Path.read_bytes": lambda x: x * len(TEXT.read_bytes()),
    "Path.exists": lambda x: x * FOLDER.exists(),
    "os.path.exists": lambda x: x * os.path.exists(FOLDER),
    "os.listdir": lambda x: x * len(os.listdir(FOLDER)),
    "os.stat": lambda x: x * os.stat(FOLDER).st_size,
    "uuid.uuid4": lambda x: x * (uuid.uuid4().int % 7),
    "socket.gethostname": lambda x: x * len(socket.gethostname()),
    "subprocess.run": lambda x: x * subprocess.run(["true"]).returncode,
    "datetime.now": lambda x: x * datetime.datetime.now().second,
    "date.today": lambda x: x * datetime.date.today().day,
    "time.localtime": lambda x: x * time.localtime().tm_sec,
    "open": lambda x: x * float(open(TEXT).read()),  # noqa: SIM115
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("name", READS)
def test_a_read_is_told(name: str) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", SideEffectWarning)
        fusec.jit(READS[name])(X)
    told = [str(w.message) for w in seen if issubclass(w.category, SideEffectWarning)]
    assert told and name.removeprefix("Path.") in told[0]
    assert "while <lambda> is traced, not at each call" in told[0]


def test_what_is_no_read_is_not_told() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", SideEffectWarning)
        fusec.jit(lambda x: x + len(Path("a/b").parts) + np.zeros(3) + len(TEXT.name))(X)
