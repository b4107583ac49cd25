"""`fusec.save` and `fusec.load`: the same results, memory, effects and errors, without source."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections import OrderedDict, deque, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import optree
import pytest

import fusec
from fusec import TensorSpec

Point = namedtuple("Point", "x y")
SCALE = np.array([1.0, 2.0, 4.0])


@dataclasses.dataclass
class Params:
    w: Any
    b: Any


optree.register_pytree_node(
    Params, lambda p: ((p.w, p.b), None, ("w", "b")), lambda _, c: Params(*c), namespace="fusec")


class OwnError(ValueError):
    """An exception that only this program has."""


def loaded(tmp_path: Path, f: Any, *args: Any, types: Any = None, **kwargs: Any) -> Any:
    """The function saved for these arguments and loaded again."""
    fusec.save(tmp_path / "m", {"f": fusec.jit(f).concrete(*args, **kwargs)})
    return fusec.load(tmp_path / "m", types=types or {}).f


def test_attributes_items_and_descriptions(tmp_path: Path) -> None:
    double = fusec.jit(lambda x: 2.0 * x)
    fusec.save(tmp_path / "m", {"double": double.concrete(np.ones(3)), "g": double.concrete(1.0)})
    program = fusec.load(tmp_path / "m")
    assert list(program) == ["double", "g"] and program["g"] is program.g
    assert program.double(np.ones(3)).tolist() == [2.0] * 3 and program.g(4.0) == 8.0
    assert program.double.structured_inputs == ((TensorSpec((3,)),), {})
    assert program.double.structured_outputs == TensorSpec((3,))
    assert [n.op for n in program.double.graph.nodes] == ["Input", "Const", "Mul"]
    with pytest.raises(AttributeError, match="did you mean double"):
        _ = program.duoble
    with pytest.raises(KeyError, match="has no function 'h'"):
        program["h"]


def test_structures_of_arguments_and_results(tmp_path: Path) -> None:
    def f(p: Any, q: Any, *, k: Any) -> Any:
        return {"b": [p.x + q["u"], (k[0], None)], 3: Point(p.y, deque([p.x, 2.0], 5)),
                "o": OrderedDict(z=p.x), "text": "done", "n": 7, "s": slice(1, None)}

    args: Any = (Point(np.ones(2), 2.5), {"u": np.float32(3)})
    want = f(*args, k=[np.arange(3)])
    g = loaded(tmp_path, f, *args, k=[np.arange(3)], types={"Point": Point})
    got = g(*args, k=[np.arange(3)])
    assert repr(got) == repr(want) and type(got[3]) is Point
    other = fusec.load(tmp_path / "m").f(*args, k=[np.arange(3)])
    assert repr(other) == repr(want) and type(other[3]) is not Point
    with pytest.raises(ValueError, match=r"types\['Point'\] has the fields"):
        fusec.load(tmp_path / "m", types={"Point": namedtuple("Point", "x")}).f(
            *args, k=[np.arange(3)])


def test_dataclasses(tmp_path: Path) -> None:
    def f(p: Params) -> Params:
        return Params(p.w * 2.0, p.b)

    given = Params(np.ones(2), 1.5)
    got = loaded(tmp_path, f, given, types={"Params": Params})(given)
    assert type(got) is Params and got.w.tolist() == [2.0, 2.0] and got.b == 1.5
    look_alike = fusec.load(tmp_path / "m").f(given)
    assert type(look_alike).__name__ == "Params" and look_alike.w.tolist() == [2.0, 2.0]


def test_views_aliases_and_writes(tmp_path: Path) -> None:
    def f(x: Any, y: Any) -> Any:
        x[0] = 9.0
        y = y * 1.0
        return x, x[1:], x.reshape(2, 2).T, y[::2], y, x.real

    want_x, got_x = np.arange(4.0), np.arange(4.0)
    g = loaded(tmp_path, f, want_x.copy(), np.arange(3.0))
    want, got = f(want_x, np.arange(3.0)), g(got_x, np.arange(3.0))
    for a, b in zip(want, got, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.strides == b.strides
    assert got[0] is got_x and got_x[0] == 9.0
    got[1][0] = 5.0
    assert got_x[1] == 5.0
    got[3][0] = 7.0
    assert got[4][0] == 7.0


def test_variables_are_state_of_the_loaded_program(tmp_path: Path) -> None:
    count, weight = fusec.Variable(0), fusec.Variable(np.ones(2), name="w", trainable=False)

    @fusec.jit
    def step(x: Any) -> Any:
        count.assign_add(1)
        return x * weight

    @fusec.jit
    def read() -> Any:
        return count.read_value()

    step(np.ones(2))
    read()
    fusec.save(tmp_path / "m", {"step": step, "read": read}, variables={"count": count})
    program = fusec.load(tmp_path / "m")
    assert set(program.variables) == {"count", "w"}
    assert not program.variables["w"].trainable and len(program.step.variables) == 2
    program.step(np.ones(2))
    assert program.read() == 2 and count.numpy() == 1
    program.variables["w"].assign([3.0, 4.0])
    assert program.step(np.ones(2)).tolist() == [3.0, 4.0]


def test_what_wrap_function_gives(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        v = fusec.Variable(np.zeros(2), name="v")
        v.assign_add(x)
        return v.read_value()

    fusec.save(tmp_path / "m", {"f": fusec.wrap_function(f, TensorSpec((2,)))})
    g = fusec.load(tmp_path / "m").f
    g(np.ones(2))
    assert g(np.ones(2)).tolist() == [2.0, 2.0]


def test_arrays_from_outside_have_their_values_of_then(tmp_path: Path) -> None:
    g = loaded(tmp_path, lambda x: x * SCALE, np.ones(3))
    SCALE[0] = 100.0
    try:
        assert g(np.ones(3)).tolist() == [1.0, 2.0, 4.0]
    finally:
        SCALE[0] = 1.0


def test_gradients_batches_and_calls_in_other_functions(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sin(x) * x)

    g = loaded(tmp_path, f, np.ones(3))
    x = np.array([0.1, 0.2, 0.3])
    assert fusec.grad(g)(x).tolist() == fusec.grad(f)(x).tolist()
    inside = fusec.jit(lambda x: g(x) + g(2.0 * x))
    assert inside(x) == fusec.jit(lambda x: f(x) + f(2.0 * x))(x)
    assert "f: 1 kernel" in str(fusec.explain(g, x))


def test_sizes_that_are_left_open(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        n = len(x)
        return x / n + np.arange(n), np.sqrt(n) * x, x[1:], np.zeros((n, 2)), n

    g = loaded(tmp_path, f, TensorSpec((None,)))
    assert g.structured_inputs == ((TensorSpec((None,)),), {})
    for n in (1, 2, 5, 40):
        for a, b in zip(g(np.arange(float(n))), f(np.arange(float(n))), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-15)
            assert type(a) is type(b)
    with pytest.raises(TypeError, match="was not saved for these arguments"):
        g(np.ones(0))


def test_open_sizes_are_one_only_where_they_must_be(tmp_path: Path) -> None:
    def f(x: Any, w: Any, y: Any) -> Any:
        return x.T * (x.sum(axis=1) * w.sum() - y) + w[:, None]

    g = loaded(tmp_path, f, TensorSpec((None, None)), TensorSpec((None,)), TensorSpec((None,)))
    x, w, y = (np.random.default_rng(2).random(n) for n in ((9, 4), 4, 9))
    np.testing.assert_allclose(g(x, w, y), f(x, w, y), rtol=1e-14)
    with pytest.raises(TypeError, match="was not saved for these arguments"):
        g(x, y, w)


def test_a_size_that_decides_the_trace_is_asked_again(tmp_path: Path) -> None:
    g = loaded(tmp_path, lambda x: x * 2.0 if len(x) > 100 else x + 1.0, TensorSpec((None,)))
    assert g(np.ones(7)).tolist() == [2.0] * 7
    with pytest.raises(TypeError, match="sizes with s0 <= 100"):
        g(np.ones(200))


def test_sizes_that_data_decide(tmp_path: Path) -> None:
    g = loaded(tmp_path, lambda x: x[x > 0.0] * 2.0, np.ones(4))
    assert g(np.array([1.0, -1.0, 3.0, 0.0])).tolist() == [2.0, 6.0]
    assert g(-np.ones(4)).shape == (0,)
    twice = fusec.jit(lambda x, y: (g(x), g(y), g(x) + 1.0))
    for got, want in zip(twice(np.array([1.0, -1.0, 3.0, 0.0]), np.ones(4)),
                         ([2.0, 6.0], [2.0] * 4, [3.0, 7.0]), strict=True):
        assert got.tolist() == want


def test_exceptions(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        if x.sum() > 10.0:
            raise ValueError("too large", 3)
        if x.sum() < 0.0:
            raise OwnError("negative")
        return x * x[int(x[0])]

    g = loaded(tmp_path, f, np.ones(3))
    assert g(np.ones(3)).tolist() == [1.0] * 3
    with pytest.raises(ValueError, match="too large") as caught:
        g(np.full(3, 9.0))
    assert caught.value.args == ("too large", 3)
    with pytest.raises(fusec.SavedProgramError, match="OwnError: negative") as own:
        g(-np.ones(3))
    assert own.value.class_name.endswith("OwnError") and own.value.arguments == ("negative",)
    with pytest.raises(IndexError):
        g(np.array([3.0, 0.0, 0.0]))


@pytest.mark.parametrize("error", [
    np.exceptions.AxisError("of words"), np.exceptions.AxisError(3, 2),
    np.exceptions.AxisError(3, 2, "here"), np.exceptions.DTypePromotionError("none"),
    np.linalg.LinAlgError("singular"), KeyError("k", 3), OSError(2, "gone"), UserWarning("w"),
])
def test_exceptions_of_python_and_numpy_keep_their_class(tmp_path: Path, error: Any) -> None:
    def f(x: Any) -> Any:
        if x.sum() > 10.0:
            raise error
        return x

    with pytest.raises(type(error)) as caught:
        loaded(tmp_path, f, np.ones(3))(np.full(3, 9.0))
    assert type(caught.value) is type(error) and caught.value.args == error.args
    assert str(caught.value) == str(error)
    assert getattr(caught.value, "axis", None) == getattr(error, "axis", None)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_loaded_function_does_not_end_the_process(tmp_path: Path, kind: Any) -> None:
    def f(x: Any) -> Any:
        if x.sum() > 10.0:
            raise kind("end")
        return x

    with pytest.raises(fusec.SavedProgramError, match=f"{kind.__name__}: end") as caught:
        loaded(tmp_path, f, np.ones(3))(np.full(3, 9.0))
    assert caught.value.class_name == kind.__name__


def test_texts_of_exceptions_name_values_of_the_run(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        if x.sum() > 10.0:
            raise ValueError(f"sum is {x.sum():.3f} of {len(x)}", x.sum())
        return x

    for g in (fusec.jit(f), loaded(tmp_path, f, np.ones(3))):
        with pytest.raises(ValueError, match="sum is") as caught:
            g(np.full(3, 9.0))
        assert caught.value.args == ("sum is {x.sum()} of 3", "{x.sum()}")


def test_only_saved_signatures_are_answered(tmp_path: Path) -> None:
    f = fusec.jit(lambda x, n=2: x * n)
    fusec.save(tmp_path / "m", {"f": [f.concrete(np.ones(3)), f.concrete(np.ones(4), 5)]})
    g = fusec.load(tmp_path / "m").f
    assert g(np.ones(3)).tolist() == [2.0] * 3 and g(np.ones(4), 5).tolist() == [5.0] * 4
    for args in ((np.ones(5),), (np.ones(3), 5), (np.ones(3, np.float32),), ([1.0],), ("x",)):
        with pytest.raises(TypeError, match="was not saved for these arguments"):
            g(*args)
    with pytest.raises(ValueError, match="has 2 signatures"):
        _ = g.graph
    assert len(g.signatures) == 2 and g.signatures[0].structured_inputs[0][1] == 2


class Model:
    def __init__(self) -> None:
        self.w = np.ones(3)


def drawn(x: Any, generator: Any) -> Any:
    return x + generator.normal(size=3)


def printed(x: Any) -> Any:
    fusec.print(x)
    return x


def of_scalars(x: Any) -> Any:
    return SCALAR(x)


def of_object(model: Any) -> Any:
    return model.w * 2.0


SCALAR = fusec.vectorize(lambda x: x + 1.0)


@pytest.mark.parametrize(("f", "args", "words"), [
    (drawn, (np.ones(3), np.random.default_rng(0)), "is a random generator"),
    (printed, (np.ones(3),), "printed cannot be saved: it calls fusec.print, which"),
    (of_scalars, (np.ones(3),), "it calls a function of fusec.vectorize, which"),
    (of_object, (Model(),), "argument model is a Model"),
], ids=["generator", "print", "vectorize", "object"])
def test_what_no_folder_holds_is_refused(tmp_path: Path, f: Any, args: Any, words: str) -> None:
    concrete = fusec.jit(f).concrete(*args)
    with pytest.raises(fusec.UnsupportedError, match=words) as caught:
        fusec.save(tmp_path / "m", {"f": concrete})
    assert Path(__file__).name in str(caught.value)
    assert not (tmp_path / "m").exists() and os.listdir(tmp_path) == []


def test_wrong_arguments_of_save(tmp_path: Path) -> None:
    f = fusec.jit(lambda x: x)
    for fns, words in (({}, "needs a dict"), ({"a b": f}, "no name"), ({"f": f}, "has no trace"),
                       ({"f": np.sin}, "does not take"), ({"variables": f}, "no name")):
        with pytest.raises((TypeError, ValueError), match=words):
            fusec.save(tmp_path / "m", fns)
    (tmp_path / "m").write_text("mine")
    f(np.ones(2))
    with pytest.raises(ValueError, match="is there already"):
        fusec.save(tmp_path / "m", {"f": f})
    assert (tmp_path / "m").read_text() == "mine"


def test_a_save_that_fails_leaves_the_old_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    g = loaded(tmp_path, lambda x: x + 1.0, np.ones(2))
    from fusec.state import checkpoint_files

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint_files, "write_values", full)
        with pytest.raises(OSError, match="No space"):
            loaded(tmp_path, lambda x: x + 2.0, np.ones(2))
    assert os.listdir(tmp_path) == ["m"]
    assert fusec.load(tmp_path / "m").f(np.ones(2)).tolist() == g(np.ones(2)).tolist()
    assert loaded(tmp_path, lambda x: x + 3.0, np.ones(2))(np.ones(2)).tolist() == [4.0, 4.0]
    assert os.listdir(tmp_path) == ["m"]


CHILD = """
import sys, numpy as np, fusec
f = fusec.load(sys.argv[1]).f
opened = []
def note(event, args):
    if event in ("open", "subprocess.Popen", "os.exec", "os.system") or event.startswith("socket"):
        opened.append((event, str(args[0])))
np.testing.assert_array_equal(f(np.arange(3.0)), [0.0, 2.0, 8.0])
sys.addaudithook(note)
g = fusec.load(sys.argv[1]).f
np.testing.assert_array_equal(g(np.arange(3.0)), [0.0, 2.0, 8.0])
print(*sorted({f"{event} {name}" for event, name in opened}), sep="\\n")
"""


@pytest.mark.parametrize("cache", ["off", "cache"])
def test_loading_opens_the_folder_and_the_disk_cache_alone(tmp_path: Path, cache: str) -> None:
    loaded(tmp_path, lambda x: 2.0 * x * x, np.ones(3))
    kept = cache if cache == "off" else str(tmp_path / cache)
    done = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path / "m")], text=True,
                          capture_output=True, check=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": str(Path(fusec.__file__).parents[1]),
                               "FUSEC_CACHE_DIR": kept})
    lines = [line for line in done.stdout.splitlines() if line]
    places = tuple(f"open {place}" for place in (tmp_path / "m", kept))
    # Python gives an opened file's number, too.
    assert lines and all(line.startswith(places) or line[5:].isdigit() for line in lines), lines


def test_a_defect_met_for_sizes_of_one_is_no_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that raises for sizes of 1 is saved for larger ones; what fusec raises is not."""
    def at_least_two(x: Any) -> Any:
        if len(x) < 2:
            raise ValueError("too few")
        return x - x.mean()

    f = fusec.jit(at_least_two).concrete(TensorSpec((None,)))
    fusec.save(tmp_path / "m", {"f": f})
    g = fusec.load(tmp_path / "m").f
    assert len(g.signatures) == 1 and g(np.array([1.0, 3.0])).tolist() == [-1.0, 1.0]

    of_fusec: dict[str, Any] = {"__name__": "fusec.broken"}
    exec("def broken(*_):\n    raise KeyError('s0')", of_fusec)
    monkeypatch.setattr(type(f.compiler), "concrete", of_fusec["broken"])
    with pytest.raises(KeyError, match="s0"):
        fusec.save(tmp_path / "m", {"f": f})


def asks(x: Any) -> Any:
    return x.flags.writeable, x * 2.0


def test_whether_arguments_may_be_written_is_compared_where_it_is_asked(tmp_path: Path) -> None:
    fixed = np.ones(3)
    fixed.flags.writeable = False
    for made, other in ((np.ones(3), fixed), (fixed, np.ones(3))):
        g = loaded(tmp_path, asks, made)
        assert g(made)[0] is made.flags.writeable
        with pytest.raises(TypeError, match="the program asks for x"):
            g(other)
        assert loaded(tmp_path, lambda x: x[1:], made)(other).flags.writeable is (
            other.flags.writeable)

    def write(x: Any) -> Any:
        x[0] = 2.0
        return x.sum()

    with pytest.raises(ValueError, match="assignment destination is read-only"):
        loaded(tmp_path, write, np.ones(3))(fixed)


@pytest.mark.parametrize("rank", [1, 2])
def test_sizes_that_no_symbol_can_be(tmp_path: Path, rank: int) -> None:
    """A program that counts with its size is for the one that was traced."""
    def counted(x: Any) -> Any:
        return x.sum() * bin(len(x)).count("1")

    f = fusec.jit(counted).concrete(TensorSpec((None,) * rank))
    x = np.arange(2.0**rank).reshape((2,) * rank)
    assert f(x) == counted(x)
    with pytest.raises(fusec.UnsupportedError, match="sizes were to be open"):
        fusec.save(tmp_path / "m", {"f": f})


def test_a_function_with_a_trace_for_each_size_is_no_open_one(tmp_path: Path) -> None:
    f = fusec.jit(lambda x: x * 2, reduce_retracing=False).concrete(TensorSpec((None,)))
    with pytest.raises(fusec.UnsupportedError, match="reduce_retracing=False"):
        fusec.save(tmp_path / "m", {"f": f})


@pytest.mark.parametrize(("saved", "given", "words"), [
    (TensorSpec((), np.int64), np.int64(3), r"saved for i64\[\] \(an array\), got np.int64 \(a"),
    (np.float64(2), 3.0, r"saved for np.float64 \(a number\), got float \(a number\)"),
    (2.0, np.array(3.0), r"saved for float \(a number\), got f64\[\] \(an array\)"),
])
def test_numbers_are_told_apart_from_arrays_without_axes(
    tmp_path: Path, saved: Any, given: Any, words: str
) -> None:
    with pytest.raises(TypeError, match=words):
        loaded(tmp_path, lambda x: x * 2, saved)(given)


def test_what_python_computes_while_tracing_is_a_constant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTOR", "3")
    f = loaded(tmp_path, lambda x: x * float(os.environ["FACTOR"]), np.ones(2))
    monkeypatch.setenv("FACTOR", "5")
    assert f(np.ones(2)).tolist() == [3.0, 3.0]
