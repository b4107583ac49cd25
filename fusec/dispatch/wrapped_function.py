"""`wrap_function`: one trace of a function, with the Variables that it creates as its own state.

Rules: "Functions, not Sessions", sections "Transitioning from 1.x" and "Static-local state".
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import optree

from fusec.compiled.concrete_function import ConcreteFunction
from fusec.compiled.run_metadata import RunMetadata, RunOptions
from fusec.errors import short_errors, user_error
from fusec.ir import Graph
from fusec.signature.specs import PYTHON_VALUE, TensorSpec
from fusec.state.variable import Variable

from .function import Function

_OPTIONS = ("fp", "check_indices", "device")  # of a jitted function, that its one trace has


class WrappedFunction:
    """A function traced once; made by `wrap_function`.

    It keeps the Variables that the function created (``variables`` begins with them), and weak
    references to others that it uses.
    """

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._given = args
        self._is_tensor = [_has_spec(arg) for arg in args]
        specs = [arg if is_tensor else PYTHON_VALUE
                 for arg, is_tensor in zip(args, self._is_tensor, strict=True)]
        options = {name: getattr(f, name) for name in _OPTIONS} if isinstance(f, Function) else {}
        self._function = Function(f, input_signature=specs, **options)
        self._concrete, created = self._function._traced_once(*args)
        for creation in created:
            if not creation.is_known:
                raise user_error(
                    ValueError,
                    f"{creation.variable.title} begins with a value that {_name(f)} computes",
                    creation.loc,
                    "give a constant: the one trace runs at each call, its beginning once")
        self._created = tuple(creation.variable for creation in created)
        functools.update_wrapper(self, f)

    @property
    def concrete(self) -> ConcreteFunction:
        """Its one trace, compiled."""
        return self._concrete

    @property
    def graph(self) -> Graph:
        return self._concrete.graph

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Those that it created, in order, then others that it uses."""
        others = [v for v in self._concrete.variables if not any(v is own for own in self._created)]
        return (*self._created, *others)

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """Those that are trainable."""
        return tuple(variable for variable in self.variables if variable.trainable)

    def __call__(self, *args: Any) -> Any:
        """The result for arguments that fit the specs; the other arguments were given once.

        Raises ``TypeError`` for arguments that do not fit, ``ReferenceError`` when a Variable that
        it uses and did not create is gone.
        """
        return self.run(*args)[0]

    def run(self, *args: Any, options: RunOptions | None = None) -> tuple[Any, RunMetadata]:
        """The result and the report of the run."""
        with short_errors:
            return self._concrete.run(*self._filled(args), options=options)

    def _filled(self, args: tuple[Any, ...]) -> list[Any]:
        """All arguments of the function, with those that are not given at calls."""
        if len(args) != sum(self._is_tensor):
            raise user_error(
                TypeError, f"{_name(self)} takes an argument for each TensorSpec it was wrapped "
                f"with: {sum(self._is_tensor)}, and got {len(args)}", None,
                "leave out what was given as a value: it is fixed; wrap it once for each value")
        tensors = iter(args)
        return [next(tensors) if is_tensor else given
                for given, is_tensor in zip(self._given, self._is_tensor, strict=True)]

    def __repr__(self) -> str:
        return f"<fusec.wrap_function {_name(self)}, Variables of its own: {len(self._created)}>"


def wrap_function(f: Callable[..., Any], *args: Any) -> WrappedFunction:
    """``f`` traced once, for these specs and values; Variables that it creates are its state.

    Each argument is a `TensorSpec` (or a list, tuple or dict of them), for which calls give an
    array, or the value that the trace has for good.  A Variable created by ``f`` gets its first
    value now, which must be a constant, and lives as long as the wrapped function.

    Raises like tracing, and ``ValueError`` for specs whose sizes are not all known.
    """
    with short_errors:
        return WrappedFunction(f, args)


def _has_spec(arg: Any) -> bool:
    specs = [leaf for leaf in optree.tree_leaves(arg) if isinstance(leaf, TensorSpec)]
    for spec in specs:
        if spec.shape is None or None in spec.shape:
            raise user_error(ValueError, f"{spec} has sizes that are not known, and "
                             "fusec.wrap_function traces once", None,
                             "give every size, or wrap it once for each shape")
    return bool(specs)


def _name(f: Any) -> str:
    return getattr(f, "__name__", type(f).__name__)


__all__ = ["WrappedFunction", "wrap_function"]
