"""The arrays of a saved program: Variables by name, constants by number.

Constants are arrays that functions read from outside of their arguments.  One that a function
writes is state of the saved program, and each loaded one has a copy of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fusec.core.occupancy import Hold
from fusec.errors import user_error
from fusec.ops.build import Namer
from fusec.state import checkpoint_files as files
from fusec.state.variable import Variable
from fusec.trace.facts.layout import like_order

VARIABLES, CONSTANTS = "variables.safetensors", "constants.safetensors"


class SavedArrays:
    """The Variables and constants that the functions of one program share, as they are met."""

    def __init__(self, named: dict[str, Variable]) -> None:
        self._namer = Namer(named)
        self._names = {id(variable): name for name, variable in named.items()}
        self.variables = dict(named)
        self.constants: dict[str, np.ndarray] = {}
        self.written: set[str] = set()
        self._numbers: dict[int, str] = {}

    def of_variable(self, variable: Variable, path: str) -> str:
        """The name of a Variable; its own, or the program's for it, where none was given."""
        name = self._names.get(id(variable))
        if name is None:
            own = variable.name if variable.name != "Variable" else path
            name = self._names[id(variable)] = self._namer.fresh(own)
            self.variables[name] = variable
        return name

    def of_constant(self, array: np.ndarray, is_written: bool) -> str:
        """The name of an array from outside.

        Raises ``ValueError`` for an array that is written and lies in another one's memory.
        """
        name = self._numbers.get(id(array))
        if name is None:
            name = self._numbers[id(array)] = f"c{len(self.constants)}"
            self.constants[name] = array
        if is_written:
            self.written.add(name)
        return name

    def check_apart(self) -> None:
        """Raise where two constants share memory that a function writes."""
        for name in self.written:
            for other, array in self.constants.items():
                if other != name and np.may_share_memory(array, self.constants[name]):
                    raise user_error(
                        ValueError, "two arrays from outside lie in one memory, which a saved "
                        "function writes", cure="keep the state in a fusec.Variable")

    def write(self, folder: Path) -> dict[str, Any]:
        """The two files of values, all of one moment; what ``saved.json`` says of them."""
        with Hold([(variable.occupancy, False) for variable in self.variables.values()]):
            values = {name: variable.buffer.copy() for name, variable in self.variables.items()}
        orders = {name: like_order(array.strides) for name, array in self.constants.items()}
        constants = {name: np.ascontiguousarray(array.transpose(orders[name])).reshape(
            [array.shape[axis] for axis in orders[name]]) for name, array in self.constants.items()}
        entries = {name: files.entry_of(value) for name, value in values.items()}
        own = {name: files.entry_of(value) for name, value in constants.items()}
        files.write_values(folder / VARIABLES, values, entries)
        files.write_values(folder / CONSTANTS, constants, own)
        return {
            "variables": {name: {"tensor": entry._asdict(), "name": variable.name,
                                 "trainable": variable.trainable}
                          for (name, entry), variable in zip(
                              entries.items(), self.variables.values(), strict=True)},
            "constants": {name: {"tensor": entry._asdict(), "order": orders[name],
                                 "written": name in self.written}
                          for name, entry in own.items()}}


def read_variables(folder: Path, form: Any, refuse: files.Refuse) -> dict[str, Variable]:
    """New Variables with the values of a folder."""
    rows = _rows(folder, form, {"tensor", "name", "trainable"}, refuse)
    for name, row in rows.items():
        if type(row["name"]) is not str or type(row["trainable"]) is not bool:
            raise refuse(folder, f"its entry for the Variable {name} has not the fields of one")
    values = _values(folder / VARIABLES, rows, refuse)
    return {name: Variable(values[name], name=row["name"][:300], trainable=row["trainable"])
            for name, row in rows.items()}


def read_constants(folder: Path, form: Any, refuse: files.Refuse) -> dict[str, np.ndarray]:
    """The constants of a folder; those that no function writes cannot be written."""
    rows = _rows(folder, form, {"tensor", "order", "written"}, refuse)
    values = _values(folder / CONSTANTS, rows, refuse)
    for name, row in rows.items():
        order, rank = row["order"], values[name].ndim
        if type(row["written"]) is not bool or type(order) is not list or (
                not all(type(axis) is int for axis in order) or sorted(order) != [*range(rank)]):
            raise refuse(folder, f"its entry for the constant {name} has no order of axes")
        values[name] = values[name].transpose(np.argsort(order).tolist() if rank else ())
        values[name].flags.writeable = row["written"]
    return values


def _rows(folder: Path, form: Any, fields: set[str], refuse: files.Refuse) -> dict[str, Any]:
    if type(form) is not dict or not all(
            type(row) is dict and set(row) == fields for row in form.values()):
        raise refuse(folder, "it does not say which arrays it has")
    return form


def _values(path: Path, rows: dict[str, Any], refuse: files.Refuse) -> dict[str, np.ndarray]:
    entries = {name: files.checked(path, name, row["tensor"], refuse)
               for name, row in rows.items()}
    return dict(files.read_values(path, entries, refuse, no_others=True))


__all__ = ["SavedArrays", "read_constants", "read_variables"]
