"""`fusec.container`: named groups of Variables that are reset together."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

import fusec


def test_its_variables_get_their_first_values() -> None:
    outside = fusec.Variable(1.0)
    with fusec.container("a"):
        w = fusec.Variable(np.arange(3.0))
        with fusec.container("inner"):
            n = fusec.Variable(7)
        b = fusec.Variable(0.5)
    step = fusec.jit(lambda x: (w.assign_add(x), b.assign(x), n.assign_add(1), outside.assign(x)))
    for _ in range(2):
        step(2.0)
        fusec.container("a").reset()
        assert (w.numpy().tolist(), float(b), float(outside)) == ([0, 1, 2], 0.5, 2.0)
    assert int(n) == 9
    fusec.container("inner").reset()
    assert int(n) == 7 and step.trace_count == 1
    assert [v is w or v is b for v in fusec.container("a").variables] == [True, True]
    assert fusec.container("a") is fusec.container("a")


def test_it_keeps_none_alive() -> None:
    with fusec.container("weak") as group:
        v = fusec.Variable(np.zeros(1000))
    assert len(group.variables) == 1
    del v
    gc.collect()
    assert not group.variables and not group._members
    group.reset()


def test_threads_have_blocks_of_their_own() -> None:
    made: list[Any] = []
    with fusec.container("threads") as group:
        thread = threading.Thread(target=lambda: made.append(fusec.Variable(1)))
        thread.start()
        thread.join()
    assert made and not group.variables


def test_what_compiled_functions_create() -> None:
    class Model:
        v: Any = None

        @fusec.jit
        def __call__(self, x: Any) -> Any:
            if self.v is None:
                self.v = fusec.Variable(x)
            return self.v.assign_add(1)

    model, known = Model(), fusec.wrap_function
    with fusec.container("compiled") as group:
        own = known(lambda x: fusec.Variable(5.0).assign_add(x), fusec.TensorSpec(()))
    assert (own(1.0), own(1.0)) == (6.0, 7.0)
    group.reset()
    assert own(1.0) == 6.0
    with group:
        assert model(3.0) == 4.0
    with pytest.raises(ValueError, match="first value of a Variable was computed"):
        group.reset()
    assert own(1.0) == 7.0 and model(3.0) == 5.0  # nothing was reset


def test_bad_use() -> None:
    with pytest.raises(TypeError, match="name is a text"):
        fusec.container(3)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="resetting a container"):
        fusec.jit(lambda: fusec.container("a").reset())()
