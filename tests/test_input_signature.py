"""Signatures given with ``input_signature``: arguments that fit, are converted, or are refused.

After "Functions, not Sessions", section "Input Signatures".
"""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import fusec
from fusec import PYTHON_VALUE, TensorSpec

VECTOR = TensorSpec([None], np.float32)
Pair = namedtuple("Pair", "a b")


def refusal(f: Any, *args: Any) -> str:
    with pytest.raises(TypeError) as raised:
        f(*args)
    assert isinstance(raised.value, fusec.FusecError)
    return str(raised.value)


@fusec.jit(input_signature=(VECTOR,))
def plus_one(x: Any) -> Any:
    return np.add(x, np.float32(1.0))


def test_the_example_of_the_specification() -> None:
    assert plus_one([2.0]).tolist() == [3.0]
    assert plus_one([2.0, 3.0]).tolist() == [3.0, 4.0]
    assert plus_one([2.0]).dtype == np.float32
    assert "expected: TensorSpec([?], float32)\n  given:    list [[2.0]]" in refusal(
        plus_one, [[2.0]])
    assert "given:    i32[1]" in refusal(plus_one, np.array([2], np.int32))
    assert "argument x does not fit" in refusal(plus_one, np.ones(3))


def test_any_shape() -> None:
    f = fusec.jit(lambda x: x * 2, input_signature=[TensorSpec(None)])
    for x in (3.0, [1.0, 2.0], [[1.0], [2.0]], np.ones((2, 3, 4))):
        assert np.array_equal(f(x), np.asarray(x) * 2)
    assert "TensorSpec([...], float64)" in refusal(f, np.ones(3, int))


@pytest.mark.parametrize(("dtype", "value"), [
    (np.float64, 3), (np.float64, True), (np.complex128, 2.5), (np.int8, 127), (np.uint8, 200),
    (np.int64, [1, 2]), (np.float32, [[0.1, 2], [3, 4]]), (np.int64, []), (np.float16, (1, 2)),
    (np.bool_, True), (np.float64, np.float64(2.0)), (np.int64, [np.int64(3)])])
def test_python_values_are_converted(dtype: Any, value: Any) -> None:
    f = fusec.jit(lambda x: x, input_signature=[TensorSpec(None, dtype)])
    result, expected = f(value), np.asarray(value, dtype)
    assert result.dtype == expected.dtype and np.array_equal(result, expected)


@pytest.mark.parametrize(("dtype", "value", "word"), [
    (np.int64, 2.5, "float 2.5"), (np.int8, 300, "int 300"), (np.uint8, -1, "int -1"),
    (np.float64, 1j, "complex 1j"), (np.float64, "3", "str '3'"), (np.float64, None, "NoneType"),
    (np.float64, [[1.0], [2.0, 3.0]], "inhomogeneous"), (np.bool_, 1, "int 1"),
    (np.float64, object(), "object"), (np.float64, [np.ones(2)], "list")])
def test_what_would_lose_its_kind_is_refused(dtype: Any, value: Any, word: str) -> None:
    message = refusal(fusec.jit(lambda x: x, input_signature=[TensorSpec(None, dtype)]), value)
    assert word in message and f"TensorSpec([...], {np.dtype(dtype)})" in message


def test_converted_values_share_one_trace() -> None:
    f = fusec.jit(lambda x: np.sin(x), input_signature=[TensorSpec(())])
    for value in (1, 2.0, True, np.float64(3.0), np.array(4.0)):
        assert f(value) == np.sin(float(value))
    assert f.trace_count == 1


def test_nested_specs() -> None:
    scalar = TensorSpec(())
    signature = ({"w": TensorSpec((None, 2)), "b": TensorSpec((2,))}, (scalar, scalar))
    f = fusec.jit(lambda p, s: p["w"] * s[0] + p["b"] * s[1], input_signature=signature)
    w, b = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0])
    assert np.array_equal(f({"w": w, "b": b}, (2, 3.0)), w * 2 + b * 3)
    assert np.array_equal(f({"b": b, "w": w}, (2, 3.0)), w * 2 + b * 3)
    assert "argument p does not fit" in refusal(f, {"w": w}, (1, 1))
    assert "argument p['w'] does not fit" in refusal(f, {"w": b, "b": b}, (1, 1))
    assert "argument s[1] does not fit" in refusal(f, {"w": w, "b": b}, (1, "x"))
    assert "argument s does not fit" in refusal(f, {"w": w, "b": b}, [1, 1])


def test_lists_of_any_length() -> None:
    f = fusec.jit(lambda xs: sum(x.sum() for x in xs), input_signature=([TensorSpec([None]), ...],))
    for n in (1, 2, 3):
        assert f([np.ones(k + 1) for k in range(n)]) == n * (n + 1) / 2
    assert "argument xs[1] does not fit" in refusal(f, [np.ones(2), np.ones((2, 2))])
    assert "argument xs does not fit" in refusal(f, np.ones(2))


def test_structures_keep_their_types() -> None:
    kinds = []

    def f(pair: Any, items: Any) -> Any:
        kinds.append((type(pair), list(items)))
        return pair.a + items["y"]

    spec = TensorSpec(())
    jitted = fusec.jit(f, input_signature=(Pair(spec, spec), OrderedDict(x=spec, y=spec)),
                       fallback="eager")
    assert jitted(Pair(1, 2), OrderedDict(y=3, x=4)) == 4
    assert kinds[0] == (Pair, ["y", "x"])


def test_python_values_stay_python_values() -> None:
    signature = (VECTOR, PYTHON_VALUE, {"k": PYTHON_VALUE})
    f = fusec.jit(lambda x, n, o: x * n if o["k"] > 0.5 else x + n, input_signature=signature)
    x = np.arange(3, dtype=np.float32)
    for n in (2, 3):
        for k in (0.0, 1.0):
            assert np.array_equal(f(x, n, {"k": k}), x * n if k > 0.5 else x + n)
    assert f.trace_count == 4  # one for each combination of values
    assert "expected: PYTHON_VALUE" in refusal(f, x, np.ones(2), {"k": 1})


@pytest.mark.parametrize("signature", [
    TensorSpec([None]), [np.float64], ["f8"], [[TensorSpec(()), 3]], [{"a": None}], [(3,)], 5])
def test_what_is_no_signature_is_said_when_decorating(signature: Any) -> None:
    with pytest.raises(TypeError, match="is no spec"):
        fusec.jit(lambda x: x, input_signature=signature)


@pytest.mark.parametrize("shape", [[-1], [2.5], ["a"]])
def test_what_is_no_size(shape: Any) -> None:
    with pytest.raises(ValueError, match="is no size"):
        TensorSpec(shape)


def test_specs_are_values() -> None:
    spec = TensorSpec((None, 3), "f4", name="x")
    assert spec == TensorSpec([None, np.int64(3)], np.float32, name="x") != TensorSpec((3,))
    assert hash(spec) == hash(TensorSpec((None, 3), "f4", name="x"))
    assert pickle.loads(pickle.dumps(spec)) == copy.deepcopy(spec) == spec
    assert pickle.loads(pickle.dumps(PYTHON_VALUE)) is copy.deepcopy(PYTHON_VALUE) is PYTHON_VALUE
    assert TensorSpec.like(np.ones((2, 3), np.int8)) == TensorSpec((2, 3), np.int8)
    assert TensorSpec.like(2) == TensorSpec((), np.int64)


def test_calls_take_the_native_path(monkeypatch: pytest.MonkeyPatch) -> None:
    f = fusec.jit(lambda x, n: x * n, input_signature=(TensorSpec([None]), PYTHON_VALUE))
    x = np.arange(4.0)
    for n in (2, 3):
        f(x, n), f(x, n)
    monkeypatch.setattr(fusec.Function, "_call", None)
    assert np.array_equal(f(x, 2), x * 2) and np.array_equal(f(x, 3), x * 3)


def test_a_plan_does_not_let_misfits_through() -> None:
    f = fusec.jit(lambda x: x + 1, input_signature=(TensorSpec(()),))
    x = np.array(1.0)
    for _ in range(3):
        assert f(x) == 2.0
    assert f(5) == 6.0 and type(f(5)) is np.float64
    assert "i64[]" in refusal(f, np.array(5))
    assert "complex 2j" in refusal(f, 2j)


def test_methods_and_keywords() -> None:
    class Model:
        scale = 3.0

        @fusec.jit(input_signature=(TensorSpec([None]), TensorSpec(())))
        def step(self, x: Any, by: Any) -> Any:
            return x * by * self.scale

    assert Model().step([1, 2], by=2).tolist() == [6.0, 12.0]


def test_concrete_takes_the_signature() -> None:
    f = fusec.jit(lambda x, d: x @ d["m"],
                  input_signature=(TensorSpec((None, 3)), {"m": TensorSpec((3, None))}))
    concrete = f.concrete()
    assert np.array_equal(concrete(np.ones((2, 3)), {"m": np.ones((3, 2))}), np.full((2, 2), 3.0))
    with pytest.raises(ValueError, match="give it a shape"):
        fusec.jit(lambda x: x, input_signature=[TensorSpec(None)]).concrete()
    with pytest.raises(ValueError, match="give the value"):
        fusec.jit(lambda x: x, input_signature=[PYTHON_VALUE]).concrete()


def test_parameters_with_defaults_may_lack_a_spec() -> None:
    f = fusec.jit(lambda x, by=2: x * by, input_signature=(TensorSpec([None]),))
    assert f([1, 2]).tolist() == [2.0, 4.0] and f([1, 2], 3).tolist() == [3.0, 6.0]
    g = fusec.jit(lambda x, by: x * by, input_signature=(TensorSpec([None]),))
    assert "has 1 entry, the call has 2 arguments" in refusal(g, [1, 2], 3)
    h = fusec.jit(lambda x, *, by: x * by, input_signature=(TensorSpec([None]),))
    assert h([1, 2], by=3).tolist() == [3.0, 6.0]
    v = fusec.jit(lambda *xs: xs[0] + xs[1], input_signature=(TensorSpec([None]),) * 2)
    assert v([1], [2]).tolist() == [3.0]
    assert "has 2 entries, the call has 3 arguments" in refusal(v, [1], [2], [3])


def test_calls_inside_of_a_trace_fit_too() -> None:
    inner = fusec.jit(lambda x, s: x * s,
                      input_signature=(TensorSpec([None]), TensorSpec((), np.float32)))
    x = np.arange(3.0)
    assert np.array_equal(fusec.jit(lambda y: inner(y, 2) + 1)(x), x * 2 + 1)
    assert np.array_equal(fusec.jit(lambda y: inner([1, y.sum()], 2.0))(x), [2.0, 6.0])
    assert np.array_equal(fusec.jit(lambda y, s: inner(y, s))(x, 2.5), x * 2.5)
    message = refusal(fusec.jit(lambda y: inner(y[:, None], 2)), x)
    assert "expected: TensorSpec([?], float64)\n  given:    f64[3,1]" in message
    assert "test_input_signature.py" in message
    assert "given:    i64[3]" in refusal(fusec.jit(lambda y: inner(y.astype(int), 2)), x)


@pytest.mark.parametrize(("value", "word"), [
    (np.ones(3, ">f8"), "ndarray of >f8"), (np.array(["a"]), "ndarray of <U1"),
    (np.array([None]), "ndarray of |O"), (1e300, "float 1e+300")])
def test_other_values_are_named(value: Any, word: str) -> None:
    f = fusec.jit(lambda x: x, input_signature=[TensorSpec(None, np.float32)])
    assert word in refusal(f, value)


@pytest.mark.parametrize(("arguments", "said"), [
    ((3,), "give a tuple: (3,) for one axis"), (((3,), object), "booleans or numbers"),
    (((3,), "M8[s]"), "booleans or numbers"), (((), "U5"), "booleans or numbers"),
])
def test_what_is_no_shape_or_no_dtype(arguments: Any, said: str) -> None:
    with pytest.raises(TypeError) as caught:
        TensorSpec(*arguments)
    assert said in str(caught.value) and "given: " in str(caught.value)


def test_a_jitted_function_with_other_options_is_compiled_anew() -> None:
    """They were ignored."""
    plain = fusec.jit(lambda x: x * 2)
    assert fusec.jit(plain) is plain
    with_specs = fusec.jit(plain, input_signature=[fusec.TensorSpec((), np.float64)])
    assert type(with_specs(1)) is np.float64 and type(plain(1)) is int
    assert fusec.jit(plain, fp="strict").fp == "strict" and plain.fp == "contract"
