"""`fusec.load`: the functions of a folder that `fusec.save` wrote, as jitted functions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fusec.compiled.kept.kept_plans import compiled
from fusec.compiled.saved.reading import ReadFunction, read_functions
from fusec.compiled.saved.replay import Replay
from fusec.compiled.saved.signature import SavedSignature
from fusec.core.process.quiet_gc import no_collections_inside
from fusec.errors import nearest, short_errors, unsupported, user_error
from fusec.ir.graph import Graph
from fusec.state import checkpoint_files as files
from fusec.state.variable import Variable, in_trace

from .function import Function


def load(
    path: str | os.PathLike[str], types: Mapping[str, type] | None = None
) -> LoadedProgram:
    """The functions in the folder ``path``, as attributes and as items.

    Each is a jitted function that answers the signatures it was saved for, and has ``graph``,
    ``variables``, ``structured_inputs`` and ``structured_outputs``.  ``types`` maps names to the
    classes of named tuples and dataclasses in arguments and results; without one a class with the
    same name and fields stands for it.

    No code of the folder is run: graphs are admitted as by `admit`, and compiled here.  A saved
    program is a program all the same, and computes what its author wrote.

    Raises ``FileNotFoundError`` where there is no such folder, ``ValueError`` where it is damaged,
    was not written by `save`, or by a newer format, ``ImportError`` without safetensors.
    """
    with short_errors:
        if in_trace():
            raise unsupported("fusec.load", cure="call it before or after the function")
        files.library()
        with no_collections_inside():
            read = read_functions(Path(path).absolute(), types or {})
        return LoadedProgram(str(path), {
            name: LoadedFunction(name, function) for name, function in read.functions.items()},
            read.variables)


class LoadedFunction(Function[Any, Any]):
    """A function of a saved program; made by `load`, with its ``name`` and all that was ``read`` of
    it."""

    _compiled_stage = staticmethod(compiled)

    def __init__(self, name: str, read: ReadFunction) -> None:
        super().__init__(Replay(name, read.parameters, read.signatures), fp=read.fp)
        self.signatures: tuple[SavedSignature, ...] = read.signatures

    def _only(self, what: str) -> SavedSignature:
        own = [signature for signature in self.signatures if not signature.is_beside]
        if len(own) != 1:
            raise user_error(
                ValueError, f"{self.__name__} has {len(own)} signatures, and each has "
                f"{what} of its own", None, f"f.signatures[0].{what.split()[-1]}",
                values=[(str(i), signature) for i, signature in enumerate(own)])
        return own[0]

    @property
    def graph(self) -> Graph:
        """The graph of its one signature, as traced; raises ``ValueError`` where it has more."""
        return self._only("a graph").graph

    @property
    def structured_inputs(self) -> Any:
        """``(args, kwargs)`` of its one signature, as `ConcreteFunction.structured_inputs`."""
        return self._only("structured_inputs").structured_inputs

    @property
    def structured_outputs(self) -> Any:
        """The result of its one signature, as `ConcreteFunction.structured_outputs`."""
        return self._only("structured_outputs").structured_outputs

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The Variables that its signatures use, each once."""
        found = {id(v): v for signature in self.signatures for v in signature.variables}
        return tuple(found.values())

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """Those of them that are trainable."""
        return tuple(variable for variable in self.variables if variable.trainable)

    def __reduce__(self) -> Any:
        raise user_error(TypeError, f"{self.__name__} was loaded from a folder, and is not pickled",
                         None, "load the folder in the other process")

    def __repr__(self) -> str:
        return f"<fusec.load {self.__name__}: {'; '.join(map(str, self.signatures))}>"


class LoadedProgram(Mapping[str, LoadedFunction]):
    """The ``functions`` of a saved program, as attributes and as items; ``variables`` by name.

    ``path`` is the folder that it was loaded from, by `load`.
    """

    def __init__(
        self, path: str, functions: dict[str, LoadedFunction], variables: dict[str, Variable]
    ) -> None:
        self.path, self._functions, self.variables = path, functions, variables

    def __getitem__(self, name: str) -> LoadedFunction:
        try:
            return self._functions[name]
        except KeyError:
            raise KeyError(self._missing(name)) from None

    def __getattr__(self, name: str) -> LoadedFunction:
        if name.startswith("_") or name not in self._functions:
            raise AttributeError(self._missing(name), name=name, obj=self)
        return self._functions[name]

    def _missing(self, name: str) -> str:
        names = nearest(name, self._functions) if not name.startswith("_") else []
        hint = f"; did you mean {' or '.join(names)}?" if names else ""
        return f"{self.path if '_functions' in vars(self) else 'it'} has no function {name!r}{hint}"

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *self._functions])

    def __repr__(self) -> str:
        return f"<fusec.load {self.path}: {', '.join(self._functions)}>"


__all__ = ["LoadedFunction", "LoadedProgram", "load"]
