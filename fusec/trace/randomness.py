"""Random numbers drawn while a function is traced would become constants: they are found here."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

_MODULES = ("numpy.random", "random", "secrets")


def is_random(fn: Any) -> bool:
    """Whether a callable draws random numbers: NumPy's, Python's, the operating system's.

    By module name: looking at ``np.random`` would import it.
    """
    owner = getattr(fn, "__self__", None)
    home = type(owner) if owner is not None and not isinstance(owner, ModuleType) else fn
    module = getattr(home, "__module__", None)
    if not isinstance(module, str) or isinstance(fn, type):
        return fn is os.urandom
    return any(module == m or module.startswith(m + ".") for m in _MODULES) and (
        getattr(fn, "__name__", "") not in ("default_rng", "seed"))


def random_state() -> tuple[Any, ...]:
    """The states of the global generators of NumPy and Python; equal when nothing was drawn."""
    numpy_random, python_random = (sys.modules.get(m) for m in ("numpy.random", "random"))
    states: list[Any] = []
    if numpy_random is not None:
        name, keys, *rest = numpy_random.get_state(legacy=True)
        states += [name, keys.tobytes(), *rest]
    if python_random is not None:
        states.append(python_random.getstate())
    return tuple(states)
