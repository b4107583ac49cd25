"""Plans of loaded functions in the disk cache: second processes, misses, damage, the same bits, and
reports that say what they say without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusec
from fusec import config
from fusec.bench.programs import program
from fusec.codegen.kept.kept_plan import KeptPlan
from fusec.codegen.machine_code import disk_cache
from fusec.compiled.kept import kept_entries, kept_plans

CHILD = """
import sys, hashlib, numpy as np, fusec
from fusec.codegen.kept.kept_plan import KeptPlan
f = fusec.load(sys.argv[1]).f
x = np.linspace(0.5, 2.0, 1000)
print(hashlib.sha256(f(x).tobytes()).hexdigest(), type(f.traces[-1].build.call_plan) is KeptPlan)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[Path]:
    disk_cache._State.warned = False
    fusec.clear_caches()  # code in memory is of another folder
    with config.override(cache_dir=str(tmp_path / "cache")):
        yield tmp_path / "cache"


def saved(at: Path, function: Callable[..., Any], *args: Any, **options: Any) -> Path:
    fusec.save(at, {"f": fusec.jit(function, **options).concrete(*args)})
    return at


def wave(x: Any) -> Any:
    return np.exp(-x) * np.sin(x) + np.sum(x) / (1.0 + x)


X = np.linspace(0.5, 2.0, 1000)


def plan_of(at: Path, *args: Any) -> tuple[Any, bool]:
    """The result of a new load, and whether an earlier one's plan gave it."""
    f = fusec.load(at).f
    result = f(*args)
    return result, type(f.traces[-1].build.call_plan) is KeptPlan


def entries(cache: Path) -> list[Path]:
    """The files of plans."""
    return [file for file in cache.glob("??/*.fusec-object") if b'"nests"' in file.read_bytes()]


def child(at: Path, cache: Path, **env: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(at)], text=True, capture_output=True, check=True,
        env={**os.environ, "PYTHONPATH": str(Path(fusec.__file__).parents[1]),
             "FUSEC_CACHE_DIR": str(cache), **env})
    assert not done.stderr
    return done.stdout.split()


def test_a_second_process_has_the_plan_and_the_same_bits(tmp_path: Path, cache: Path) -> None:
    at = saved(tmp_path / "m", wave, X)
    first, second = child(at, cache), child(at, cache)
    assert (first[1], second[1]) == ("False", "True") and first[0] == second[0]
    assert len(entries(cache)) == 1
    assert child(at, cache, FUSEC_VERIFY="1") == [first[0], "False"]
    assert child(at, cache, FUSEC_DETERMINISTIC="0")[1] == "False"
    assert child(at, Path("off")) == [first[0], "False"]


def test_two_processes_at_once(tmp_path: Path, cache: Path) -> None:
    at = saved(tmp_path / "m", wave, X)
    results: list[list[str]] = []
    threads = [threading.Thread(target=lambda: results.append(child(at, cache))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({digest for digest, _ in results}) == 1 and len(entries(cache)) == 1
    assert child(at, cache) == [results[0][0], "True"]


@pytest.mark.parametrize("name", ["black_scholes", "softmax", "layernorm_gelu", "eos", "hdiff"])
def test_programs_have_their_bits(tmp_path: Path, name: str) -> None:
    chosen = program(name)
    for dtype in (np.float64, np.float32):
        args = chosen.make_args(5_000, dtype, 0)
        f = fusec.jit(chosen.function)
        expected = f(*args)
        fusec.save(tmp_path / np.dtype(dtype).name, {"f": f.concrete(*args)})
        found = [plan_of(tmp_path / np.dtype(dtype).name, *args) for _ in range(2)]
        for result, _ in found:
            for one, other in zip(np.atleast_1d(expected), np.atleast_1d(result), strict=True):
                np.testing.assert_array_equal(one, other, strict=True)
        (_, was_kept), (_, is_kept) = found
        assert not was_kept and (is_kept or name in ("hdiff", "eos"))


def test_another_graph_size_order_or_option_misses(tmp_path: Path) -> None:
    at = saved(tmp_path / "m", wave, X)
    plan_of(at, X)
    assert plan_of(at, X)[1]
    others = [
        saved(tmp_path / "graph", lambda x: wave(x) + 1.0, X),
        saved(tmp_path / "strict", wave, X, fp="strict")]
    for other in others:
        assert not plan_of(other, X)[1] and plan_of(other, X)[1]
    assert not plan_of(saved(tmp_path / "size", wave, X[:500]), X[:500])[1]
    assert not plan_of(at, np.repeat(X, 2)[::2])[1]  # memory that lies otherwise
    assert plan_of(at, np.repeat(X, 2)[::2])[1]


def test_sizes_left_open_have_a_plan_each(tmp_path: Path) -> None:
    at = saved(tmp_path / "m", wave, fusec.TensorSpec((None,)))
    for size in (10, 700):
        (first, was), (second, is_kept) = plan_of(at, X[:size]), plan_of(at, X[:size])
        assert (was, is_kept) == (False, True)
        np.testing.assert_array_equal(first, second, strict=True)


@pytest.mark.parametrize("what", ["fusec", "python", "numpy", "source", "machine", "form"])
def test_another_version_misses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    at = saved(tmp_path / "m", wave, X)
    plan_of(at, X)
    if what == "fusec":
        monkeypatch.setattr(kept_entries, "version_of", lambda _: "another")
    elif what == "python":
        monkeypatch.setattr(kept_entries.sys, "version", "another")
    elif what == "numpy":
        monkeypatch.setattr(np, "__version__", "another")
    elif what == "machine":
        monkeypatch.setattr(kept_entries.llvm, "settings", lambda: ("another",))
    elif what == "form":
        monkeypatch.setattr(kept_plans, "KIND", "another")
    else:  # a file of fusec was edited since
        monkeypatch.setattr(kept_entries, "_states", {})
        known = os.stat

        def edited(path: Any, **options: Any) -> Any:
            found = known(path, **options)
            is_ours = str(path).endswith("fusion.py")
            return SimpleNamespace(st_size=found.st_size + 1, st_mtime_ns=found.st_mtime_ns) if (
                is_ours) else found

        monkeypatch.setattr(kept_entries.os, "stat", edited)
    assert not plan_of(at, X)[1]
    assert plan_of(at, X)[1]


def changed(data: bytes, key: str, change: Callable[[Any], None]) -> bytes:
    """An entry with other content, under a checksum that fits."""
    form = json.loads(disk_cache._unpacked(key, data) or b"")
    change(form)
    return disk_cache._packed(key, json.dumps(form).encode())


CHANGES: dict[str, Callable[[Any], None]] = {
    "no nests": lambda form: form["data"].pop("nests"),
    "a list": lambda form: form.update(data=[1, 2]),
    "no such memory": lambda form: form["data"]["outputs"][0].__setitem__(0, 99),
    "no such dtype": lambda form: form["data"]["outputs"][0].__setitem__(3, "<q9"),
    "no such code": lambda form: form["data"]["nests"][0].__setitem__(0, "0" * 64),
    "no such symbol": lambda form: form["data"]["nests"][0].__setitem__(1, "system"),
    "other sources": lambda form: form.update(sources="0"),
    "no sources": lambda form: form.update(modules="fusec/nowhere.py"),
    "words of another kind": lambda form: form["data"]["nests"][0].__setitem__(3, ["a"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_entry_of_another_form_is_made_anew(tmp_path: Path, cache: Path, change: str) -> None:
    at = saved(tmp_path / "m", wave, X)
    expected, _ = plan_of(at, X)
    (file,) = entries(cache)
    key = file.parent.name + file.name.removesuffix(".fusec-object")
    file.write_bytes(changed(file.read_bytes(), key, CHANGES[change]))
    result, is_kept = plan_of(at, X)
    assert not is_kept
    np.testing.assert_array_equal(result, expected, strict=True)
    assert plan_of(at, X)[1]


def test_every_truncation_and_any_flipped_bit_is_no_entry(tmp_path: Path, cache: Path) -> None:
    at = saved(tmp_path / "m", wave, X)
    expected, _ = plan_of(at, X)
    (file,) = entries(cache)
    whole, generator = file.read_bytes(), np.random.default_rng(0)
    damaged = [whole[:n] for n in (0, 1, 40, len(whole) // 2, len(whole) - 1)]
    for place in generator.integers(0, len(whole), 20):
        damaged.append(whole[:place] + bytes([whole[place] ^ 1 << 3]) + whole[place + 1:])
    for data in damaged:
        file.write_bytes(data)
        result, is_kept = plan_of(at, X)
        assert not is_kept and file.read_bytes() == whole
        np.testing.assert_array_equal(result, expected, strict=True)


def test_one_entry_in_the_place_of_another_is_none(tmp_path: Path, cache: Path) -> None:
    one, other = saved(tmp_path / "m", wave, X), saved(tmp_path / "n", lambda x: x * 2.0, X)
    plan_of(one, X)
    (first,) = entries(cache)
    plan_of(other, X)
    (second,) = {*entries(cache)} - {first}
    second.write_bytes(first.read_bytes())
    result, is_kept = plan_of(other, X)
    assert not is_kept and result.tolist() == (X * 2.0).tolist()


def test_a_folder_of_others_a_full_one_and_one_to_read_alone(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = saved(tmp_path / "m", wave, X)
    expected, _ = plan_of(at, X)

    def no_room(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(disk_cache, "_write", no_room)
        result, is_kept = plan_of(at, X)  # reading goes on
        assert is_kept and result.tolist() == expected.tolist()
        assert not plan_of(saved(tmp_path / "n", wave, X[:9]), X[:9])[1]
        assert not plan_of(tmp_path / "n", X[:9])[1]
    cache.chmod(0o777)
    assert not plan_of(at, X)[1]
    cache.chmod(0o700)
    assert plan_of(at, X)[1]


def test_code_that_was_trimmed_is_compiled(tmp_path: Path, cache: Path) -> None:
    at = saved(tmp_path / "m", wave, X)
    expected, _ = plan_of(at, X)
    kept = {*entries(cache)}
    for file in cache.glob("??/*.fusec-object"):
        if file not in kept:
            file.unlink()
    fusec.clear_caches()
    result, is_kept = plan_of(at, X)
    assert not is_kept
    np.testing.assert_array_equal(result, expected, strict=True)


def stripped(text: str) -> str:
    """A report without its times."""
    return "\n".join(line for line in text.splitlines() if " ms" not in line)


def test_reports_say_the_same(tmp_path: Path) -> None:
    at = saved(tmp_path / "m", wave, X)
    functions = [fusec.load(at).f for _ in range(2)]
    for f in functions:
        f(X)
    first, second = (f.traces[-1] for f in functions)
    assert type(second.build.call_plan) is KeptPlan
    assert stripped(second.as_text()) == stripped(first.as_text())
    assert str(second.graph) == str(first.graph)
    assert str(second.optimized_graph) == str(first.optimized_graph)
    assert [(p.name, p.rewrites) for p in second.passes] == [
        (p.name, p.rewrites) for p in first.passes]
    assert str(second.build.call_plan) == str(first.build.call_plan)
    for one, other in zip(first.kernels, second.kernels, strict=True):
        assert one.loops == other.loops and one.source == other.source
        assert dict(one.asm) == dict(other.asm) and one.bytes_loaded == other.bytes_loaded
    assert second.build.call_plan.traffic == first.build.call_plan.traffic
    assert set(second.times) == set(first.times)
    assert second.structured_outputs == first.structured_outputs


def test_dumps_and_profiles_are_whole(tmp_path: Path) -> None:
    at = saved(tmp_path / "m", wave, X)
    folders = [tmp_path / "one", tmp_path / "two"]
    names = []
    for folder in folders:
        with config.override(dump_dir=str(folder)):
            f = fusec.load(at).f
            f(X)
        names.append(sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()))
    assert type(f.traces[-1].build.call_plan) is KeptPlan and len(names[0]) > 3
    assert names[0] == names[1]
    f = fusec.load(at).f
    expected = f(X)
    with fusec.profile(tmp_path / "profile.json"):
        result = f(X)
    assert (tmp_path / "profile.json").stat().st_size > 1000 and np.array_equal(result, expected)


def test_a_call_that_fails_says_where(tmp_path: Path) -> None:
    def picked(x: Any, i: Any) -> Any:
        return x[i] * 2.0

    at = saved(tmp_path / "m", picked, X, np.array([1, 2]))
    for is_kept in (False, True):
        f = fusec.load(at).f
        assert f(X, np.array([1, 2])).tolist() == (X[[1, 2]] * 2.0).tolist()
        assert (type(f.traces[-1].build.call_plan) is KeptPlan) is is_kept
        with pytest.raises(IndexError, match="index 1000 is out of bounds for axis 0"):
            f(X, np.array([1, 1000]))
        assert f(X, np.array([3, 2])).tolist() == (X[[3, 2]] * 2.0).tolist()


def test_arguments_are_checked_and_written_as_ever(tmp_path: Path) -> None:
    def step(x: Any, n: float) -> Any:
        x += n
        return x.sum(), 3.5

    at = saved(tmp_path / "m", step, np.ones(4), 2.0)
    for is_kept in (False, True):
        f = fusec.load(at).f
        x = np.ones(4)
        assert f(x, 2.0) == (12.0, 3.5) and x.tolist() == [3.0] * 4
        assert (type(f.traces[-1].build.call_plan) is KeptPlan) is is_kept
        with pytest.raises(TypeError, match="was not saved for these arguments"):
            f(np.ones(5), 2.0)
        with pytest.raises(TypeError, match="was not saved for these arguments"):
            f(np.ones(4, np.float32), 2.0)


def test_variables_are_those_of_the_load(tmp_path: Path) -> None:
    w = fusec.Variable(np.array([1.0, 2.0, 3.0]))
    f = fusec.jit(lambda x: x * w + w)
    fusec.save(tmp_path / "m", {"f": f.concrete(np.ones(3))}, variables={"w": w})
    for is_kept in (False, True):
        program = fusec.load(tmp_path / "m")
        assert program.f(np.ones(3)).tolist() == [2.0, 4.0, 6.0]
        program.variables["w"].assign(np.zeros(3))
        assert program.f(np.ones(3)).tolist() == [0.0] * 3
        assert (type(program.f.traces[-1].build.call_plan) is KeptPlan) is is_kept


def test_threads_in_one_plan_and_gradients(tmp_path: Path) -> None:
    at = saved(tmp_path / "m", wave, X)
    plan_of(at, X)
    f = fusec.load(at).f
    expected = f(X).tolist()
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.extend(f(X).tolist() == expected
                                                              for _ in range(200)))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 800
    g = fusec.grad(lambda x: f(x).sum())(X)
    np.testing.assert_array_equal(g, fusec.grad(lambda x: wave(x).sum())(X))
