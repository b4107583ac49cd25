"""`fusec.summary`: TensorBoard's own reader finds the numbers that programs computed."""

from __future__ import annotations

import importlib.util
import io
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec

pytest.importorskip("tensorboardX")
accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")

ALL = {"scalars": 0, "histograms": 0, "images": 0, "tensors": 0}
X = np.linspace(0.1, 2.0, 40)


def read(folder: Path) -> Any:
    found = accumulator.EventAccumulator(str(folder), size_guidance=ALL)
    found.Reload()
    return found


def scalars(folder: Path, name: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in read(folder).Scalars(name)]


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    yield
    with pytest.raises(RuntimeError):
        fusec.summary.scalar("x", 1.0, step=0)


@fusec.jit
def step(x: np.ndarray, i: int) -> Any:
    loss = np.sin(x + i).sum()
    fusec.summary.scalar("loss", loss, step=i)
    return loss


def single(x: Any) -> float:
    return float(np.float32(x))


# ------------------------------------------------------------------------------------ what is read


def test_scalars_of_a_compiled_function(tmp_path: Path) -> None:
    with fusec.summary.writer(tmp_path) as writer:
        losses = [step(X, i) for i in range(20)]
        writer.flush()
        assert len(scalars(tmp_path, "loss")) == 20
    assert scalars(tmp_path, "loss") == [(i, single(x)) for i, x in enumerate(losses)]
    assert writer.path == tmp_path


def test_each_kind_inside_and_outside(tmp_path: Path) -> None:
    def program(x: np.ndarray, i: int) -> Any:
        fusec.summary.scalar("a b/größe", x[:1], step=i)
        fusec.summary.histogram("h", np.log(x), step=i)
        fusec.summary.image("grey", x.reshape(5, 8) / 2, step=i)
        fusec.summary.image("colour", (np.abs(x[:36]).reshape(3, 4, 3) * 100).astype(np.uint8),
                            step=i)
        fusec.summary.text("note", "**two** words", step=i)

    for name, function in (("inside", fusec.jit(program)), ("outside", program)):
        with fusec.summary.writer(tmp_path / name):
            function(X, 3)
            function(X, 4)
        found = read(tmp_path / name)
        assert [e.value for e in found.Scalars("a b/größe")] == [single(X[0])] * 2
        histogram = found.Histograms("h")[0].histogram_value
        assert (histogram.num, histogram.min, histogram.max) == pytest.approx(
            (40, np.log(0.1), np.log(2.0)))
        counts = np.histogram(np.log(X), [-np.inf, *histogram.bucket_limit])[0]
        np.testing.assert_array_equal(counts, histogram.bucket)
        assert histogram.sum == pytest.approx(np.log(X).sum())
        np.testing.assert_array_equal(
            pixels(found.Images("grey")[0])[..., 0], np.round(X.reshape(5, 8) / 2 * 255))
        np.testing.assert_array_equal(
            pixels(found.Images("colour")[1]), (X[:36].reshape(3, 4, 3) * 100).astype(np.uint8))
        note = found.Tensors("note")[1]
        assert note.step == 4 and note.tensor_proto.string_val[:] == [b"**two** words"]


def pixels(event: Any) -> np.ndarray:
    images = pytest.importorskip("PIL.Image")
    return np.asarray(images.open(io.BytesIO(event.encoded_image_string)))


def test_histograms_leave_out_what_is_not_finite(tmp_path: Path) -> None:
    with fusec.summary.writer(tmp_path):
        fusec.summary.histogram("h", np.array([1.0, np.nan, np.inf, 2.0]), step=0)
        fusec.summary.histogram("none", np.array([np.nan]), step=0)
        fusec.summary.histogram("zeros", np.zeros((3, 4), np.int8), step=0)
    found = read(tmp_path)
    assert [found.Histograms(name)[0].histogram_value.num for name in ("h", "none", "zeros")] == [
        2, 0, 12]


def test_in_branches_loops_and_gradients(tmp_path: Path) -> None:
    def loss(x: np.ndarray, i: int) -> Any:
        total = np.sum(x * x)
        fusec.summary.scalar("inside of the gradient", total, step=i)
        return total

    @fusec.jit
    def program(x: np.ndarray, n: int) -> Any:
        for i in range(n):
            x = x - 0.1 * fusec.grad(loss)(x, i)
            if x.sum() < 10:
                fusec.summary.scalar("small", x.sum(), step=i)
        return x

    with fusec.summary.writer(tmp_path):
        program(X, 12)
    x, small, totals = X, [], []
    for i in range(12):
        totals.append((i, np.sum(x * x)))
        x = x - 0.2 * x
        if x.sum() < 10:
            small.append((i, x.sum()))
    for name, wanted in (("small", small), ("inside of the gradient", totals)):
        found = scalars(tmp_path, name)
        assert [i for i, _ in found] == [i for i, _ in wanted]
        np.testing.assert_allclose([v for _, v in found], [v for _, v in wanted], rtol=1e-6)


def test_on_a_device(tmp_path: Path) -> None:
    with fusec.summary.writer(tmp_path), fusec.device("/device:CUDAHOST:0"):
        losses = [step(X, i) for i in range(3)]
    assert scalars(tmp_path, "loss") == [(i, single(x)) for i, x in enumerate(losses)]


def test_a_repeated_call_writes_once(tmp_path: Path) -> None:
    @fusec.jit
    def program(x: np.ndarray, at: np.ndarray) -> Any:
        fusec.summary.scalar("first", x[0], step=0)
        return x[at] * 2  # a check that fails has NumPy repeat the call

    with fusec.summary.writer(tmp_path):
        with pytest.raises(IndexError):
            program(X, np.array([0, 99]))
        program(X, np.array([0, 9]))
    assert len(scalars(tmp_path, "first")) == 2


# ----------------------------------------------------------------------------------- when it is off


def test_every_decides_by_the_step(tmp_path: Path) -> None:
    with fusec.summary.writer(tmp_path, every=5):
        for i in range(12):
            step(X, i)
            fusec.summary.scalar("outside", i, step=np.int64(i))
    assert [i for i, _ in scalars(tmp_path, "loss")] == [0, 5, 10]
    assert [i for i, _ in scalars(tmp_path, "outside")] == [0, 5, 10]


@fusec.jit
def without(x: np.ndarray, i: int) -> Any:
    return np.sin(x + i).sum()


def compared(f: Any) -> set[str]:
    """What a call of a recent plan compares."""
    return {str(g) for g in f.traces[-1].guards if not g.is_announced and " code of " not in str(g)}


def test_off_there_is_nothing_in_the_code(tmp_path: Path) -> None:
    f = fusec.jit(step.python_function)
    with fusec.summary.writer(None):
        for i in range(3):
            f(X, i)
        assert all("HostCall" not in trace.graph.ops for trace in f.traces)
        without(X, 1)
        assert compared(f) == compared(without)
        traced = f.trace_count
    with fusec.summary.writer(tmp_path):
        f(X, 7)
        assert "HostCall" in f.traces[-1].graph.ops
    with fusec.summary.writer(None):
        f(X, 8)
    with fusec.summary.writer(tmp_path):
        f(X, 9)
    assert f.trace_count == traced + 1  # each kind of code is kept
    assert [i for i, _ in scalars(tmp_path, "loss")] == [7, 9]


def test_functions_without_summaries_are_not_traced_again(tmp_path: Path) -> None:
    f = fusec.jit(lambda x: x * 2)
    f(X)
    with fusec.summary.writer(tmp_path):
        f(X)
    assert f.trace_count == 1


def test_the_innermost_writer_is_written_to(tmp_path: Path) -> None:
    with fusec.summary.writer(tmp_path / "a"):
        step(X, 0)
        with fusec.summary.writer(tmp_path / "b"):
            step(X, 1)
        step(X, 2)
    assert [i for i, _ in scalars(tmp_path / "a", "loss")] == [0, 2]
    assert [i for i, _ in scalars(tmp_path / "b", "loss")] == [1]


def test_a_writer_that_ends_in_a_call_is_not_forgotten() -> None:
    """The call that is running must not leave its plan to the calls that come."""
    writer = fusec.summary.writer(None)

    class Ends:
        armed = False

        def write(self, text: str) -> None:
            if self.armed:
                self.armed = False
                writer.__exit__(None, None, None)

    ends = Ends()

    @fusec.jit
    def program(x: np.ndarray) -> Any:
        fusec.print("now", file=ends)
        fusec.summary.scalar("x", x[0], step=0)
        return x * 2

    with writer:
        program(X)
        program(X)
        ends.armed = True
        program(X)
        writer.__enter__()  # for the `with`
        ends.armed = True
        program(X)
        refused(RuntimeError, "outside of a writer", program, X)
        writer.__enter__()


# --------------------------------------------------------------------------------------- bad input


def refused(kind: type[Exception], match: str, call: Any, *args: Any, **named: Any) -> None:
    with pytest.raises(kind, match=match):
        call(*args, **named)


def test_outside_of_a_writer() -> None:
    refused(RuntimeError, r"outside of a writer(.|\n)*cure: with fusec.summary.writer",
            fusec.summary.scalar, "x", 1.0, step=0)
    refused(RuntimeError, r"outside of a writer(.|\n)*test_summaries.py:\d+ in step",
            fusec.jit(step.python_function), X, 0)


def test_bad_writers(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    writer = fusec.summary.writer
    refused(ValueError, "give a folder that is there", writer, tmp_path / "file")
    refused(ValueError, "give a folder that is there", writer, "/proc/no/such")
    refused(TypeError, "path of a folder", writer, 3)
    refused(ValueError, r"every=0.*at least 1", writer, tmp_path, every=0)
    refused(TypeError, "an int is needed", writer, tmp_path, every=0.5)
    with writer(None) as one, pytest.raises(RuntimeError, match="is open"), one:
        pass


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX.summary", None)
    refused(ImportError, r"pip install fusec\[summary\]",
            fusec.summary.writer(tmp_path).__enter__)


@pytest.mark.parametrize("is_jitted", [False, True])
def test_bad_values(tmp_path: Path, is_jitted: bool) -> None:
    s = fusec.summary

    def of(function: Any) -> Any:
        return fusec.jit(function) if is_jitted else function

    with s.writer(tmp_path):
        refused(TypeError, "scalar of .*one real number", of(
            lambda x: s.scalar("x", x, step=0)), X)
        refused(TypeError, "scalar of .*one real number", of(
            lambda x: s.scalar("x", x[0] * 1j, step=0)), X)
        refused(TypeError, "image of .*uint8 or floats", of(
            lambda x: s.image("x", x, step=0)), X)
        refused(TypeError, "image of .*uint8 or floats", of(
            lambda x: s.image("x", x.reshape(5, 4, 2), step=0)), X)
        refused(TypeError, "text of .*a str", of(lambda x: s.text("x", x, step=0)), X)
        refused(TypeError, "the name is", of(lambda x: s.scalar(3, x[0], step=0)), X)
        refused(TypeError, "step is", of(lambda x: s.scalar("x", x[0], step=0.5)), X)
        refused(TypeError, "step is", of(lambda x: s.scalar("x", x[0], step=x[1])), X)


# -------------------------------------------------------------------------------- a training run


def test_the_digits_example_with_two_hundred_summaries(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    path = Path(__file__).parents[2] / "examples" / "digits.py"
    spec = importlib.util.spec_from_file_location("digits_with_summaries", path)
    assert spec is not None and spec.loader is not None
    digits = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(digits)

    class Watched(digits.Classifier):  # type: ignore[misc, name-defined]
        @fusec.jit(input_signature=(*digits.BATCH, fusec.TensorSpec((), np.int64)))
        def watched(self, x: np.ndarray, labels: np.ndarray, i: Any) -> Any:
            loss = self.train(x, labels)
            fusec.summary.scalar("loss", loss, step=i)
            for name, weight in self.weights.items():
                fusec.summary.scalar(f"norm/{name}", np.sqrt(np.sum(np.square(weight))), step=i)
            fusec.summary.histogram("W1", self.weights["W1"], step=i)
            return loss

    model, (x, y) = Watched(), digits.digits()
    wanted: dict[str, list[float]] = {"loss": [], **{f"norm/{k}": [] for k in model.weights}}
    with fusec.summary.writer(tmp_path):
        for i in range(40):
            at = i * 100 % 1400
            wanted["loss"].append(model.watched(x[at:at + 100], y[at:at + 100], np.int64(i)))
            for name, weight in model.weights.items():
                wanted[f"norm/{name}"].append(np.linalg.norm(np.asarray(weight)))
    found = read(tmp_path)
    assert sum(len(found.Scalars(name)) for name in wanted) == 200
    for name, values in wanted.items():
        assert [event.step for event in found.Scalars(name)] == [*range(40)]
        np.testing.assert_allclose([e.value for e in found.Scalars(name)], values, rtol=1e-6)
    assert len(found.Histograms("W1")) == 40
    assert found.Histograms("W1")[-1].histogram_value.num == 64 * 96


def test_steps_that_no_file_can_hold_lose_no_others(tmp_path: Path) -> None:
    @fusec.jit
    def noted(x: Any, i: int) -> Any:
        fusec.summary.scalar("x", x, step=i)
        return x

    with fusec.summary.writer(tmp_path):
        fusec.summary.scalar("x", 1.0, step=2**63 - 1)
        for call in (lambda: fusec.summary.scalar("x", 2.0, step=2**63),
                     lambda: fusec.summary.scalar("x", 2.0, step=-2**63 - 1)):
            with pytest.raises(ValueError, match="beyond 64 bits"):
                call()
        for flag in (True, np.True_):
            with pytest.raises(TypeError, match="a summary's step is"):
                fusec.summary.scalar("x", 2.0, step=flag)
        noted(3.0, 4)
    assert scalars(tmp_path, "x") == [(2**63 - 1, 1.0), (4, 3.0)]


@pytest.mark.parametrize("value", [None, "words"])
def test_what_is_no_number_is_named(tmp_path: Path, value: Any) -> None:
    def noted(x: Any) -> Any:
        fusec.summary.scalar("x", value, step=0)
        return x

    with fusec.summary.writer(tmp_path):
        for f in (noted, fusec.jit(noted)):
            with pytest.raises(TypeError, match=f"fusec.summary.scalar of {value!r}: numbers"):
                f(1.0)


def test_a_folder_that_is_removed_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with (pytest.warns(RuntimeWarning, match="run was removed while .* they are lost") as caught,
          fusec.summary.writer(folder)):
        fusec.summary.scalar("x", 1.0, step=0)
        shutil.rmtree(folder)
    assert caught[0].filename == __file__


def test_summaries_prints_and_warnings_of_a_loop_keep_their_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    @fusec.jit
    def told(x: Any, n: int) -> Any:
        for i in range(n):
            fusec.print("a", i)
            fusec.summary.scalar("x", x[i], step=i)
            fusec.print("b", i, x[i], sep="|", end=";\n")
        fusec.summary.scalar("sum", x.sum(), step=n)
        return x[n]  # the check of it may repeat the call

    with fusec.summary.writer(tmp_path), pytest.raises(IndexError):
        told(np.arange(2.0), 2)
    assert capsys.readouterr().out == "a 0\nb|0|0.0;\na 1\nb|1|1.0;\n"
    assert scalars(tmp_path, "x") == [(0, 0.0), (1, 1.0)]
    assert scalars(tmp_path, "sum") == [(2, 1.0)]
