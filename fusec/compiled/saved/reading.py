"""Folders that `fusec.save` wrote, read: nothing of them is believed, and nothing of them is run.

``saved.json`` must have the form that is checked here, each graph the hash that it says, each
array its dtype, shape and hash; graphs are admitted before they run (`fusec.ops.graphs.admit`).
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fusec.core.records import replace
from fusec.core.versions import version_of
from fusec.errors import FusecError, user_error
from fusec.ir.sizes.computed_forms import NoFormError, computed_of
from fusec.ir.sizes.dims import Dim
from fusec.ir.sizes.dynamic_sizes import Assumption
from fusec.ir.sizes.size_questions import Computed, Question, Succeeds
from fusec.ir.text.json_form import open_graph_from_json
from fusec.ir.text.parse import GraphSyntaxError
from fusec.ir.text.parse_dims import with_sizes_of_arguments
from fusec.state import checkpoint_files as files
from fusec.state.variable import Variable

from .plain_values import NotPlainError, plain_value
from .signature import OutsideValue, SavedOutput, SavedSignature, StaticArgument
from .structures import SavedStructureError, StructureReader
from .tensors import read_constants, read_variables
from .view_steps import step_of

SAVED, SAVED_VERSION, INDEX = "fusec saved functions", 1, "saved.json"
_MOST_READS = 100  # of a folder that is exchanged all the time
_START = 80  # bytes of an index, with its format
_MOST_BYTES = 1 << 26  # of one constant result: a dtype may say any number of them an element
_FIELDS = {"parameters": list, "fp": str, "signatures": list}
_SIGNATURE = {"graph": int, "sha256": str, "beside": bool, "inputs": dict, "leaves": list,
              "outside": list, "result": dict, "outputs": list, "orders": list, "assumed": list}
_WORDED = (NotPlainError, SavedStructureError, GraphSyntaxError, NoFormError)
_KINDS = {kind.name: kind for kind in (
    inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.KEYWORD_ONLY,
    inspect.Parameter.VAR_KEYWORD)}


class ReadFunction(NamedTuple):
    """A function of a folder: its parameters, options and signatures."""

    parameters: inspect.Signature
    fp: str
    signatures: tuple[SavedSignature, ...]


class ReadFolder(NamedTuple):
    """The functions and Variables of a folder, by name."""

    functions: dict[str, ReadFunction]
    variables: dict[str, Variable]


def graph_file(number: int) -> str:
    """The name of the file with that graph."""
    return f"graph-{number}.json"


def is_index(path: Path) -> bool:
    """Whether a file begins as that of `fusec.save` does; one of another program has its name."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return json.dumps(SAVED).encode() in file.read(_START)


def refused(path: Path, why: str) -> FusecError:
    """The error for a folder, or a file in it, that was not saved so."""
    return user_error(ValueError, f"{path} cannot be loaded: {_shown(why)}", None,
                      "save the functions anew; nothing of the folder was run")


def _shown(text: str) -> str:
    """A text of a file, for a terminal: of its control characters only ends of lines."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def read_functions(folder: Path, types: Mapping[str, type]) -> ReadFolder:
    """See the module.  Raises ``ValueError`` for a folder that is damaged or none of ours, and
    ``FileNotFoundError`` where there is none.

    Where a save exchanges the folder meanwhile, of which files of both would be read, it is read
    again.
    """
    for _ in range(_MOST_READS):
        before = _identity(folder)
        try:
            return _read(folder, types)
        except (FusecError, OSError):
            if _identity(folder) == before:
                raise
    return _read(folder, types)


def _identity(folder: Path) -> tuple[int, ...]:
    try:
        found = folder.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def _read(folder: Path, types: Mapping[str, type]) -> ReadFolder:
    path = folder / INDEX
    if not path.is_file():
        raise user_error(FileNotFoundError, f"there are no saved functions at {folder}", None,
                         "give the folder that fusec.save wrote")
    index = _index(path)
    variables = read_variables(folder, index["variables"], refused)
    constants = read_constants(folder, index["constants"], refused)
    reader = StructureReader(types)
    functions = {}
    for name, form in index["functions"].items():
        if not name.isidentifier() or name.startswith("_") or not _has(form, _FIELDS) or (
                form["fp"] not in ("contract", "strict", "fast")) or not form["signatures"]:
            raise refused(path, f"its function {name[:60]!r} has not the form of one")
        try:
            parameters = _parameters(form["parameters"])
            names = tuple(parameters.parameters)
            signatures = tuple(
                _Reader(folder, name, row, variables, constants, reader).signature(names)
                for row in form["signatures"])
        except FusecError:
            raise
        except Exception as error:  # default deny: whatever goes wrong with hostile data
            why = str(error) if isinstance(error, _WORDED) else f"{type(error).__name__}: {error}"
            raise refused(path, f"of the function {name!r}: {why}") from None
        functions[name] = ReadFunction(parameters, form["fp"], signatures)
    return ReadFolder(functions, variables)


def _index(path: Path) -> Any:
    try:
        index = json.loads(files.read_bytes(path, refused).decode("utf-8"))
    except FusecError:
        raise
    except (ValueError, RecursionError) as error:
        raise refused(path, f"it is no JSON: {str(error)[:200]}") from None
    if not isinstance(index, dict) or index.get("format") != SAVED:
        raise refused(path, f"its format is not {SAVED!r}")
    version, writer = index.get("version"), _shown(str(index.get("fusec"))[:40])
    if type(version) is int and version > SAVED_VERSION:
        raise user_error(
            ValueError, f"{path.parent} was saved by a newer fusec", None,
            "load it with that version, or save it with this one",
            values=[("its format", f"{str(version)[:20]}, of fusec {writer}"),
                    ("read here", f"up to {SAVED_VERSION}, by fusec " + str(version_of("fusec")))])
    if type(version) is not int or version < 1 or not _has(index, {
            "format": str, "version": int, "fusec": str, "functions": dict, "variables": dict,
            "constants": dict}):
        raise refused(path, "it has not the form of saved functions")
    return index


def _has(form: Any, fields: Mapping[str, type]) -> bool:
    return type(form) is dict and set(form) == set(fields) and all(
        type(form[name]) is kind for name, kind in fields.items())


def _parameters(rows: list[Any]) -> inspect.Signature:
    parameters = []
    for row in rows:
        if type(row) is not list or len(row) not in (2, 3) or type(row[0]) is not str or (
                row[1] not in _KINDS):
            raise NotPlainError(f"{str(row)[:60]} is no parameter")
        default = plain_value(row[2]) if len(row) == 3 else inspect.Parameter.empty
        try:
            parameters.append(inspect.Parameter(row[0], _KINDS[row[1]], default=default))
        except ValueError as error:
            raise NotPlainError(str(error)) from None
    try:
        return inspect.Signature(parameters)
    except ValueError as error:
        raise NotPlainError(str(error)) from None


class _Reader:
    """One signature's row of ``saved.json``."""

    def __init__(
        self, folder: Path, name: str, row: Any, variables: Mapping[str, Variable],
        constants: Mapping[str, np.ndarray], reader: StructureReader,
    ) -> None:
        if not _has(row, _SIGNATURE):
            raise NotPlainError("a signature has not the fields of one")
        self.folder, self.name, self.row, self.reader = folder, name, row, reader
        self.variables, self.constants = variables, constants

    def signature(self, names: tuple[str, ...]) -> SavedSignature:
        """The signature, whose sizes may be open."""
        with with_sizes_of_arguments():
            return self._signature(names)

    def _signature(self, names: tuple[str, ...]) -> SavedSignature:
        row = self.row
        graph = replace(self._graph(), assumed=tuple(map(self._assumption, row["assumed"])))
        leaves = tuple(map(self._argument, row["leaves"]))
        outside = tuple(map(self._outside, row["outside"]))
        outputs = tuple(map(self._output, row["outputs"]))
        orders = tuple(map(self._order, row["orders"]))
        lies = {leaf: self._order(form["order"]) for leaf, form in zip(
            leaves, row["leaves"], strict=True) if type(leaf) is int and "order" in form}
        flags = {leaf: form["writeable"] for leaf, form in zip(leaves, row["leaves"], strict=True)
                 if type(leaf) is int and "writeable" in form}
        self._require(all(type(flag) is bool for flag in flags.values()), "a flag is no bool")
        self._require(all(leaf < len(graph.inputs) and len(order) == graph.inputs[leaf].type.rank
                          for leaf, order in lies.items()), "an argument has no order of axes")
        inputs = [leaf for leaf in leaves if not isinstance(leaf, StaticArgument)]
        arguments = len(graph.inputs) - len(outside)
        self._require(sorted(inputs) == [*range(arguments)], "its arguments are not the graph's")
        self._require(self._numbers(row["inputs"]) == [*range(len(leaves))] and
                      self._numbers(row["result"]) == [*range(len(outputs))],
                      "its structures are not of its leaves")
        self._require(len(orders) == len(graph.outputs) and all(
            len(order) == value.type.rank for order, value in zip(
                orders, graph.outputs, strict=True)), "its results have no order of axes")
        args_and_kwargs = row["inputs"].get("tuple")
        self._require(type(args_and_kwargs) is list and [next(iter(part), "") for part in
                      args_and_kwargs] == ["tuple", "dict"], "it has no arguments")
        for output in outputs:
            count = len(graph.outputs if output.kind == "graph" else graph.inputs)
            self._require(output.number < count and all(
                i < len(graph.outputs) for i in output.indices) and sum(
                step.operands for step in output.steps) == len(output.indices),
                "a result is none of the graph's")
        return SavedSignature(
            self.name, graph, row["inputs"], leaves, outside, row["result"], outputs, orders,
            self.reader, names, row["beside"], lies, flags)

    def _require(self, holds: bool, why: str) -> None:
        if not holds:
            raise NotPlainError(why)

    def _graph(self) -> Any:
        path = self.folder / graph_file(self.row["graph"])
        if not path.is_file():
            raise refused(path, "it is no ordinary file" if path.exists() else "it is missing")
        text = files.read_bytes(path, refused)
        if hashlib.sha256(text).hexdigest() != self.row["sha256"]:
            raise refused(path, "it is not what was saved (SHA-256)")
        try:
            return open_graph_from_json(text.decode("utf-8"))
        except RecursionError:
            raise refused(path, "it is nested too deeply") from None
        except UnicodeDecodeError as error:
            raise refused(path, f"it is no text: {error}") from None

    def _numbers(self, form: Any) -> list[int]:
        numbers: list[int] = []
        self.reader.tree(form, numbers.append)
        return numbers

    def _argument(self, form: Any) -> int | StaticArgument:
        if type(form) is dict and set(form) == {"value"}:
            return StaticArgument(plain_value(form["value"]))
        return self._index(form, "input")

    def _index(self, form: Any, key: str) -> int:
        number = form.get(key) if type(form) is dict else None
        self._require(type(number) is int and number >= 0, f"{str(form)[:60]} has no {key}")
        assert type(number) is int
        return number

    def _outside(self, form: Any) -> OutsideValue:
        self._require(type(form) is dict and len(form) == 1, f"{str(form)[:60]} is no value")
        (kind, content), = form.items()
        if kind == "value":
            value = plain_value(content)
            self._require(isinstance(value, (bool, int, float, complex, np.generic)),
                          f"{value!r:.60} is no number")
            return OutsideValue(value)
        if kind == "computed":
            made = computed_of(content)
            self._require(isinstance(made, Computed), f"{str(content)[:60]} is no array")
            return OutsideValue(made)
        table: Mapping[str, Any] = {"variable": self.variables, "constant": self.constants}.get(
            kind, {})
        self._require(type(content) is str and content in table,
                      f"it has no {kind} {str(content)[:60]}")
        return OutsideValue(table[content])

    def _output(self, form: Any) -> SavedOutput:
        kind: Any = form.get("kind") if type(form) is dict else None
        if kind in ("graph", "input"):
            self._require(set(form) <= {"kind", "index", "steps", "indices"} and all(
                type(form.get(name, [])) is list for name in ("steps", "indices")),
                f"{str(form)[:60]} is no result")
            indices = form.get("indices", [])
            self._require(all(type(i) is int and i >= 0 for i in indices), "an index is none")
            return SavedOutput(kind, self._index(form, "index"),
                          tuple(map(step_of, form.get("steps", []))), tuple(indices), None)
        self._require(kind in ("const", "fresh") and set(form) in (
            {"kind", "value"}, {"kind", "array"}, {"kind", "computed"}),
            f"{str(form)[:60]} is no result")
        if "value" in form:
            return SavedOutput(kind, 0, (), (), plain_value(form["value"]))
        if "computed" in form:
            return SavedOutput(kind, 0, (), (), computed_of(form["computed"]))
        return SavedOutput(kind, 0, (), (), self._array(form["array"]))

    def _array(self, form: Any) -> np.ndarray:
        """A constant result that is an array."""
        self._require(type(form) is list and len(form) == 2, f"{str(form)[:60]} is no array")
        try:
            value, dtype = plain_value(form[1]), np.dtype(str(form[0]))
            self._require(np.array(value, object).size * dtype.itemsize <= _MOST_BYTES,
                          f"{dtype!s:.60} is too long")
            return np.array(value, dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise NotPlainError(f"an array: {error}") from None

    def _assumption(self, form: Any) -> Assumption:
        """A question about open sizes."""
        self._require(_has(form, {"asked": type(form["asked"]), "succeeds": bool,
                                  "answer": type(form["answer"]), "known": dict})
                      if type(form) is dict and {"asked", "answer"} <= set(form) else False,
                      f"{str(form)[:60]} is no assumption")
        asked, answer = computed_of(form["asked"]), computed_of(form["answer"])
        self._require(isinstance(asked, (Dim, Computed)) and all(
            type(size) is int for size in form["known"].values()), "it asks nothing")
        if form["succeeds"] and isinstance(asked, Computed):
            asked = Succeeds(asked.fn, asked.args)
        return Assumption(Question(asked, answer), form["known"])

    def _order(self, form: Any) -> tuple[int, ...]:
        is_order = type(form) is list and all(type(axis) is int for axis in form)
        self._require(is_order and sorted(form) == [*range(len(form))],
                      f"{str(form)[:60]} is no order of axes")
        return tuple(form)


__all__ = ["is_index", "read_functions"]
