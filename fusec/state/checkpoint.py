"""`Checkpoint`: the values of Variables in files, written as a whole or not at all.

    checkpoint = fusec.Checkpoint(model=model, step=step)
    path = checkpoint.save("/tmp/run/model")        # /tmp/run/model-1
    checkpoint.restore(path)                        # or restore("/tmp/run/model"): the newest
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fusec.core.occupancy import Hold, HoldToReplace
from fusec.core.records import dataclass
from fusec.errors import unsupported, user_error

from . import checkpoint_files as files
from .object_names import named_variables
from .variable import Variable, in_trace
from .variable_values import describe


@dataclass(frozen=True)
class Restored:
    """The report of `Checkpoint.restore`: names of Variables that got values, of ``missing`` ones,
    which the checkpoint has not, and of ``unexpected`` ones, which only the checkpoint has."""

    path: str
    names: tuple[str, ...]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]


class Checkpoint:
    """The Variables of some objects, as files.

    Those are the Variables that attributes, lists, tuples and dicts of the objects reach, at the
    time of each call, under names such as ``model.layers[0].W``.  One that is reached in several
    ways is saved once.  ``max_to_keep``: how many checkpoints of one path `save` leaves; all of
    them by default.
    """

    def __init__(self, *, max_to_keep: int | None = None, **objects: Any) -> None:
        if max_to_keep is not None and (type(max_to_keep) is not int or max_to_keep < 1):
            raise user_error(ValueError, "max_to_keep is a number of checkpoints, from 1 on",
                             values=[("given", repr(max_to_keep))])
        self.max_to_keep = max_to_keep
        self._objects = objects

    @property
    def variables(self) -> dict[str, Variable]:
        """The Variables by name.

        Raises ``ValueError`` for those in sets, and under keys that have no stable text.
        """
        return named_variables(self._objects)

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write ``path-N.safetensors`` and ``path-N.json``; gives ``path-N``, for `restore`.

        All values are of one moment.  They are on the disk, read back and compared when this
        returns; a save that is stopped leaves the earlier checkpoints as they were.

        Raises ``OSError`` where the files cannot be written, ``ValueError`` for the path of a
        folder and for no Variables, ``ImportError`` without safetensors.
        """
        prefix = Path(path).absolute()
        _check_outside("save")
        files.library()
        if not prefix.name or prefix.is_dir():
            raise user_error(ValueError, f"{path} names a folder, and no checkpoint in it",
                             cure="save(folder / 'model')")
        values = _values(self.variables)
        if not values:
            raise user_error(
                ValueError, f"{self!r} reaches no Variable, so there is nothing to save", None,
                "give objects that hold some; those that a first call creates are there after it")
        return str(files.write(prefix, values, self.max_to_keep))

    def restore(self, path: str | os.PathLike[str], *, strict: bool = True) -> Restored:
        """Give all Variables the values that they had when ``path`` was saved: the result of
        `save`, or its argument, for the newest.

        Everything is read and compared before the first Variable is changed.

        Raises ``FileNotFoundError`` where there is none; ``ValueError`` for files that are damaged
        or not a checkpoint, for another shape, and unless ``strict=False`` for names that only one
        side has; ``TypeError`` for another dtype.
        """
        given = Path(path).absolute()
        _check_outside("restore")
        files.library()
        if not given.parent.is_dir():
            files.found_at(given)
        with files.locked(given.parent, writes=False):
            base = files.found_at(given)
            data = files.with_ending(base, ".safetensors")
            entries = files.read_index(files.with_ending(base, ".json"), data.name)
            variables = self.variables
            common = {name: entries[name] for name in variables if name in entries}
            report = Restored(
                str(base), tuple(common), tuple(n for n in variables if n not in entries),
                tuple(n for n in entries if n not in variables))
            if strict:
                _check_complete(report)
            for name, entry in common.items():
                _check_fits(name, variables[name], entry)
            values = dict(files.read_values(data, common, files.refused))
        _assign({variables[name]: value for name, value in values.items()})
        return report

    def __repr__(self) -> str:
        return f"<fusec.Checkpoint of {', '.join(self._objects)}>"


def _check_outside(what: str) -> None:
    if in_trace():
        raise unsupported(f"Checkpoint.{what}", cure="call it before or after the function")


def _values(variables: Mapping[str, Variable]) -> dict[str, np.ndarray]:
    """Copies, all of one moment."""
    with Hold([(variable.occupancy, False) for variable in variables.values()]):
        return {name: variable.buffer.copy() for name, variable in variables.items()}


def _assign(values: Mapping[Variable, np.ndarray]) -> None:
    with HoldToReplace([(variable.occupancy, True) for variable in values]):
        for variable, value in values.items():
            variable.buffer[...] = value


def _check_complete(report: Restored) -> None:
    if report.missing or report.unexpected:
        raise user_error(
            ValueError, f"{report.path} does not have the Variables of this Checkpoint", None,
            "restore it to objects like those that were saved, or use restore(..., strict=False)",
            values=[(label, ", ".join(names)) for label, names in (
                ("missing", report.missing), ("unexpected", report.unexpected)) if names])


def _check_fits(name: str, variable: Variable, entry: Any) -> None:
    expected = describe(variable.dtype, variable.shape)
    saved = describe(entry.dtype, entry.shape)
    if expected != saved:
        kind = ValueError if variable.dtype.name == entry.dtype else TypeError
        raise user_error(kind, f"{name} was saved as another Variable", None,
                         "restore it to one of the same dtype and shape",
                         values=[("expected", expected), ("found", saved)])


__all__ = ["Checkpoint", "Restored"]
