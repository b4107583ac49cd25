"""The examples of "Functions, not Sessions" that concern calls and traces, each by its name there.

Those on state are in `tests/variables/test_rfc_examples.py`, those on derived graphs in
`tests/graphs/test_partial_execution.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec


def test_compute_z0_and_z1() -> None:
    @fusec.jit
    def compute_z1(x: Any, y: Any) -> Any:
        return np.add(x, y)

    @fusec.jit
    def compute_z0(x: Any) -> Any:
        return compute_z1(x, np.square(x))

    assert compute_z0(2.0) == 6.0
    assert compute_z1(2.0, 2.0) == 4.0


def test_a_graph_for_each_dtype() -> None:
    f = fusec.jit(lambda x: np.square(x))
    assert (f(np.int32(1)), f(np.float32(1.0))) == (1, 1)
    assert f.trace_count == 2
    assert [str(t.graph.outputs[0].type) for t in f.traces] == ["i32", "f32"]


def test_python_floats_are_values_of_the_run() -> None:
    """There each has its own trace; here they are passed, as users of NumPy expect."""
    f = fusec.jit(lambda x: np.square(x))
    assert (f(1.0), f(2.0)) == (1.0, 4.0)
    assert f.trace_count == 1


def test_a_graph_for_each_python_value() -> None:
    @fusec.jit
    def f(x: Any, use_multiply: bool) -> Any:
        return np.multiply(x, x) if use_multiply else np.square(x)

    assert f(np.float64(2.0), True) == f(np.float64(2.0), False) == 4.0
    assert f.trace_count == 2


def test_graphs_for_five_calls_of_three_shapes() -> None:
    """Three there; here one for a vector of one element, one for longer ones, one for a matrix."""
    f = fusec.jit(lambda x: np.add(x, 1.0))
    calls: list[Any] = [[2.0], [2.0, 3.0], [[2.0]], [3.0], [4.0, 5.0]]
    for x in calls:
        np.testing.assert_array_equal(f(np.array(x, "f4")), np.array(x, "f4") + 1)
    assert f.trace_count == 3
    np.testing.assert_array_equal(f(np.ones(7, "f4")), np.full(7, 2.0))  # longer: the second one
    assert f.trace_count == 3


def test_mutable_arguments_are_seen() -> None:
    """There "mutations might not be detected"; here reads are guarded."""
    class Params:
        multiply = True

    p = Params()

    @fusec.jit
    def f(x: Any, y: Any) -> Any:
        return np.multiply(x, 2.0) if y.multiply else np.add(x, 2.0)

    assert f(3.0, p) == 6.0
    p.multiply = False
    assert f(3.0, p) == 5.0


def test_a_signature_of_any_length() -> None:
    f = fusec.jit(lambda x: np.add(x, 1.0),
                  input_signature=(fusec.TensorSpec((None,), np.float32),))
    np.testing.assert_array_equal(f(np.array([2.0], "f4")), [3.0])
    np.testing.assert_array_equal(f(np.array([2.0, 3.0], "f4")), [3.0, 4.0])
    np.testing.assert_array_equal(f(np.array([2.0, 3.0, 4.0], "f4")), [3.0, 4.0, 5.0])
    with pytest.raises(TypeError, match=r"expected: TensorSpec[^\n]*\n +given: +f32\[1,1\]"):
        f(np.array([[2.0]], "f4"))
    with pytest.raises(TypeError, match=r"given: +i32\[1\]"):
        f(np.array([2], np.int32))
    assert f.trace_count == 2  # of one element, and of more


def test_control_flow_on_data() -> None:
    """There only `cond` works in a function; here Python's own does too."""
    def f(x: Any, y: Any) -> Any:
        if y == 0.0:
            return y
        return x / y

    def g(x: Any, y: Any) -> Any:
        return fusec.cond(np.equal(y, 0.0), lambda: y, lambda: x / y)

    for function in (f, g, fusec.jit(f), fusec.jit(g)):
        assert function(np.float64(2.0), np.float64(2.0)) == 1.0
        assert function(np.float64(2.0), np.float64(0.0)) == 0.0


def test_one_graph_for_an_open_size() -> None:
    f = fusec.jit(lambda x, w: np.matmul(x, w))
    w = np.ones((10, 10))
    for n in (2, 3, 50):
        np.testing.assert_array_equal(f(np.ones((n, 10)), w), np.full((n, 10), 10.0))
    assert f.trace_count == 1


def test_the_context_of_a_call_is_part_of_its_key() -> None:
    """``with tf.device("/device:CPU:0"): f(tf.constant(2.0))``, and another device."""
    @fusec.jit
    def f(x: Any) -> Any:
        return np.add(x, 1.0)

    with fusec.config.override(logical_cpu_devices=2):
        with fusec.device("/device:CPU:0"):
            assert f(np.float32(2.0)) == 3.0
        with fusec.device("/device:CPU:1"):
            assert f(np.float32(2.0)) == 3.0
        with fusec.device("/device:CPU:0"):
            assert f(np.float32(4.0)) == 5.0
    assert f.trace_count == 2, "one for each device, to which its operations are pinned"
    assert [t.graph["Add"].device for t in f.traces] == ["/device:CPU:0", "/device:CPU:1"]
