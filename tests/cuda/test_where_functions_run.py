"""The table of docs/cuda.md: which of NumPy's functions CuPy computes, which the CPU does."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_cupy import as_gpu

import fusec
from fusec.codegen import backends
from fusec.codegen.cuda.library_functions import function_of, is_called_on_gpu
from fusec.ops.calls.library import LIBRARY

DOCS = Path(__file__).resolve().parents[2] / "docs" / "cuda.md"
X = np.random.default_rng(0).normal(size=(6, 6))
POSITIVE, V, Z, K = X @ X.T + 6 * np.eye(6), X[0].copy(), X + 1j, np.arange(6) % 4
# A call for each function that CuPy computes.
ON_GPU: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "np.einsum": (lambda a, b: np.einsum("ij,jk->ik", a, b), (X, X)),
    "np.dot": (lambda a, b: np.dot(a, b), (X, np.stack([X, X]))),  # of matrices it is `@`
    "np.linalg.solve": (lambda a, v: np.linalg.solve(a, v), (POSITIVE, V)),
    "np.linalg.lstsq": (lambda a, v: np.linalg.lstsq(a, v)[0], (X, V)),
    "np.linalg.pinv": (lambda a: np.linalg.pinv(a), (X,)),
    "np.linalg.matrix_rank": (lambda a: np.linalg.matrix_rank(a), (X,)),
    "np.histogram_bin_edges": (lambda a: np.histogram(a, 4), (X,)),
    **{f"np.linalg.{f.__name__}": (lambda a, f=f: f(a), (POSITIVE,)) for f in (
        np.linalg.inv, np.linalg.det, np.linalg.slogdet, np.linalg.cholesky, np.linalg.qr,
        np.linalg.svd, np.linalg.eigh, np.linalg.eigvalsh)},
    **{f"np.fft.{f.__name__}": (lambda a, f=f: f(a), (Z,)) for f in (
        np.fft.fft, np.fft.ifft, np.fft.fft2, np.fft.ifft2, np.fft.fftn, np.fft.ifftn,
        np.fft.irfft, np.fft.irfft2, np.fft.irfftn, np.fft.hfft)},
    **{f"np.fft.{f.__name__}": (lambda a, f=f: f(a), (X,)) for f in (
        np.fft.rfft, np.fft.rfft2, np.fft.rfftn, np.fft.ihfft)},
    **{f"np.{f.__name__}": (lambda a, f=f: f(a), (X,)) for f in (
        np.sort, np.argsort, np.median, np.nanmedian, np.nonzero, np.flatnonzero, np.argwhere)},
    "np.unique": (lambda v: np.unique(v), (V,)),
    "np.partition": (lambda a: np.partition(a, 2), (X,)),
    "np.argpartition": (lambda a: np.argpartition(a, 2), (X,)),
    "np.percentile": (lambda a: np.percentile(a, 30, axis=0), (X,)),
    "np.quantile": (lambda a: np.quantile(a, 0.3, axis=0), (X,)),
    "np.lexsort": (lambda a, b: np.lexsort((a, b)), (V, K)),
    "np.searchsorted": (lambda a, v: np.searchsorted(a, v), (np.sort(V), V)),
    "np.digitize": (lambda v, b: np.digitize(v, b), (V, np.sort(V))),
    "np.interp": (lambda v, a, b: np.interp(v, a, b), (V, np.sort(V), V)),
    "np.isin": (lambda a, v: np.isin(a, v), (X, V)),
    "np.bincount": (lambda i: np.bincount(i), (K,)),
    "x[mask]": (lambda a, m: a[m], (X, X > 0)),
    **{f"np.{f.__name__}": (lambda i, j, f=f: f(i, j), (K, K[1:])) for f in (
        np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d)},
}
ON_CPU: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "np.nanquantile": (lambda a: np.nanquantile(a, 0.3, axis=0), (X,)),
    "np.nanpercentile": (lambda a: np.nanpercentile(a, 30, axis=0), (X,)),
    "np.histogram2d": (lambda v, w: np.histogram2d(v, w, 4)[0], (V, V)),
    "np.histogramdd": (lambda a: np.histogramdd(a, 4)[0], (X,)),
    "np.packbits": (lambda i: np.packbits(i > 1), (K,)),
    "np.polyfit": (lambda v, w: np.polyfit(v, w, 2), (V, V)),
}


def nodes_of(function: Callable[..., Any], args: tuple[np.ndarray, ...]) -> list[Any]:
    """The calls of libraries in its graph, as traced."""
    graph = fusec.jit(function).trace(*args).graph
    return [node for node in graph.nodes if node.op in LIBRARY]


@pytest.fixture(scope="module")
def listed() -> dict[str, set[str]]:
    """The functions that the table's two rows name."""
    rows = {row: re.search(rf"^\| {row} \| (.*) \|$", DOCS.read_text(), re.M)
            for row in ("CuPy", "the CPU")}
    return {row: set(re.findall(r"`([^`]+)`", found[1])) for row, found in rows.items() if found}


def test_the_table_is_the_rows(listed: dict[str, set[str]]) -> None:
    assert listed["CuPy"] == ON_GPU.keys() and listed["the CPU"] >= ON_CPU.keys()
    tried = {node.op for case in ON_GPU.values() for node in nodes_of(*case)}
    assert {op for op, row in LIBRARY.items() if row.gpu} == tried | {"GetItem"}


@pytest.mark.parametrize("name", ON_GPU)
def test_functions_that_cupy_computes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with as_gpu(monkeypatch) as cupy:
        for node in nodes_of(*ON_GPU[name]):
            assert is_called_on_gpu(node) and backends.backend("gpu").has_kernel(node)
            assert callable(function_of(node, cupy))


@pytest.mark.parametrize("name", ON_CPU)
def test_functions_that_the_cpu_computes(name: str) -> None:
    assert any(not is_called_on_gpu(node) for node in nodes_of(*ON_CPU[name]))
