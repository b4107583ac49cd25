"""`fusec.Checkpoint`: saved values are restored, and other files are refused untouched."""

from __future__ import annotations

import hashlib
import json
import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec

pytest.importorskip("safetensors")


class Layer:
    __slots__ = ("W", "__hidden", "b")

    def __init__(self, n: int) -> None:
        self.W, self.b = fusec.Variable(np.full((n, 2), 1.5)), fusec.Variable(np.zeros(2))
        self.__hidden = fusec.Variable(n)


class Model:
    def __init__(self) -> None:
        self.layers = [Layer(2), Layer(3)]
        self.named = {"a": fusec.Variable(np.float32(0.1)), 3: (fusec.Variable(True), "text", 1)}
        self.itself = self
        self.again = self.layers[1]
        self.array = np.ones(3)


def test_names_are_access_paths() -> None:
    names = fusec.Checkpoint(model=Model(), step=fusec.Variable(0)).variables
    assert set(names) == {
        "step", "model.again.W", "model.again._Layer__hidden", "model.again.b",
        "model.layers[0].W", "model.layers[0]._Layer__hidden", "model.layers[0].b",
        "model.named['a']", "model.named[3][0]"}


def test_names_do_not_depend_on_the_order_of_assignments() -> None:
    class Plain: ...

    one, other, v = Plain(), Plain(), fusec.Variable(1)
    one.x, one.y = v, [v]  # type: ignore[attr-defined]
    other.y, other.x = [v], v  # type: ignore[attr-defined]
    assert list(fusec.Checkpoint(m=one).variables) == list(
        fusec.Checkpoint(m=other).variables) == ["m.x"]


def test_the_rfcs_example(tmp_path: Path) -> None:
    W = fusec.Variable(np.zeros((10, 10)))

    @fusec.jit
    def train() -> None:
        W.assign_add(1.0)

    train()
    checkpoint = fusec.Checkpoint(W=W)
    checkpoint.save(tmp_path / "checkpoint")
    train()
    checkpoint.restore(tmp_path / "checkpoint")
    assert (W.numpy() == 1).all()
    train()
    assert (W.numpy() == 2).all()


@pytest.mark.parametrize("dtype", "?bhilBHILefdFD")
@pytest.mark.parametrize("shape", [(), (3, 2), (0, 3)])
def test_values_are_restored_bit_for_bit(tmp_path: Path, dtype: str, shape: Any) -> None:
    bits = np.random.default_rng(0).integers(0, 2 if dtype == "?" else 256, (
        *shape, np.dtype(dtype).itemsize), np.uint8)
    value = bits.reshape(-1).view(dtype).reshape(shape)
    v = fusec.Variable(np.zeros(shape, dtype))
    v.buffer[...] = value
    checkpoint = fusec.Checkpoint(v=v)
    path = checkpoint.save(tmp_path / "c")
    at = v.buffer.ctypes.data
    v[...] = 0
    assert checkpoint.restore(path).names == ("v",)
    assert v.buffer.tobytes() == value.tobytes() and v.buffer.ctypes.data == at


def test_one_value_in_two_places_is_saved_once(tmp_path: Path) -> None:
    v = fusec.Variable(np.ones(3))
    path = fusec.Checkpoint(a=v, b=[v]).save(tmp_path / "c")
    assert list(json.loads(Path(f"{path}.json").read_text())["variables"]) == ["a"]


def test_another_process_restores(tmp_path: Path) -> None:
    path = fusec.Checkpoint(w=fusec.Variable(np.arange(4.0) * 1j)).save(tmp_path / "c")
    code = ("import fusec, numpy, sys; v = fusec.Variable(numpy.zeros(4, complex));"
            f"fusec.Checkpoint(w=v).restore({path!r}); print(v.numpy().tolist());"
            "assert not any(m.startswith('fusec.trace') for m in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert eval(done.stdout) == [0, 1j, 2j, 3j]


def test_older_ones_go(tmp_path: Path) -> None:
    v = fusec.Variable(0)
    checkpoint = fusec.Checkpoint(v=v, max_to_keep=2)
    paths = []
    for _ in range(4):
        v.assign_add(1)
        paths.append(Path(checkpoint.save(tmp_path / "c")).name)
    assert paths == ["c-1", "c-2", "c-3", "c-4"]
    assert sorted(os.listdir(tmp_path)) == [
        "c-3.json", "c-3.safetensors", "c-4.json", "c-4.safetensors"]
    fusec.Checkpoint(v=v).save(tmp_path / "c2")  # another prefix is another row
    checkpoint.restore(tmp_path / "c-3")
    assert int(v) == 3
    checkpoint.restore(tmp_path / "c")
    assert int(v) == 4


def test_names_that_only_one_side_has(tmp_path: Path) -> None:
    a, b = fusec.Variable(1.0), fusec.Variable(2.0)
    path = fusec.Checkpoint(a=a, b=b).save(tmp_path / "c")
    a.assign(7.0)
    other = fusec.Checkpoint(a=a, c=b)
    with pytest.raises(ValueError, match="does not have") as caught:
        other.restore(path)
    assert "missing:    c" in str(caught.value) and "unexpected: b" in str(caught.value)
    assert float(a) == 7.0
    report = other.restore(path, strict=False)
    assert (report.names, report.missing, report.unexpected) == (("a",), ("c",), ("b",))
    assert float(a) == 1.0


@pytest.mark.parametrize("value,kind,shown", [
    (np.zeros(3), ValueError, "float64[3]"), (np.zeros(2, np.float32), TypeError, "float32[2]")])
def test_another_dtype_or_shape(tmp_path: Path, value: Any, kind: Any, shown: str) -> None:
    first, second = fusec.Variable(np.ones(2)), fusec.Variable(np.ones(2))
    path = fusec.Checkpoint(a=first, b=second).save(tmp_path / "c")
    first.assign_add(1)
    with pytest.raises(kind, match="b was saved as another") as caught:
        fusec.Checkpoint(a=first, b=fusec.Variable(value)).restore(path)
    assert f"expected: {shown}" in str(caught.value) and "found:    float64[2]" in str(caught.value)
    assert first.numpy().tolist() == [2, 2]


# -- hostile files --------------------------------------------------------------------------------


def edit_index(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path, Path], None]:
    def edit(index: Path, _: Path) -> None:
        content = json.loads(index.read_text())
        change(content)
        index.write_text(json.dumps(content))

    return edit


def header(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path, Path], None]:
    """Another header of the safetensors file."""
    def edit(_: Path, data: Path) -> None:
        raw = data.read_bytes()
        length = struct.unpack("<Q", raw[:8])[0]
        content = json.loads(raw[8: 8 + length])
        change(content)
        text = json.dumps(content).encode()
        data.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + length:])

    return edit


def honest(change: Callable[[np.ndarray], Any]) -> Callable[[Path, Path], None]:
    """Other values, with hashes to match."""
    def edit(index: Path, data: Path) -> None:
        raw = bytearray(data.read_bytes())
        content = json.loads(index.read_text())
        flag = np.frombuffer(raw, np.uint8)[-1:]
        change(flag)
        content["variables"]["flag"]["sha256"] = hashlib.sha256(flag).hexdigest()
        data.write_bytes(raw)
        index.write_text(json.dumps(content))

    return edit


HOSTILE: dict[str, Callable[[Path, Path], Any]] = {
    "values cut": lambda i, d: d.write_bytes(d.read_bytes()[:-3]),
    "values empty": lambda i, d: d.write_bytes(b""),
    "values longer": lambda i, d: d.write_bytes(d.read_bytes() + b"xxxx"),
    "values gone": lambda i, d: d.unlink(),
    "values of another": lambda i, d: d.write_bytes(b"PK\x03\x04 a pickle, say" * 100),
    "header of 2**63 bytes": lambda i, d: d.write_bytes(
        struct.pack("<Q", 1 << 63) + d.read_bytes()[8:]),
    "one bit": lambda i, d: d.write_bytes(d.read_bytes()[:-20] + bytes(
        [d.read_bytes()[-20] ^ 1]) + d.read_bytes()[-19:]),
    "offsets beyond": header(lambda h: h["a"].update(data_offsets=[1 << 40, (1 << 40) + 32])),
    "offsets that overlap": header(lambda h: h["a"].update(data_offsets=h["b"]["data_offsets"])),
    "a huge shape": header(lambda h: h["a"].update(shape=[1 << 60])),
    "negative sizes": header(lambda h: h["a"].update(shape=[-4])),
    "another dtype": header(lambda h: h["a"].update(dtype="I64")),
    "an unknown dtype": header(lambda h: h["a"].update(dtype="OBJECT")),
    "no values of a": header(lambda h: h.update(z=h.pop("a"))),
    "index cut": lambda i, d: i.write_text(i.read_text()[:-30]),
    "index of bytes": lambda i, d: i.write_bytes(b"\xff\xfe\x00" * 100),
    "index nested": lambda i, d: i.write_text("[" * 200_000),
    "index of another": lambda i, d: i.write_text("[1, 2]"),
    "index points elsewhere": edit_index(lambda c: c.update(values="../../etc/passwd")),
    "index points at a sibling": edit_index(lambda c: c.update(values="other-1.safetensors")),
    "index of a later version": edit_index(lambda c: c.update(version=99)),
    "index without fields": edit_index(lambda c: c["variables"]["a"].pop("sha256")),
    "index with a pickle": edit_index(lambda c: c["variables"]["a"].update(dtype="O")),
    "index with a text as shape": edit_index(lambda c: c["variables"]["a"].update(shape="4")),
    "index with a list as dtype": edit_index(lambda c: c["variables"]["a"].update(dtype=[])),
    "index with a dict for how": edit_index(lambda c: c["variables"]["a"].update(stored={})),
    "values in a pipe": lambda i, d: (d.unlink(), os.mkfifo(d)),
    "index with a huge size": edit_index(lambda c: c["variables"]["a"].update(shape=[10**30])),
    "index with another hash": edit_index(lambda c: c["variables"]["a"].update(sha256="0" * 64)),
    "booleans of 7": honest(lambda flag: flag.__setitem__(slice(None), 7)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_and_change_nothing(tmp_path: Path, name: str) -> None:
    variables = {"a": fusec.Variable(np.arange(4.0)), "b": fusec.Variable(np.arange(4.0)),
                 "flag": fusec.Variable(np.array([True]))}
    checkpoint = fusec.Checkpoint(**variables)
    path = checkpoint.save(tmp_path / "c")
    HOSTILE[name](Path(f"{path}.json"), Path(f"{path}.safetensors"))
    for variable in variables.values():
        variable[...] = 1
    with pytest.raises(ValueError, match="cannot be restored: ") as caught:
        checkpoint.restore(path)
    assert "no Variable was changed" in str(caught.value)
    assert all((variable.numpy() == 1).all() for variable in variables.values())


# -- what else goes wrong -------------------------------------------------------------------------


def test_what_cannot_be_named(tmp_path: Path) -> None:
    v = fusec.Variable(1)
    for holder in ({v}, {(1, 2): v}):
        with pytest.raises(ValueError, match="no stable name"):
            fusec.Checkpoint(x=[holder]).save(tmp_path / "c")


def test_bad_arguments(tmp_path: Path) -> None:
    v = fusec.Variable(1)
    with pytest.raises(ValueError, match="max_to_keep"):
        fusec.Checkpoint(v=v, max_to_keep=0)
    with pytest.raises(FileNotFoundError, match="no complete checkpoint"):
        fusec.Checkpoint(v=v).restore(tmp_path / "nowhere" / "c")
    with pytest.raises(FileNotFoundError, match="no complete checkpoint"):
        fusec.Checkpoint(v=v).restore(tmp_path / "c")
    with pytest.raises(NotImplementedError, match=r"Checkpoint\.save"):
        fusec.jit(lambda: fusec.Checkpoint(v=v).save(tmp_path / "c"))()


def test_without_safetensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match="pip install 'safetensors"):
        fusec.Checkpoint(v=fusec.Variable(1)).save(tmp_path / "c")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "long", "dangling link"])
def test_what_is_no_index_is_passed_over(tmp_path: Path, kind: str) -> None:
    """It neither hangs nor hides the newest checkpoint, and is left where it is."""
    value = fusec.Variable(np.arange(4.0))
    checkpoint = fusec.Checkpoint(v=value, max_to_keep=1)
    path = checkpoint.save(tmp_path / "c")
    false = tmp_path / "c-7.json"
    {"pipe": os.mkfifo, "device": lambda p: p.symlink_to("/dev/zero"), "folder": os.mkdir,
     "long": lambda p: (p.touch(), os.truncate(p, 1 << 40)),
     "dangling link": lambda p: p.symlink_to(tmp_path / "nothing")}[kind](false)
    value.assign(np.zeros(4))
    with pytest.warns(fusec.errors.CheckpointWarning, match=r"c-7\.json is passed over.*c-1\.json"):
        assert checkpoint.restore(tmp_path / "c").path == path
    np.testing.assert_array_equal(value.numpy(), np.arange(4.0))
    with pytest.raises((FileNotFoundError, ValueError)):
        checkpoint.restore(tmp_path / "c-7")
    newer = checkpoint.save(tmp_path / "c")
    assert newer.endswith("c-8")
    assert checkpoint.restore(tmp_path / "c").path == newer
    assert os.path.lexists(false)


def test_folders_and_nothing_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = fusec.Checkpoint(v=fusec.Variable(1))
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, ".", ""):
        with pytest.raises(ValueError, match="names a folder, and no checkpoint in it"):
            checkpoint.save(folder)
    for empty in (fusec.Checkpoint(), fusec.Checkpoint(model=[np.ones(3)])):
        with pytest.raises(ValueError, match="reaches no Variable, so there is nothing to save"):
            empty.save(tmp_path / "c")
    hidden = np.array([fusec.Variable(1), None], object)
    with pytest.raises(ValueError, match="an array of objects"):
        fusec.Checkpoint(a=hidden, v=fusec.Variable(1)).save(tmp_path / "c")
    assert not os.listdir(tmp_path)


def test_a_full_disk_leaves_the_older_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    v = fusec.Variable(1)
    checkpoint = fusec.Checkpoint(v=v, max_to_keep=1)
    checkpoint.save(tmp_path / "c")
    v.assign(2)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            checkpoint.save(tmp_path / "c")
    assert len(os.listdir(tmp_path)) == 2  # what was written of the new one is gone
    checkpoint.restore(tmp_path / "c")
    assert int(v) == 1
    checkpoint.save(tmp_path / "c")
    assert len(os.listdir(tmp_path)) == 2


# -- kill -9 --------------------------------------------------------------------------------------

KILLS = int(os.environ.get("FUSEC_KILLS", "20"))
KILLED = """
import os, random, signal, sys, time
import numpy as np
import fusec

folder, kills, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
path, rng = os.path.join(folder, "model"), random.Random(seed)
w, n = fusec.Variable(np.zeros(20_000), name="w"), fusec.Variable(0)
checkpoint = fusec.Checkpoint(w=w, n=n, max_to_keep=2)
start = time.perf_counter()
checkpoint.save(path)
longest = 0.02 + 4 * (time.perf_counter() - start)  # of a busy machine, too
during = 0
for kill in range(kills):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        while True:
            n.assign_add(1)
            w.assign_add(1)
            checkpoint.save(path)
            os.write(writer, int(n).to_bytes(8, "little"))
    os.close(writer)
    first = os.read(reader, 8) if kill % 3 == 0 else b""  # one save at least
    time.sleep(rng.uniform(0.0, longest))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as said:
        done = first + said.read()
    saved = int.from_bytes(done[-8:], "little")
    during += len([f for f in os.listdir(folder) if f.endswith(".part")]) > 0
    before = int(n)
    checkpoint.restore(path)
    assert (w.numpy() == int(n)).all(), "a checkpoint of two moments"
    assert int(n) >= max(saved, before), (int(n), saved, before)
print(kills, during, int(n))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_the_newest_complete_one_restores_after_kill_9(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(KILLS), str(random.randrange(1000))],
        capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    kills, _, saves = map(int, done.stdout.split())
    assert kills == KILLS and saves > 0
    v = fusec.Variable(0)
    fusec.Checkpoint(v=v, max_to_keep=2).save(tmp_path / "model")
    assert len(os.listdir(tmp_path)) == 4  # what stopped saves had left is gone
