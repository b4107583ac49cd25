"""A benchmark program: eager NumPy source, its inputs, and where the formula comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Program:
    """One benchmark program.

    ``function`` is ordinary eager NumPy.  ``make_args(size, dtype, seed)`` makes its positional
    arguments; ``size`` counts the program's ``size_unit`` (elements, rows, bodies).
    ``sizes`` are measured by default, ``quick_sizes`` by the demo.  ``elementwise``
    says that element ``i`` of every output depends on element ``i`` of the inputs only.
    ``peers`` maps a peer's name to a zero-argument factory (see ``Peer``) and
    overrides the default of `peers`; ``no_peers`` maps the name of a peer that cannot run
    the program to the reason.
    """

    name: str
    function: Callable[..., Any]
    make_args: Callable[[int, Any, int], tuple[Any, ...]]
    sizes: tuple[int, ...]
    quick_sizes: tuple[int, ...]
    description: str
    source: str
    size_unit: str = "elements"
    dtypes: tuple[str, ...] = DTYPES
    elementwise: bool = False
    peers: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    no_peers: Mapping[str, str] = field(default_factory=dict)
