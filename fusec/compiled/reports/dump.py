"""`FUSEC_DUMP`: every artefact of a compile as a file, in a folder of its own."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .viewed import page_module

if TYPE_CHECKING:
    from fusec.compiled.compiled_trace import CompiledTrace
    from fusec.passes.pipeline import BodyPasses

_UNSAFE = re.compile(r"[^\w.+-]+")
INDEX = "index.txt"
MAX_NAME = 80


def dump_artifacts(
    directory: str | os.PathLike[str], name: str, artefacts: Mapping[str, str]
) -> Path:
    """Write ``artefacts`` (file name to text) under ``directory/name-000`` and return that folder.

    Graphs are numbered in the order given, ``trace.graph`` becoming ``00-trace.graph``; other names
    (``kernel_0.loops``, ``.py``, ``.ll``, ``.asm``, ``.cu``, ``loop_0.structured``) stay.  The
    number behind ``name`` is the first that is free, so no dump overwrites another, also with
    several processes.
    The folder appears complete or not at all.  Raises ``ValueError`` for a file name that is a
    path, ``OSError`` when the directory cannot be written.
    """
    files = _file_names(artefacts)
    os.makedirs(directory, exist_ok=True)
    work = tempfile.mkdtemp(prefix=".tmp-", dir=directory)
    try:
        for file, text in files.items():
            Path(work, file).write_text(text if text.endswith("\n") else text + "\n", "utf-8")
        Path(work, INDEX).write_text(_index(name, files), "utf-8")
        os.chmod(work, 0o755)
        return _claim(work, Path(directory), _safe(name))
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def _file_names(artefacts: Mapping[str, str]) -> dict[str, str]:
    """The files to write; graphs get their number."""
    numbers = itertools.count()
    files: dict[str, str] = {}
    for name, text in artefacts.items():
        if name in ("", ".", "..", INDEX) or Path(name).name != name:
            raise ValueError(f"internal error: not the name of an artefact: {name!r}")
        files[f"{next(numbers):02}-{name}" if name.endswith(".graph") else name] = text
    return files


def _index(name: str, files: Mapping[str, str]) -> str:
    width = max(map(len, files), default=0)
    lines = [f"{file:{width}}  {len(t.splitlines()):6} lines" for file, t in files.items()]
    return "\n".join([name, *lines]) + "\n"


def _safe(name: str) -> str:
    """``name`` with everything but letters, digits and ``._+-`` replaced, of bounded length."""
    return _UNSAFE.sub("_", name).strip("._")[:MAX_NAME] or "trace"


def _claim(work: str, directory: Path, name: str) -> Path:
    """Rename the finished folder to the first free number.

    Renaming a folder onto one with files in it fails on every system, which settles races.
    """
    for number in itertools.count():
        target = directory / f"{name}-{number:03}"
        if target.exists():
            continue
        try:
            os.rename(work, target)
        except OSError:
            if target.exists():  # another thread or process took this number
                continue
            raise
        return target
    raise AssertionError("unreachable")


def _bodies(name: str, parts: Sequence[BodyPasses]) -> dict[str, str]:
    """The sub-graphs of a branch or loop after each pass that changed them."""
    return {f"{name}.{number}-{part.body}-{k:02d}-{record.name}.graph": str(record.after)
            for number, part in enumerate(parts) for k, record in enumerate(part.records)
            if record.changed}


def dump(trace: CompiledTrace, directory: str) -> Path:
    """Write every artefact of a trace as a file below ``directory``; returns the folder."""
    files: dict[str, str] = {"trace.graph": str(trace.graph)}
    for number, record in enumerate(trace.passes):
        if record.changed:
            files[f"{number:02d}-{record.name}.graph"] = str(record.after)
        files |= _bodies(f"{number:02d}-{record.name}", record.inner)
    files["optimized.graph"] = str(trace.optimized_graph)
    for kernel in trace.kernels:
        files[f"{kernel.name}.loops"] = kernel.loops
        files[f"{kernel.name}.py"] = kernel.source
        files |= {f"{kernel.name}.{kind}": text for kind, text in kernel.asm.items()
                  if kind != "opt"}
    for number, control in enumerate(trace.control):
        name = f"{control.name.split()[0]}_{number}"
        files |= _bodies(name, control.passes)
        if control.is_native:
            files[f"{name}.structured"] = control.structured
            files |= {f"{name}.{kind}": text for kind, text in control.asm.items()
                      if kind != "opt"}
    files["plan.txt"] = str(trace.build.call_plan)
    files["explain.txt"] = trace.as_text()
    files["view.html"] = page_module().text_of(trace)
    return dump_artifacts(directory, trace.name, files)
