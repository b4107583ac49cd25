"""The memory that a program leaves behind when its functions, classes and arrays are gone."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np

import fusec
from fusec.runtime import call_spec


def model() -> Any:
    class Model:
        """Its methods reach everything around them."""

        def __init__(self) -> None:
            self.weights = np.ones(3)

        @fusec.jit
        def scaled(self, x: np.ndarray) -> np.ndarray:
            return self.weights * x

        def around(self) -> Any:
            return [Model, every]

    every = Model()
    return every


def test_a_class_and_what_its_methods_reach_are_freed():
    def used() -> weakref.ref[Any]:
        made = model()
        for n in (3, 3):
            fusec.jit(lambda m, x: m.weights.sum() + x)(made, np.ones(n))
            made.scaled(np.ones(n))
        return weakref.ref(type(made))

    kind = used()
    gc.collect()
    assert kind() is None


def test_shapes_leave_a_bounded_table_of_cells():
    function = fusec.jit(lambda x, n: x * n)
    for n in range(2, 600):
        function(np.ones(n), 0.5)
    assert call_spec.cells_of.cache_info().currsize <= 256
