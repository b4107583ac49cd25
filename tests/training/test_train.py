"""`fusec.train`: its calls, its ends, its checkpoints, and how another process goes on."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec


class Model:
    """Its Variable moves towards the numbers that it is shown."""

    def __init__(self) -> None:
        self.w = fusec.Variable(np.zeros(2))
        self.generator = np.random.default_rng(3)

    @fusec.jit
    def step(self, x: np.ndarray) -> Any:
        difference = x - self.w
        self.w.assign_add(0.25 * difference)
        return (difference * difference).sum()

    def noisy(self, x: np.ndarray) -> Any:
        return self.step(x + self.generator.normal(size=2))


def batches(count: int = 10) -> list[np.ndarray]:
    return list(np.random.default_rng(0).normal(size=(count, 2)))


def by_hand(count: int, steps: int) -> Model:
    model = Model()
    for x in itertools.islice(itertools.cycle(batches(count)), steps):
        model.noisy(x)
    return model


def test_one_pass() -> None:
    model, want = Model(), by_hand(10, 10)
    report = fusec.train(model.noisy, model, batches())
    assert (report.step, report.reason, report.state) == (10, "inputs ended", model)
    np.testing.assert_array_equal(model.w.numpy(), want.w.numpy())


def test_steps_go_over_the_inputs_again() -> None:
    model, want = Model(), by_hand(10, 25)
    report = fusec.train(model.noisy, model, batches(), steps=25)
    assert (report.step, report.reason) == (25, "step 25")
    np.testing.assert_array_equal(model.w.numpy(), want.w.numpy())
    assert fusec.train(model.noisy, model, batches(), epochs=2).step == 20


def test_a_state_of_arrays() -> None:
    """Steps take it and return the new one; examples are arguments, by place or by name."""
    @fusec.jit
    def step(state: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray) -> Any:
        w = state["w"] + x * y
        return {"w": w}, {"norm": np.sqrt((w * w).sum())}

    start = {"w": np.zeros(2)}
    pairs = [(np.ones(2), np.full(2, k)) for k in range(4)]
    report = fusec.train(step, start, pairs)
    np.testing.assert_array_equal(report.state["w"], [6, 6])
    assert report.metrics["norm"] == np.sqrt(72) and not start["w"].any()
    named = fusec.train(step, start, [{"y": y, "x": x} for x, y in pairs])
    np.testing.assert_array_equal(named.state["w"], [6, 6])


def test_hooks_see_each_step_and_may_stop() -> None:
    seen: list[Any] = []

    def hook(run: Any) -> None:
        seen.append((run.step, float(run.metrics)))
        if run.step == 3:
            run.stop("three are enough")

    model = Model()
    report = fusec.train(model.step, model, batches(), hooks=[hook])
    assert [n for n, _ in seen] == [1, 2, 3] and report.reason == "three are enough"
    assert "3 steps in " in str(report) and "until three are enough" in str(report)


def test_seconds() -> None:
    model = Model()
    start = time.monotonic()
    report = fusec.train(model.step, model, batches(), seconds=0.2)
    assert report.reason == "0.2 seconds" and 0.2 <= time.monotonic() - start < 20


@pytest.mark.parametrize("prefetch", [0, 3])
@pytest.mark.parametrize("stop", [1, 4, 10, 13])
def test_a_stopped_training_goes_on(tmp_path: Path, stop: int, prefetch: int) -> None:
    """With the same examples and draws: the end is that of a run that nobody stopped."""
    want = by_hand(10, 25).w.numpy()
    path, first = tmp_path / "run", Model()
    report = fusec.train(first.noisy, first, batches(), steps=stop, epochs=None, checkpoint=path,
                         prefetch=prefetch)
    assert report.checkpoint == f"{path}-1"
    model, steps = Model(), []
    report = fusec.train(model.noisy, model, batches(), steps=25, checkpoint=path,
                         hooks=[lambda run: steps.append(run.step)], prefetch=prefetch)
    assert steps == [*range(stop + 1, 26)] and report.resumed_from == f"{path}-1"
    np.testing.assert_array_equal(model.w.numpy(), want)
    anew = Model()
    report = fusec.train(anew.noisy, anew, batches(), steps=2, checkpoint=path, resume=False)
    assert report.step == 2 and report.resumed_from == ""
    read = Model()
    fusec.Checkpoint(state=read).restore(path, strict=False)
    np.testing.assert_array_equal(read.w.numpy(), anew.w.numpy())


def test_arrays_are_gone_on_with(tmp_path: Path) -> None:
    def step(state: Any, x: np.ndarray) -> Any:
        w, count, generator = state
        return (w + x * generator.normal(), count + 1, generator), w.sum()

    def start() -> Any:
        return (np.zeros(2), 0, np.random.Generator(np.random.MT19937(1)))

    whole = fusec.train(step, start(), batches())
    fusec.train(step, start(), batches(), steps=4, checkpoint=tmp_path / "run")
    rest = fusec.train(step, start(), batches(), steps=10, checkpoint=tmp_path / "run")
    assert rest.state[1] == 10 and type(rest.state[1]) is int
    np.testing.assert_array_equal(rest.state[0], whole.state[0])


class Loader:
    """An iterator with a state of its own, as Grain's; it counts what it reads."""

    reads = 0

    def __init__(self) -> None:
        self.place = 0

    def __iter__(self) -> Loader:
        return self

    def __next__(self) -> np.ndarray:
        if self.place == 10:
            raise StopIteration
        self.place, Loader.reads = self.place + 1, Loader.reads + 1
        return batches()[self.place - 1]

    def get_state(self) -> Any:
        return {"place": self.place}

    def set_state(self, state: Any) -> None:
        self.place = state["place"]


@pytest.mark.parametrize("as_bytes", [False, True])
def test_inputs_with_a_state(tmp_path: Path, as_bytes: bool, monkeypatch: Any) -> None:
    """Nothing is read twice, and what was read ahead but not trained on is read again."""
    if as_bytes:
        monkeypatch.setattr(Loader, "get_state", lambda self: b"%d" % self.place)
        monkeypatch.setattr(Loader, "set_state", lambda self, s: setattr(self, "place", int(s)))
    want, first, model = by_hand(10, 10), Model(), Model()
    fusec.train(first.noisy, first, Loader(), steps=6, checkpoint=tmp_path / "run", prefetch=3)
    Loader.reads = 0
    fusec.train(model.noisy, model, Loader(), epochs=1, checkpoint=tmp_path / "run")
    assert Loader.reads == 4
    np.testing.assert_array_equal(model.w.numpy(), want.w.numpy())


def test_when_it_saves(tmp_path: Path) -> None:
    model = Model()
    report = fusec.train(model.step, model, batches(), checkpoint=tmp_path / "run",
                         checkpoint_steps=3, keep=2)
    assert report.checkpoint == f"{tmp_path / 'run'}-4"
    assert sorted(os.listdir(tmp_path)) == [
        "run-3.json", "run-3.safetensors", "run-4.json", "run-4.safetensors"]
    report = fusec.train(model.step, model, batches(), checkpoint=tmp_path / "often",
                         checkpoint_seconds=0)
    assert report.checkpoint.endswith("often-10")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_ends_it(tmp_path: Path, value: float) -> None:
    """The state that made it is not saved."""
    def step(state: np.ndarray, x: float) -> Any:
        return state + x, {"loss": state.sum() * x}

    given = [1.0, 2.0, value, 4.0]
    with pytest.raises(FloatingPointError, match=f"the metric loss is {value} in step 3") as error:
        fusec.train(step, np.ones(2), given, checkpoint=tmp_path / "run", checkpoint_steps=1)
    assert "run-2" in str(error.value) and "goes on from" in error.value.__notes__[0]
    report = fusec.train(step, np.ones(2), given, on_nan="stop", checkpoint=tmp_path / "stop")
    assert report.step == 3 and "was" in report.reason and not report.checkpoint
    assert fusec.train(step, np.ones(2), given, on_nan="ignore").step == 4


def test_errors_say_where_they_were(tmp_path: Path) -> None:
    def step(state: np.ndarray, x: float) -> Any:
        return state / (1 / x), x

    with pytest.raises(ZeroDivisionError) as error:
        fusec.train(step, np.ones(1), [1.0, 2.0, 0.0], checkpoint=tmp_path / "run",
                    checkpoint_steps=1)
    assert error.value.__notes__ == [
        f"in a training, after 2 steps; the same call goes on from {tmp_path / 'run'}-2"]


def failing() -> Iterator[np.ndarray]:
    yield np.ones(2)
    raise OSError("the disk is gone")


@pytest.mark.parametrize("prefetch", [0, 2])
def test_errors_of_inputs(prefetch: int) -> None:
    model = Model()
    with pytest.raises(OSError, match="the disk is gone"):
        fusec.train(model.step, model, failing(), prefetch=prefetch)
    assert model.w.numpy().tolist() == [0.25, 0.25]
    assert not any(t.name == "fusec prefetch" and t.is_alive() for t in threading.enumerate())


@pytest.mark.parametrize("prefetch", [0, 2])
def test_inputs_that_time_out(prefetch: int) -> None:
    """Their error is theirs: nobody takes it for the end, or for an example that is late."""
    def slow() -> Iterator[np.ndarray]:
        yield np.ones(2)
        raise TimeoutError("the server did not answer")

    model = Model()
    with pytest.raises(TimeoutError, match="the server did not answer"):
        fusec.train(model.step, model, slow(), prefetch=prefetch, seconds=20)


PROGRAM = """
import sys, time, numpy as np, fusec

class Model:
    def __init__(self):
        self.w = fusec.Variable(np.zeros(2))

model = Model()

def step(x):
    model.w.assign(0.9 * model.w + x)
    return float(model.w.numpy().sum())

def slowly(run):
    if run.step == 5:
        print("five", flush=True)
    time.sleep(0.01)

report = fusec.train(step, model, [np.full(2, float(k)) for k in range(7)], hooks=[slowly],
                     steps=int(sys.argv[2]), checkpoint=sys.argv[1], checkpoint_steps=2)
print(report.reason, report.step, model.w.numpy().tobytes().hex())
"""


def started(path: Path, steps: int) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(path), str(steps)], text=True,
                            stdout=subprocess.PIPE)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals(tmp_path: Path, number: int) -> None:
    """Asked to end, it ends after a step and saves; killed, the last checkpoint is there; either
    way the next process comes to the numbers of a run that nobody disturbed."""
    whole = started(tmp_path / "whole", 60)
    stopped = started(tmp_path / "run", 100_000)
    assert stopped.stdout is not None and stopped.stdout.readline() == "five\n"
    stopped.send_signal(number)
    said, _ = stopped.communicate(timeout=120)
    if number != signal.SIGKILL:
        assert said.startswith(signal.Signals(number).name) and stopped.returncode == 0
    after, _ = started(tmp_path / "run", 60).communicate(timeout=120)
    want, _ = whole.communicate(timeout=120)
    assert after.splitlines()[-1] == want.splitlines()[-1] and "step 60 60 " in after


def test_a_second_signal_does_what_it_did_before() -> None:
    model, before = Model(), signal.getsignal(signal.SIGINT)

    def hook(run: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        assert run.reason == "SIGINT"
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fusec.train(model.step, model, batches(), hooks=[hook])
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_ends_the_wait_for_an_example() -> None:
    model, release = Model(), threading.Event()

    def slow() -> Iterator[np.ndarray]:
        yield np.ones(2)
        release.wait(60)

    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
    threading.Timer(1.5, release.set).start()
    assert fusec.train(model.step, model, slow()).reason == "SIGTERM"


def test_checkpoints_of_something_else(tmp_path: Path) -> None:
    """Nothing is changed by a checkpoint that does not fit."""
    model, path = Model(), tmp_path / "run"
    fusec.train(model.step, model, batches(), checkpoint=path)
    with pytest.raises(ValueError, match="run-1 is a checkpoint of another state"):
        fusec.train(lambda s, x: (s, 0.0), np.zeros(3), batches(), checkpoint=path)
    other = Model()
    other.w = fusec.Variable(np.zeros(3))
    with pytest.raises(ValueError, match="another state") as error:
        fusec.train(other.step, other, batches(), checkpoint=path)
    assert "state.w here:  float64[3]" in str(error.value), str(error.value)
    with pytest.raises(ValueError, match="fewer examples than were taken before"):
        fusec.train(model.step, model, batches(3), checkpoint=path, steps=20)
    fusec.Checkpoint(state=model).save(path)
    with pytest.raises(ValueError, match="it is no checkpoint of a training"):
        fusec.train(model.step, model, batches(), checkpoint=path)


def test_a_full_disk(tmp_path: Path, monkeypatch: Any) -> None:
    """The checkpoint before stays, and the error reaches the caller."""
    from fusec.state import checkpoint_files

    model = Model()
    fusec.train(model.step, model, batches(), checkpoint=tmp_path / "run", steps=3)

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint_files, "sync", full)
    with pytest.raises(OSError, match="No space left"):
        fusec.train(model.step, model, batches(), checkpoint=tmp_path / "run")
    monkeypatch.undo()
    assert sorted(os.listdir(tmp_path)) == ["run-1.json", "run-1.safetensors"]


@pytest.mark.parametrize(("options", "said"), [
    ({"steps": -1}, "steps is a number from 0 on"), ({"epochs": 1.5}, "epochs is a number"),
    ({"seconds": "1"}, "seconds is a time"), ({"on_nan": "no"}, "on_nan is 'raise'"),
    ({"checkpoint_steps": 0}, "checkpoint_steps is a number from 1"),
    ({"prefetch": None}, ""), ({"checkpoint": "/"}, "names a folder"),
])
def test_options_that_do_not_fit(options: dict[str, Any], said: str) -> None:
    model = Model()
    if not said:
        assert fusec.train(model.step, model, batches(), prefetch=0).step == 10
        return
    with pytest.raises((ValueError, TypeError), match=said):
        fusec.train(model.step, model, batches(), **options)


def test_what_cannot_be_trained() -> None:
    model = Model()
    for state, inputs, said in (
        (object(), batches(), "a state is a tree of arrays, or objects that hold Variables"),
        (model, 3, "inputs are something to iterate over"),
        (np.zeros(2), batches(), "returns the new state and metrics"),
    ):
        with pytest.raises(TypeError, match=said):
            fusec.train(model.step if state is model else lambda s, x: x, state, inputs)
    with pytest.raises(ValueError, match="pass 2 over the inputs has no example"):
        fusec.train(model.step, model, iter(batches()), steps=11)


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    def step(state: np.ndarray, x: np.ndarray) -> Any:
        return state + x, {"loss": 0.25, "at": np.float32(3)}

    fusec.train(step, np.zeros(2), batches(), progress=True)
    said = capsys.readouterr().err
    assert "training" in said and "10/10" in said and "steps/s" in said
    fusec.train(step, np.zeros(2), batches())
    assert capsys.readouterr().err == ""  # no terminal


def test_reading_overlaps_computing() -> None:
    """Both take 10 ms an example: together hardly more than one."""
    def slow() -> Iterator[int]:
        for k in range(30):
            time.sleep(0.01)
            yield k

    def step(state: int, x: int) -> Any:
        time.sleep(0.01)
        return state + x, 0.0

    def seconds(prefetch: int) -> float:
        start = time.perf_counter()
        fusec.train(step, 0, slow(), prefetch=prefetch)
        return time.perf_counter() - start

    assert max(seconds(0) / seconds(2) for _ in range(3)) > 1.7


def test_memory_does_not_grow_with_examples() -> None:
    """Nothing is kept of an example, nor of a step."""
    seen: dict[int, int] = {}

    def note(run: Any) -> None:
        if run.step in (4_000, 12_000):
            seen[run.step] = tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        fusec.train(lambda state, x: (state + x.sum(), 0.0), 0.0,
                    (np.ones(100) for _ in range(12_000)), hooks=[note], prefetch=2)
    finally:
        tracemalloc.stop()
    assert seen[12_000] - seen[4_000] < 50_000, seen  # 800 bytes an example would be 6.4 MB


def test_what_is_saved_is_json(tmp_path: Path) -> None:
    model = Model()
    report = fusec.train(model.step, model, batches(), checkpoint=tmp_path / "run")
    index = json.loads(Path(report.checkpoint + ".json").read_text())
    assert {*index["variables"]} == {
        "state.w", "training.step", "training.inputs", "training.generators"}
