"""Other compilers on the same programs: JAX, torch.compile, numexpr and Numba, where installed.

Each is used as its documentation says to: JAX jits the same source with ``jax.numpy`` in NumPy's
place (64-bit types on, ``block_until_ready``), torch compiles the NumPy function itself, Numba
gets explicit parallel loops, numexpr its strings.  Data is put where the peer wants it outside the
timing.  A peer that is not installed, cannot run a program, or gives other values is listed with
that as its result.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

from ..measuring.inputs import copied
from ..measuring.other_results import TOLERANCE, first_line
from ..measuring.program import Program
from ..reports.report import PeerResult
from . import peer_jax, peer_numba, peer_numexpr
from .other_numpy import with_numpy

NAMES = ("jax", "torch", "numexpr", "numba")


@dataclass(frozen=True)
class Peer:
    """A program ready to run under another compiler.

    ``call`` takes the result of ``prepare`` for the NumPy arguments and returns when the work is
    done; ``leaves`` turns its result into NumPy arrays in the order of the eager program's results.
    """

    name: str
    version: str
    call: Callable[..., Any]
    prepare: Callable[[tuple[Any, ...]], tuple[Any, ...]] = copied
    leaves: Callable[[Any], list[Any]] = optree.tree_leaves

    def try_out(self, args: Sequence[Any], want: Sequence[Any]) -> PeerResult:
        """Compile, run once and compare; a note in the result names a failure."""
        own = self.prepare(tuple(args))
        start = time.perf_counter()
        try:
            with np.errstate(all="ignore"):
                result = self.call(*own)
        except Exception as error:  # whatever a foreign compiler raises is its result here
            return PeerResult(self.version, None, f"{type(error).__name__}: {first_line(error)}")
        first_ms = 1e3 * (time.perf_counter() - start)
        leaves = [np.asarray(leaf) for leaf in self.leaves(result)]
        wrong = disagreement(leaves, want)
        return PeerResult(self.version, None, wrong, error_ulp(leaves, want), first_ms)



def disagreement(got: Sequence[np.ndarray], want: Sequence[Any]) -> str:
    """Why these are not the same results, or an empty string."""
    if len(got) != len(want):
        return f"gives {len(got)} results for {len(want)}"
    for a, b in zip(got, map(np.asarray, want), strict=True):
        if a.shape != b.shape:
            return f"gives shape {a.shape} for {b.shape}"
        if b.dtype.kind == "f":
            scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
            tolerance = TOLERANCE[b.dtype.itemsize]
            if not np.allclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
                return "gives other values"
        elif (a != b).mean() > 1e-3:
            return "gives other values"
    return ""


def error_ulp(got: Sequence[np.ndarray], want: Sequence[Any]) -> float:
    """The largest distance from eager NumPy in ulp of each array's largest value."""
    worst = 0.0
    for a, b in zip(got, map(np.asarray, want), strict=False):
        if b.dtype.kind == "f" and b.size and a.shape == b.shape:
            scale = np.spacing(np.abs(b[np.isfinite(b)]).max(initial=0.0).astype(b.dtype))
            worst = max(worst, float(np.nanmax(np.abs(a - b)) / scale))
    return worst


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


@functools.cache
def version(name: str) -> str:
    return f"{name} {importlib.import_module(name).__version__}"


def versions() -> dict[str, str]:
    """The installed peers and their versions."""
    return {name: version(name) for name in NAMES if installed(name)}


def for_program(program: Program) -> dict[str, Any]:
    """A ``Peer`` (or an ``AbsentPeer`` with the reason) for each known peer."""
    return {name: _peer(name, program) for name in NAMES}


@dataclass(frozen=True)
class AbsentPeer:
    """A peer with no way to run a program."""

    reason: str

    def try_out(self, args: Sequence[Any], want: Sequence[Any]) -> PeerResult:
        return PeerResult("", None, self.reason)


def _peer(name: str, program: Program) -> Any:
    if not installed(name):
        return AbsentPeer("not installed")
    if name in program.no_peers:
        return AbsentPeer(program.no_peers[name])
    if name in program.peers:
        return program.peers[name]()
    return {"jax": _jax, "torch": _torch, "numexpr": _numexpr, "numba": _numba}[name](program)


def jax_peer(f: Callable[..., Any]) -> Peer:
    """``jax.jit(f)`` for a function of ``jax.numpy`` arrays, in 64-bit mode."""
    import jax

    jax.config.update("jax_enable_x64", True)
    compiled = jax.jit(f)
    return Peer(
        "jax", version("jax"), lambda *args: jax.block_until_ready(compiled(*args)),
        prepare=lambda args: tuple(jax.block_until_ready(jax.tree.map(jax.numpy.array, args))),
        leaves=jax.tree.leaves,
    )


def jax_function(f: Callable[..., Any]) -> Peer:
    """A NumPy function under JAX, ``jax.numpy`` in NumPy's place."""
    import jax.numpy

    return jax_peer(with_numpy(f, jax.numpy))


def _jax(program: Program) -> Any:
    own = peer_jax.FUNCTIONS.get(program.name)
    return jax_peer(own()) if own else jax_function(program.function)


def _torch(program: Program) -> Any:
    import torch

    compiled: Any = torch.compile(program.function, dynamic=False)
    return Peer("torch", version("torch"), compiled)


def _numexpr(program: Program) -> Any:
    run = peer_numexpr.FUNCTIONS.get(program.name)
    if run is None:
        return AbsentPeer("not an elementwise program")
    return Peer("numexpr", version("numexpr"), run)


def _numba(program: Program) -> Any:
    make = peer_numba.FUNCTIONS.get(program.name)
    if make is None:
        return AbsentPeer("no loops written for it")
    return Peer("numba", version("numba"), make())
