"""`fusec.save`: functions and their Variables in a folder, which is there as a whole or not at all.

    fusec.save("model", {"predict": predict.concrete(fusec.TensorSpec((None, 64)))})
    loaded = fusec.load("model")                    # in any process, without the source
    loaded.predict(x)
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fusec.compiled.concrete_function import ConcreteFunction
from fusec.compiled.saved.open_signatures import with_sizes_of_one
from fusec.compiled.saved.reading import (
    INDEX,
    SAVED,
    SAVED_VERSION,
    graph_file,
    is_index,
    read_functions,
)
from fusec.compiled.saved.signature_form import (
    Concrete,
    compiler_of,
    parameters_form,
    signature_form,
)
from fusec.compiled.saved.tensors import CONSTANTS, VARIABLES, SavedArrays
from fusec.compiled.sizes.dynamic_function import OpenFunction
from fusec.core.versions import version_of
from fusec.errors import short_errors, unsupported, user_error
from fusec.ir.text.json_form import laid_out
from fusec.state import checkpoint_files as files
from fusec.state.object_names import named_variables
from fusec.state.variable import in_trace

from .function import Function
from .loading import LoadedProgram
from .wrapped_function import WrappedFunction

_EXCHANGE, _HERE = 2, -100  # of renameat2(2): RENAME_EXCHANGE, AT_FDCWD
_OWN = re.compile("|".join([*map(re.escape, (INDEX, VARIABLES, CONSTANTS)), r"graph-[0-9]+\.json"]))
_MOST_NAMED = 8  # files in one message


def save(
    path: str | os.PathLike[str], fns: Mapping[str, Any],
    variables: Mapping[str, Any] | None = None,
) -> None:
    """Write functions into the folder ``path``, which `load` reads in any process.

    ``fns`` maps names to results of ``f.concrete(...)``, to lists of these, to jitted functions
    (every signature that they hold a trace of), or to results of `wrap_function`.  ``variables``
    maps names to Variables, or to objects whose Variables are named as by `Checkpoint`; others
    that the functions use are saved under names of their own.  A folder that `save` wrote before,
    and nobody put anything into, is exchanged for the new one when that is whole.

    The folder holds graphs as JSON and values as safetensors: no pickles and no machine code.
    Arrays and numbers that the functions read from outside are saved with their values of now.

    Raises ``UnsupportedError``, with the line, for parts of programs that are no data: random
    generators, `fusec.print`, functions of `fusec.vectorize`, objects; ``TypeError`` for other
    values of ``fns``, ``ValueError`` for names that are no identifiers and where the folder has
    files of others, ``OSError`` where files cannot be written, ``ImportError`` without safetensors.
    """
    with short_errors:
        if in_trace():
            raise unsupported("fusec.save", cure="call it before or after the function")
        files.library()
        target = _target(Path(path))
        _check_target(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(".part", f".{target.name}.", target.parent))
        try:
            part.chmod(0o777 & ~_umask())
            _write(part, fns, named_variables(dict(variables or {})))
            _check_target(target)  # again, as tracing took its time
            _into_place(part, target)
        except OSError as error:
            if error.errno and error.filename is None:
                error.filename = str(target)  # a write that fails does not say where
            raise
        finally:
            shutil.rmtree(part, ignore_errors=True)


def _umask() -> int:
    umask = os.umask(0o22)
    os.umask(umask)
    return umask


def _target(path: Path) -> Path:
    """The folder that is written: through a link, where that leads to one."""
    target = path.absolute()
    return target.resolve() if target.is_symlink() and target.is_dir() else target


def _check_target(target: Path) -> None:
    """Raise where something is there that would be lost."""
    if not os.path.lexists(target):
        return
    found = os.listdir(target) if target.is_dir() else None
    if found is None or (found and not is_index(target / INDEX)):
        raise user_error(
            ValueError, f"{target} is there already, and no folder that fusec.save wrote",
            cure="name another folder, or remove it")
    foreign = sorted(name for name in found if not _OWN.fullmatch(name) or (
        not (target / name).is_file()))
    if foreign:
        raise user_error(
            ValueError, f"{target} has files that fusec.save did not write: it would remove "
            f"{', '.join(foreign[:_MOST_NAMED])}{' and more' * (len(foreign) > _MOST_NAMED)}",
            cure="move them elsewhere, or name another folder")


def _write(folder: Path, fns: Mapping[str, Any], named: dict[str, Any]) -> None:
    if not isinstance(fns, Mapping) or not fns:
        raise user_error(TypeError, "fusec.save needs a dict of functions by name", None,
                         'fusec.save(path, {"f": f})', values=[("given", repr(fns)[:60])])
    arrays, functions, number = SavedArrays(named), {}, 0
    for name, given in fns.items():
        _check_name(name)
        concretes = [*_concretes(name, given)]
        first = compiler_of(concretes[0][0])
        signatures = list[dict[str, Any]]()
        functions[name] = form = {
            "parameters": parameters_form(first), "fp": first.options.fp, "signatures": signatures}
        for concrete, is_beside in concretes:
            if compiler_of(concrete).options.fp != form["fp"]:
                raise user_error(ValueError, f"the signatures of {name!r} differ in fp", None,
                                 "save them under two names")
            signature = signature_form(
                concrete, arrays, is_wrapped=isinstance(given, WrappedFunction))
            text = laid_out(signature.graph).encode()
            _write_file(folder / graph_file(number), text)
            signatures.append(
                {"graph": number, "sha256": hashlib.sha256(text).hexdigest(),
                 "beside": is_beside, **signature.form})
            number += 1
    arrays.check_apart()
    index = {"format": SAVED, "version": SAVED_VERSION, "fusec": version_of("fusec"),
             "functions": functions, **arrays.write(folder)}
    _write_file(folder / INDEX, json.dumps(index, indent=1).encode())
    for function in read_functions(folder, {}).functions.values():  # what is written can be read
        for read in function.signatures:
            read.admit_once()


def _check_name(name: Any) -> None:
    if type(name) is not str or not name.isidentifier() or name.startswith("_") or (
            name != unicodedata.normalize("NFKC", name)) or (  # as Python reads `program.name`
            name == "functions" or hasattr(LoadedProgram, name) or name in ("path", "variables")):
        raise user_error(ValueError, f"{name!r} is no name of a saved function", None,
                         "use an identifier, which becomes an attribute of what fusec.load gives")


def _concretes(name: str, given: Any) -> Iterator[tuple[Concrete, bool]]:
    """The signatures that stand for a name, and whether each is beside one of open sizes."""
    if isinstance(given, ConcreteFunction):
        yield given, False
    elif isinstance(given, OpenFunction):
        yield given, False
        yield from ((concrete, True) for concrete in with_sizes_of_one(given))
    elif isinstance(given, WrappedFunction):
        yield given.concrete, False
    elif isinstance(given, Function):
        traces = [trace for trace in given.traces if trace.guards_hold()]
        if not traces:
            raise user_error(
                ValueError, f"{name!r} has no trace to save: {given!r}", None,
                "call it first, or save f.concrete(fusec.TensorSpec(...))")
        yield from ((trace, False) for trace in traces)
    elif isinstance(given, Iterable) and not isinstance(given, (str, Mapping)):
        parts = [concrete for part in given for concrete in _concretes(name, part)]
        if not parts:
            raise user_error(ValueError, f"{name!r} has no signatures")
        yield from parts
    else:
        raise user_error(
            TypeError, f"{name!r} is a {type(given).__name__}, which fusec.save does not take",
            None, "give f.concrete(...), a list of these, or a jitted function")


def _write_file(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    files.sync(path)


def _into_place(part: Path, target: Path) -> None:
    """The new folder takes the old one's name, and the old one that of the part."""
    files.sync(part)
    if os.path.lexists(target) and not _exchanged(part, target):
        old = target.with_name(f".{target.name}.{os.getpid()}.old")
        os.rename(target, old)  # a system that cannot exchange: between the two there is none
        try:
            os.rename(part, target)
        except OSError:
            os.rename(old, target)
            raise
        shutil.rmtree(old, ignore_errors=True)
    elif part.is_dir() and not os.path.lexists(target):
        os.rename(part, target)
    files.sync(target.parent)


def _exchanged(a: Path, b: Path) -> bool:
    """Exchange two names in one step; False where the system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    return bool(rename(_HERE, os.fsencode(a), _HERE, os.fsencode(b), _EXCHANGE) == 0)


__all__ = ["save"]
