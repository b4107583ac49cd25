"""Five functions as libraries of `fusec.export_c`, of Numba's ``pycc`` and of AOTInductor:
processor time of the build, bytes, processor time of a call from Python.

``python -m tests.exports.peers [fusec] [pycc] [aoti]`` builds and calls each in processes of its
own, on one thread; a peer that is not installed says so.  AOTInductor takes minutes.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

SIZE, ROUNDS = 100_000, 300
TEXTS = {
    "axpy": ("a, x, y", "a * x + y"),
    "normal": ("x,", "m.exp(-0.5 * x * x) / SQRT_2PI"),
    "mixed": ("x, y", "m.sqrt(x * x + y * y) + m.log1p(x) * m.tanh(y)"),
    "squares": ("x,", "(m.sin(x) ** 2).sum()"),
    "polynomial": ("x,", "((((0.5 * x + 1.5) * x - 2.0) * x + 0.25) * x - 1.0) * x + 3.0"),
}


def functions(library: Any) -> dict[str, Callable[..., Any]]:
    """The five, of ``numpy`` or ``torch``."""
    names = {"m": library, "SQRT_2PI": np.sqrt(2.0 * np.pi).item()}
    made = {}
    for name, (parameters, text) in TEXTS.items():
        exec(f"def {name}({parameters}):\n    return {text}", names)
        made[name] = names[name]
    return made


def arguments(name: str) -> list[Any]:
    rng = np.random.default_rng(1)
    given = {"a": 1.5, "x": rng.random(SIZE), "y": rng.random(SIZE)}
    return [given[p] for p in TEXTS[name][0].replace(" ", "").split(",") if p]


def build_fusec(folder: Path) -> list[Path]:
    import fusec

    vector = fusec.TensorSpec((None,))
    made = fusec.export_c({name: (f, [vector if isinstance(x, np.ndarray) else x for x in arguments(
        name)]) for name, f in functions(np).items()}, folder / "five")
    fusec.wheel_stub(made.folder)
    return [made.shared]


def load_fusec(folder: Path) -> dict[str, Callable[..., Any]]:
    sys.path.insert(0, str(folder / "five/python"))
    package = import_module("five")
    return {name: getattr(package, name) for name in TEXTS}


def build_pycc(folder: Path) -> list[Path]:
    pycc: Any = import_module("numba.pycc")
    compiler = pycc.CC("five_pycc")
    compiler.output_dir = str(folder)
    for name, f in functions(np).items():
        types = ", ".join("f8[::1]" if isinstance(x, np.ndarray) else "f8" for x in arguments(name))
        compiler.export(name, f"({types},)")(f)
    compiler.compile()
    return [*folder.glob("five_pycc*.so")]


def load_pycc(folder: Path) -> dict[str, Callable[..., Any]]:
    sys.path.insert(0, str(folder))
    package = import_module("five_pycc")
    return {name: getattr(package, name) for name in TEXTS}


def build_aoti(folder: Path) -> list[Path]:
    torch: Any = import_module("torch")
    inductor: Any = import_module("torch._inductor")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "cache")
    dynamic = torch.export.Dim.DYNAMIC
    made = []
    for name, f in functions(torch).items():
        start = _processor()
        module = torch.nn.Module()
        module.forward = f
        given = tuple(torch.from_numpy(x) if isinstance(x, np.ndarray) else torch.tensor(
            x, dtype=torch.float64) for x in arguments(name))
        shapes = tuple({0: dynamic} if x.ndim else {} for x in given)
        program = torch.export.export(module, given, dynamic_shapes=shapes)
        made.append(folder / f"{name}.pt2")
        inductor.aoti_compile_and_package(program, package_path=str(made[-1]))
        print(f"   {name}: {_processor() - start:.1f} s, {made[-1].stat().st_size} bytes",
              file=sys.stderr, flush=True)
    libraries = Path(torch.__file__).parent / "lib"
    nbytes = sum((libraries / f"lib{name}").stat().st_size for name in (
        "torch.so", "torch_cpu.so", "c10.so", "gomp.so.1"))
    print(f"   libtorch for CPUs beside it: {nbytes} bytes", file=sys.stderr)
    return made


def load_aoti(folder: Path) -> dict[str, Callable[..., Any]]:
    torch: Any = import_module("torch")
    inductor: Any = import_module("torch._inductor")
    torch.set_num_threads(1)
    made = {}
    for name in TEXTS:
        loaded = inductor.aoti_load_package(str(folder / f"{name}.pt2"))
        given = [torch.from_numpy(x) if isinstance(x, np.ndarray) else torch.tensor(
            x, dtype=torch.float64) for x in arguments(name)]

        def call(*_: Any, loaded: Any = loaded, given: Any = given) -> Any:
            return loaded(*given)

        made[name] = call
    return made


PEERS = {"fusec": (build_fusec, load_fusec), "pycc": (build_pycc, load_pycc),
         "aoti": (build_aoti, load_aoti)}


def _processor() -> float:
    """Seconds of this process and of those that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def built(peer: str, folder: Path) -> dict[str, Any]:
    start, clock = _processor(), time.perf_counter()
    files = PEERS[peer][0](folder)
    return {"build s": round(_processor() - start, 1),
            "clock s": round(time.perf_counter() - clock, 1),
            "bytes": sum(file.stat().st_size for file in files)}


def called(peer: str, folder: Path) -> dict[str, Any]:
    """Microseconds of the processor, least of many calls."""
    found: dict[str, Any] = {}
    for name, f in PEERS[peer][1](folder).items():
        given, want = arguments(name), functions(np)[name](*arguments(name))
        result = f(*given)
        got = np.asarray(result[0] if isinstance(result, (list, tuple)) else result)
        np.testing.assert_allclose(got, want, rtol=1e-12)
        least = float("inf")
        for _ in range(ROUNDS):
            start = time.process_time_ns()
            f(*given)
            least = min(least, (time.process_time_ns() - start) / 1e3)
        found[name] = round(least)
    return found


def main(peers: Sequence[str]) -> None:
    """See the module."""
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs")
    one = {f"{of}_NUM_THREADS": "1" for of in ("FUSEC", "OMP", "NUMBA")}
    with tempfile.TemporaryDirectory() as at:
        for peer in peers:
            folder = Path(at) / peer
            folder.mkdir()
            for what in ("built", "called"):
                done = subprocess.run(
                    [sys.executable, "-m", "tests.exports.peers", f"--{what}", peer, str(folder)],
                    env={**os.environ, **one}, stdout=subprocess.PIPE, text=True)
                told = done.stdout.splitlines() or ["nothing"]
                print(f"{peer}: {told[-1] if done.returncode == 0 else 'failed'}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] in (["--built"], ["--called"]):
        measure = built if sys.argv[1] == "--built" else called
        print(json.dumps(measure(sys.argv[2], Path(sys.argv[3]))))
    else:
        main(sys.argv[1:] or [*PEERS])
