"""The ways to add things in docs/architecture.md: each is added here for a while, and runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest

import fusec
from fusec.codegen import backends
from fusec.codegen.backends import DeviceKind
from fusec.codegen.kernels.loop_ir import Kernel
from fusec.codegen.reference_backend import ReferenceBackend
from fusec.errors import InternalError
from fusec.ir import Graph, Node, Value
from fusec.ops import Op, registry
from fusec.ops.rows.elementwise import infer_same
from fusec.passes import pipeline
from fusec.passes.rewrite import Rewriter, rewrite
from fusec.trace.operands.operands import ROWS_OF_UFUNCS
from fusec.trace.values.handlers import FUNCTIONS, METHODS, NUMPYS_TABLE, Entry, _add, entry

X = np.linspace(0.5, 3.0, 6)


def test_a_plain_ufunc_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row; a scalar op besides, where no back end has one that does it."""
    row = Op(name="Toy", kind="elementwise", arity=2, scalar="copysign", ufunc=np.nextafter,
             numpy=(np.nextafter,), reference=np.copysign, infer=infer_same)
    monkeypatch.setitem(registry._ROWS, row.name, row)
    monkeypatch.setitem(ROWS_OF_UFUNCS, np.nextafter, row)  # which is made of all rows
    toy = fusec.jit(lambda x: np.nextafter(x, -1.0) * 2)
    np.testing.assert_array_equal(toy(X), -X * 2)
    assert [node.op for node in toy.trace(X).graph.nodes if node.op == "Toy"] == ["Toy"]


@pytest.fixture
def without_polydiv() -> Iterator[Any]:
    assert np.polydiv not in FUNCTIONS and "toy" not in METHODS
    yield np.polydiv
    del FUNCTIONS[np.polydiv], NUMPYS_TABLE._entries[id(np.polydiv._implementation)]


def test_a_composed_function_is_a_handler(without_polydiv: Any) -> None:
    @entry(without_polydiv)
    def polydiv(trace: Any, u: Any, v: Any) -> Any:
        return u + v

    np.testing.assert_array_equal(fusec.jit(lambda x: np.polydiv(x, x[0]))(X), X + X[0])


@pytest.mark.parametrize("order", [(False, True), (True, False)])
def test_a_library_call_gives_way_whichever_came_first(order: Sequence[bool]) -> None:
    table: dict[Any, Entry] = {}
    for is_library in order:
        _add(table, np.polydiv, Entry(print, is_library=is_library))
    assert not table[np.polydiv].is_library


def test_two_handlers_of_one_function_are_an_error() -> None:
    with pytest.raises(InternalError, match="two handlers"):
        entry(np.sum)(print)
    with pytest.raises(InternalError, match="two handlers"):
        entry(method="sum")(print)


def cosines(graph: Graph) -> Graph:
    """A pass that takes sines for cosines."""
    def visit(node: Node, rewriter: Rewriter) -> list[Value] | None:
        return [rewriter.emit("Cos", *node.inputs)] if node.op == "Sin" else None

    return rewrite(graph, visit)


def test_a_pass_is_a_function_and_a_line_of_the_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    before = pipeline.simplification
    monkeypatch.setattr(pipeline, "simplification", lambda options: [
        *before(options), pipeline.Pass("cosines", cosines)])
    toy = fusec.jit(lambda x: np.sin(x) + 1)
    np.testing.assert_allclose(toy(X), np.cos(X) + 1, rtol=1e-15)
    records = [r for r in toy.concrete(X).passes if r.name == "cosines"]
    assert [r.changed for r in records] == [True]


class ToyBackend(ReferenceBackend):
    """The oracle, which also notes its runs."""

    name = "toy"
    ran: ClassVar[list[str]] = []

    def runs(self, kernel: Kernel) -> Callable[..., bool]:
        run = super().runs(kernel)

        def counted(*args: Any) -> bool:
            self.ran.append(kernel.name)
            return run(*args)

        return counted


def roots(x: np.ndarray) -> Any:
    return np.sqrt(x).sum()


def test_a_device_is_a_back_end_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named by scopes, listed, and what whole programs are compiled for in tests."""
    module = ModuleType("toy_backend")
    module.BACKEND = ToyBackend()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "toy_backend", module)
    monkeypatch.setattr(backends, "_loaded", {**backends._loaded})
    monkeypatch.setitem(backends.KINDS, "toy", DeviceKind("toy_backend"))
    with backends.using("toy"):
        np.testing.assert_allclose(fusec.jit(roots)(X), roots(X), rtol=1e-15)
    ran = len(ToyBackend.ran)
    np.testing.assert_allclose(fusec.jit(roots, device="/device:TOY:0")(X), roots(X), rtol=1e-15)
    assert 0 < ran < len(ToyBackend.ran)
    assert "TOY" in [device.type for device in fusec.devices()]


def test_a_device_with_memory_of_its_own_is_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """See `heap_backend`, which `tests/devices/test_heap_backend.py` runs programs on."""
    monkeypatch.setitem(backends.KINDS, "heap", DeviceKind("heap_backend", memory=lambda: 1 << 30))
    np.testing.assert_allclose(fusec.jit(roots, device="/device:HEAP:0")(X), roots(X), rtol=1e-15)
