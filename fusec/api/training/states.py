"""The state of a training: Variables of objects, or a tree of arrays that steps replace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import optree

from fusec.core.occupancy import Hold, HoldToReplace
from fusec.errors import user_error
from fusec.state.object_names import named_objects
from fusec.state.variable import Variable
from fusec.state.variable_values import describe

_NUMBERS = (bool, int, float, complex, np.generic)


class TrainedState:
    """``given`` is the program's: `call` makes a step with it."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.has_variables = bool(self._variables())
        if self.has_variables:
            return
        for name, leaf in _leaves(given):
            if not isinstance(leaf, np.ndarray | np.random.Generator) and not isinstance(
                    leaf, _NUMBERS) and not hasattr(leaf, "__cuda_array_interface__"):
                raise user_error(
                    TypeError, "a state is a tree of arrays, or objects that hold Variables", None,
                    "make the Variables before the training begins: the first call of a function "
                    "that creates them is too late", values=[(name, type(leaf).__name__)])

    def call(self, step: Callable[..., Any], example: Any) -> Any:
        """A step's metrics."""
        args, kwargs = _arguments(example)
        if self.has_variables:
            return step(*args, **kwargs)
        result = step(self.given, *args, **kwargs)
        if not isinstance(result, tuple) or len(result) != 2:
            raise user_error(
                TypeError, "a step with a tree of arrays as its state returns the new state and "
                "metrics", None, "return state, metrics",
                values=[("returned", type(result).__name__)])
        self.given, metrics = result
        return metrics

    # -- in checkpoints

    def _variables(self) -> Mapping[str, Variable]:
        return named_objects({"state": self.given}, Variable)

    def generators(self) -> Mapping[str, np.random.Generator]:
        """NumPy's, by name."""
        if self.has_variables:
            return named_objects({"state": self.given}, np.random.Generator)
        return {name: x for name, x in _leaves(self.given) if isinstance(x, np.random.Generator)}

    def values(self) -> Iterator[tuple[str, np.ndarray]]:
        """Copies of all arrays, of one moment, by name."""
        if self.has_variables:
            variables = self._variables()
            with Hold([(v.occupancy, False) for v in variables.values()]):
                yield from [(name, v.buffer.copy()) for name, v in variables.items()]
            return
        for name, leaf in _leaves(self.given):
            if not isinstance(leaf, np.random.Generator):
                yield name, np.array(_on_host(leaf), order="C")

    def restore(
        self, values: Mapping[str, np.ndarray], generators: Mapping[str, Any], path: str
    ) -> None:
        """Take these; raises ``ValueError``, with nothing changed, for those of another state."""
        own = {name: v.buffer for name, v in self._variables().items()} if (
            self.has_variables) else dict(self.values())  # values themselves may be lost
        self._check(own, values, path)
        targets = self.generators()
        if targets.keys() != generators.keys():
            raise _other(path, [("generators there", ", ".join(generators)),
                                ("generators here", ", ".join(targets))])
        before = {name: target.bit_generator.state for name, target in targets.items()}
        try:
            for name, target in targets.items():
                target.bit_generator.state = generators[name]
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            for name, target in targets.items():
                target.bit_generator.state = before[name]
            raise _other(path, [("generators", error)]) from None
        self._set(values)

    def _check(
        self, own: Mapping[str, np.ndarray], values: Mapping[str, np.ndarray], path: str
    ) -> None:
        if own.keys() != values.keys():
            raise _other(path, [(label, ", ".join(sorted(names))) for label, names in (
                ("only here", own.keys() - values.keys()),
                ("only there", values.keys() - own.keys())) if names])
        for name, value in values.items():
            here, there = (describe(x.dtype, x.shape) for x in (own[name], value))
            if here != there:
                raise _other(path, [(f"{name} here", here), (f"{name} there", there)])

    def _set(self, values: Mapping[str, np.ndarray]) -> None:
        if self.has_variables:
            variables = self._variables()
            with HoldToReplace([(v.occupancy, True) for v in variables.values()]):
                for name, variable in variables.items():
                    variable.buffer[...] = values[name]
            return
        leaves, structure = optree.tree_flatten(self.given)
        names = [name for name, _ in _leaves(self.given)]
        self.given = optree.tree_unflatten(structure, [
            _like(leaf, values[name]) if name in values else leaf
            for name, leaf in zip(names, leaves, strict=True)])


def _arguments(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A tuple is several arguments, a dict with names some by name, all else is one."""
    if isinstance(example, tuple) and not hasattr(example, "_fields"):
        return example, {}
    if isinstance(example, dict) and all(isinstance(key, str) for key in example):
        return (), example
    return (example,), {}


def _leaves(tree: Any) -> list[tuple[str, Any]]:
    paths, leaves, _ = optree.tree_flatten_with_path(tree)
    return [("state" + "".join(f"[{key!r}]" for key in path), leaf)
            for path, leaf in zip(paths, leaves, strict=True)]


def _on_host(x: Any) -> Any:
    """An array of CuPy's as NumPy's."""
    return x.get() if hasattr(x, "__cuda_array_interface__") and hasattr(x, "get") else x


def _like(leaf: Any, value: np.ndarray) -> Any:
    """The value as what it is restored to: an array there, or a number."""
    if isinstance(leaf, np.ndarray):
        return value
    if isinstance(leaf, np.generic):
        return value[()]
    if isinstance(leaf, _NUMBERS):
        return type(leaf)(value.item())
    import cupy

    return cupy.asarray(value)


def _other(path: str, values: list[tuple[str, Any]]) -> Exception:
    return user_error(
        ValueError, f"{path} is a checkpoint of another state", None,
        "give the state that was saved, another path as checkpoint=, or resume=False",
        values=values)
