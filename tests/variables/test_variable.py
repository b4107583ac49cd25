"""`fusec.Variable` in plain Python: as users of NumPy's arrays and of tf.Variable expect."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec


def three(name: str | None = "v") -> fusec.Variable:
    return fusec.Variable([1.0, 2.0, 3.0], name=name)


READS: list[Callable[[Any], Any]] = [
    lambda v: v + 1, lambda v: 2 - v, lambda v: v * v, lambda v: -v, lambda v: v == v,
    lambda v: v @ v, lambda v: divmod(v, 2), lambda v: abs(v), lambda v: np.sin(v),
    lambda v: np.sum(v), lambda v: v.sum(), lambda v: v.T, lambda v: v[1], lambda v: v[1:],
    lambda v: list(v), lambda v: 2.0 in v, lambda v: len(v), lambda v: v.reshape(3, 1),
    lambda v: np.concatenate([v, v]), lambda v: np.where(v > 2, v, 0), lambda v: np.stack((v, v)),
    lambda v: np.linalg.norm(v), lambda v: np.einsum("i,i", v, v), lambda v: np.add.reduce(v),
    lambda v: np.asarray(v, np.float32), lambda v: (v.shape, v.dtype, v.ndim, v.size, v.nbytes),
    lambda v: float(v[0]), lambda v: str(v), lambda v: f"{v}", lambda v: np.add(1, v, dtype="f4"),
]


@pytest.mark.parametrize("read", READS)
def test_it_is_read_as_the_array_that_it_holds(read: Callable[[Any], Any]) -> None:
    np.testing.assert_equal(read(three()), read(np.array([1.0, 2.0, 3.0])))


def test_it_is_a_number_where_it_holds_one() -> None:
    n = fusec.Variable(2)
    assert (int(n), float(n), complex(n), bool(n), range(5)[n]) == (2, 2.0, 2 + 0j, True, 2)


def test_what_is_read_is_a_snapshot() -> None:
    v = three()
    for read in (v.read_value(), v.numpy(), np.asarray(v), v[:], v.T, v.assign([1, 2, 3]),
                 v.reshape(3), np.atleast_1d(v), next(iter([v[...]]))):
        read[0] = 99
        assert v[0] == 1


def test_assignments_give_the_new_value() -> None:
    v = three()
    assert v.assign([1, 2, 4]).tolist() == [1, 2, 4]
    assert v.assign_add(1).tolist() == [2, 3, 5]
    assert v.assign_sub([1, 1, 1]).tolist() == [1, 2, 4]
    v[0] = 7
    v[1:] += 1
    assert v.numpy().tolist() == [7, 3, 5]


def test_assignment_in_place_keeps_the_variable_and_its_buffer() -> None:
    v = w = three()
    at = v.buffer.ctypes.data
    v += 1
    v *= 2
    assert np.add(v, 1, out=v) is w
    v.assign(v[::-1])
    assert v is w and v.buffer.ctypes.data == at and v.numpy().tolist() == [9, 7, 5]


@pytest.mark.parametrize("wrong,shown", [
    (np.zeros(2), ("float64[3]", "shape [2]")), (1.0, ("float64[3]", "shape []")),
    (np.zeros((3, 1)), ("shape [3, 1]",)),
])
def test_another_shape_is_an_error_with_both(wrong: Any, shown: tuple[str, ...]) -> None:
    v = three()
    with pytest.raises(ValueError, match="keeps") as caught:
        v.assign(wrong)
    assert all(text in str(caught.value) for text in shown)
    assert v.numpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize("dtype,wrong", [
    (np.float32, np.zeros(3)), (np.int64, np.zeros(3)), (np.int64, 1.5), (np.bool_, 1),
    (np.float64, np.zeros(3, complex)), (np.int8, np.zeros(3, np.int16)), (np.int64, [0.5]),
])
def test_a_dtype_that_loses_something_is_an_error_with_both(dtype: Any, wrong: Any) -> None:
    v = fusec.Variable(np.zeros(np.shape(wrong), dtype), name="v")
    with pytest.raises(TypeError, match="without loss") as caught:
        v.assign(wrong)
    assert f"{np.dtype(dtype)}[" in str(caught.value)


def test_pythons_numbers_adapt() -> None:
    v = fusec.Variable(np.float32(1))
    assert v.assign(2.5).dtype == v.assign_add(1).dtype == np.float32
    assert fusec.Variable(np.zeros(2, np.float32)).assign([1.5, 2]).dtype == np.float32
    with pytest.raises(OverflowError):
        fusec.Variable(np.int8(1)).assign(300)
    with pytest.raises(OverflowError):
        fusec.Variable(np.zeros(1, np.int8)).assign([300])


@pytest.mark.parametrize("change", [
    lambda v: v.fill(0), lambda v: v.sort(), lambda v: v.data, lambda v: v.setflags(write=False),
    lambda v: np.add.at(v, [0], 1), lambda v: np.clip(v, 0, 1, out=v), lambda v: np.copyto(v, 1),
    lambda v: np.asarray(v, copy=False),
])
def test_nothing_changes_a_copy_unseen(change: Callable[[Any], Any]) -> None:
    with pytest.raises((TypeError, AttributeError, ValueError), match="Variable v"):
        change(three())


@pytest.mark.parametrize("value,dtype", [
    ("text", None), ([None], None), (np.datetime64("2020"), None), (np.longdouble(1), None),
    (1.5, np.int64), (1j, np.float64),
])
def test_what_cannot_be_a_variable(value: Any, dtype: Any) -> None:
    with pytest.raises(TypeError):
        fusec.Variable(value, dtype, name="v")


def test_its_memory_is_its_own_in_c_order() -> None:
    given = np.arange(6.0).reshape(2, 3).T
    v = fusec.Variable(given)
    assert v.buffer.flags.c_contiguous and not np.shares_memory(v.buffer, given)
    assert fusec.Variable(np.arange(3, dtype=">f8")).buffer.dtype.isnative
    assert fusec.Variable(lambda: 3).dtype == np.int64
    assert fusec.Variable(np.zeros((0, 2))).shape == (0, 2)


def test_copies_are_other_variables_with_the_same_value() -> None:
    v = three()
    deep = copy.deepcopy({"a": v, "b": [v]})
    assert deep["a"] is deep["b"][0] is not v  # type: ignore[index]
    for other in (copy.copy(v), deep["a"], pickle.loads(pickle.dumps(v))):
        other.assign_add(1)  # type: ignore[attr-defined]
        assert (other.name, other.dtype) == ("v", v.dtype)  # type: ignore[attr-defined]
    assert v.numpy().tolist() == [1, 2, 3]


def test_it_is_found_in_sets_and_dicts_by_what_it_is() -> None:
    v, w = three(), three()
    slots = {v: 1, w: 2}
    assert (slots[v], slots[w], len({v, w, v})) == (1, 2, 2)


def test_updates_of_several_threads_are_all_there() -> None:
    v = fusec.Variable(np.zeros(100))
    threads = [threading.Thread(target=lambda: [v.assign_add(1) for _ in range(200)])
               for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (v.numpy() == 1600).all()


@pytest.mark.parametrize("value", ["text", None, object()])
def test_the_cure_for_what_is_no_number(value: Any) -> None:
    with pytest.raises(TypeError, match="cure: assign numbers, or an array of them"):
        three().assign(value)
