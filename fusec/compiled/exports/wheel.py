"""A Python package over a library for C, and a wheel of it.

Wheels are zip files as PEP 427 says: the package, and a folder with ``METADATA``, ``WHEEL`` and
``RECORD``, the hashes of all files.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import keyword
import os
import re
import sys
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fusec.codegen.exported.parts import CField, CParameter, ExportedFunction, GivenResult, layout
from fusec.core import versions
from fusec.errors import user_error

FORMAT = 2  # 1 had no "gives"
DESCRIPTION = "description.json"
# PEP 440's versions without epochs and local parts.
_VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?", re.ASCII)
_GLIBC, _GLIBC_OF_THREADS = "2.17", "2.34"  # the oldest; from 2.34 on it has the threads itself
_WHEN = (1980, 1, 1, 0, 0, 0)  # zip's first day: the same files give the same wheel


def description(
    name: str, machine: str, functions: Sequence[ExportedFunction], fields: Sequence[CField],
    threads: str,
) -> bytes:
    """The library in JSON, for who calls it from other languages."""
    return (json.dumps({
        "format": FORMAT, "name": name, "machine": machine,
        "glibc": _GLIBC_OF_THREADS if threads == "pool" else _GLIBC,
        "state_bytes": layout(fields)[0],
        "fields": [{"name": f.name, "offset": f.offset, "dtype": f.dtype.name,
                    "shape": list(f.value.shape)} for f in fields],
        "functions": [_function(f) for f in functions]}, indent=1) + "\n").encode()


def _function(function: ExportedFunction) -> dict[str, Any]:
    return {"name": function.name, "text": function.text, "sizes": list(function.sizes),
            "axes": [list(axis) for axis in function.axes],
            "has_state": bool(function.state_bytes),
            "arguments": [_parameter(p) for p in function.arguments],
            "results": [_parameter(p) | {
                "counts": [list(c) for c in p.counts], "counted": p.counted is not None}
                for p in function.results],
            "gives": [*map(_given, function.gives)]}


def _given(given: GivenResult) -> dict[str, Any]:
    """A result of the Python function: one of C's, an argument, a value that JSON has, or a text
    about another one."""
    if given.result is not None:
        return {"result": given.result}
    if given.argument is not None:
        return {"argument": given.argument}
    if given.value is None or type(given.value) in (str, int):
        return {"value": given.value}
    return {"text": given.text}


def _parameter(parameter: CParameter) -> dict[str, Any]:
    return {"name": parameter.name, "dtype": parameter.dtype.name, "rank": len(parameter.shape),
            "shape": [n if isinstance(n, str) else int(n) for n in parameter.shape],
            "is_array": parameter.is_array, "is_written": parameter.is_written}


def write_wheel(path: str | os.PathLike[str], version: str) -> Path:
    """See `fusec.wheel_stub`."""
    folder = Path(path)
    about = _about(folder)
    if about.get("format") != FORMAT:
        raise user_error(ValueError, f"{folder} has the format {about.get('format')}, and this "
                         f"fusec reads {FORMAT}", None, "export the library anew")
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise user_error(ValueError, f"{version!r} is no version of a package", None,
                         'give one such as "1.0"')
    _check_results(about["functions"])
    name = about["name"]
    if keyword.iskeyword(name) or name in (*sys.stdlib_module_names, "numpy"):
        what = "a word of Python, and no" if keyword.iskeyword(name) else "another"
        raise user_error(ValueError, f"{name} is {what} package", None,
                         "export the library to a folder of another name")
    shared = f"lib{name}.so"
    package = {"__init__.py": _module(about).encode(), DESCRIPTION: (
        folder / DESCRIPTION).read_bytes(), shared: (folder / shared).read_bytes(),
        "_library.py": Path(__file__).with_name("stub_library.py").read_bytes()}
    write_files(folder / "python" / name, package)
    glibc = about.get("glibc", _GLIBC).replace(".", "_")
    tag = f"py3-none-manylinux_{glibc}_{about['machine']}"
    wheel = folder / f"{name}-{version}-{tag}.whl"
    _write_zip(wheel, name, version, tag, {f"{name}/{f}": d for f, d in package.items()})
    return wheel


def _about(folder: Path) -> dict[str, Any]:
    """What the description says."""
    try:
        about = json.loads((folder / DESCRIPTION).read_text())
    except (OSError, ValueError) as error:
        about, why = None, str(error)
    else:
        why = f"{DESCRIPTION} does not describe one"
    if not isinstance(about, dict):
        raise user_error(ValueError, f"{folder} has no library of fusec.export_c: {why}", None,
                         "give the folder that fusec.export_c wrote")
    return about


def _check_results(functions: Sequence[Mapping[str, Any]]) -> None:
    """Raises ``ValueError`` for results that a package cannot give."""
    others = [f"result {k} of {function['name']} is {given['text']}" for function in functions
              for k, given in enumerate(function["gives"]) if "text" in given]
    if others:
        raise user_error(ValueError, "a package gives arrays, numbers, texts and None, and "
                         + "; ".join(others), None, "leave it out of the function that is exported")


def _write_zip(
    path: Path, name: str, version: str, tag: str, files: Mapping[str, bytes]
) -> None:
    info = f"{name}-{version}.dist-info"
    made = versions.version_of("fusec") or ""
    metadata = (f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
                f"Summary: Functions exported by fusec {made}\nRequires-Python: >=3.10\n"
                "Requires-Dist: numpy>=1.23\n")
    wheel = f"Wheel-Version: 1.0\nGenerator: fusec {made}\nRoot-Is-Purelib: false\nTag: {tag}\n"
    whole = {**files, f"{info}/METADATA": metadata.encode(), f"{info}/WHEEL": wheel.encode()}
    record = [f"{file},sha256={_hash(data)},{len(data)}\n" for file, data in whole.items()]
    whole[f"{info}/RECORD"] = "".join([*record, f"{info}/RECORD,,\n"]).encode()
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, data in whole.items():
            entry = zipfile.ZipInfo(file, _WHEN)
            entry.external_attr = (0o755 if file.endswith(".so") else 0o644) << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    write_files(path.parent, {path.name: zipped.getvalue()})


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """All files, or none where one cannot be written: an older library stays whole.

    They are renamed into place, as a process may have the older ones in its memory; but a pipe or
    a device in a place stays, and is written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    parts: dict[Path, Path] = {}
    try:
        for name, data in files.items():
            path = folder / name
            if path.exists() and not path.is_file() and not path.is_dir():
                path.write_bytes(data)
            else:
                parts[path] = path.with_name(f".{name}.{uuid.uuid4().hex}.part")
                _write_part(parts[path], data, is_library=path.suffix == ".so")
        for path, part in parts.items():
            os.replace(part, path)
    except OSError as error:
        if error.filename is None:
            error.filename = str(folder)  # a write that fails does not say where
        raise
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


def _write_part(path: Path, data: bytes, *, is_library: bool) -> None:
    with open(path, "xb") as file:  # who may read it, umask says
        file.write(data)
    mode = path.stat().st_mode
    path.chmod(mode | (mode & 0o444) >> 2 if is_library else mode)


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _module(about: Mapping[str, Any]) -> str:
    """The package's ``__init__.py``: a function for each of the library's."""
    names = [f["name"] for f in about["functions"]]
    lines = [f'"""Functions of the library {about["name"]}: {", ".join(names)}."""', "",
             "from pathlib import Path", "", "from ._library import StubLibrary as _Library",
             "from ._library import StubState as _State", "",
             "_library = _Library(Path(__file__).parent)"]
    has_state = any(f["has_state"] for f in about["functions"])
    if has_state:
        lines += ["", "", "class State(_State):", '    """State that calls keep."""', "",
                  "    def __init__(self):", "        super().__init__(_library)", "", "",
                  "STATE = State()  # of calls that give none"]
    for function in about["functions"]:
        lines += ["", "", *_definition(function)]
    return "\n".join([*lines, ""])


def _definition(function: Mapping[str, Any]) -> list[str]:
    names = [p["name"] for p in function["arguments"]]
    state = ["state=None"] if function["has_state"] else []
    name = function["name"]
    called = f"{name}_" if keyword.iskeyword(name) or name in ("State", "STATE") else name
    passed = [*names, *(["state=STATE if state is None else state"] if state else [])]
    head = ", ".join([*names, *(["*", *state] if state else [])])
    shown = [_shown(p) for p in function["arguments"]]
    gives = [_shown_result(given, function) for given in function["gives"]]
    text = _escaped(function["text"])
    return [f"def {called}({head}):",
            f'    """{"; ".join(shown) or "No arguments"}.', "",
            f"    Gives {'; '.join(gives) or 'None'}.",
            *(["", f"    Of the exported function {text}."] if text else []), '    """',
            f'    return _library.functions["{name}"]({", ".join(passed)})']


def _shown_result(given: Mapping[str, Any], function: Mapping[str, Any]) -> str:
    if "result" in given:
        return _shown(function["results"][given["result"]])
    if "argument" in given:
        return f"a copy of {_shown(function['arguments'][given['argument']])}"
    return _escaped(repr(given["value"]))


def _escaped(text: str) -> str:
    """As it stands between three quotes."""
    return " ".join(text.split()).replace("\\", r"\\").replace('"', r'\"')


def _shown(parameter: Mapping[str, Any]) -> str:
    shape = f"[{', '.join(map(str, parameter['shape']))}]" if parameter["rank"] else ""
    return f"{parameter['name']}: {parameter['dtype']}{shape}"
