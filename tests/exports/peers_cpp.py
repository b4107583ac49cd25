"""Functions of `tests.exports.peers` called from C++: the library of `fusec.export_c`, and packages
of AOTInductor by its C++ loader.

``python -m tests.exports.peers_cpp [NAME ...]`` builds both and a program for each, which calls the
functions on arrays of 64 and of 100,000, on one thread.  It needs torch with its headers, and g++.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from .peers import TEXTS, build_aoti, build_fusec

SIZES, ROUNDS = (64, 100_000), 2000
_HEAD = r"""
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>
template <typename F> static double least(F call) {
    double best = 1e30;
    for (int k = 0; k < ROUNDS; k++) {
        timespec from, to;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
        for (int i = 0; i < 10; i++) call();
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
        double ns = (to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec);
        best = std::min(best, ns / 10);
    }
    return best;
}
static double element(size_t i, int of) {
    return (double)((i * 37 + 11 * of) % 1000) / 1000.0;
}
""".replace("ROUNDS", str(ROUNDS))


def names_of(name: str) -> list[str]:
    """The parameters, arrays and the number ``a``."""
    return [p for p in TEXTS[name][0].replace(" ", "").split(",") if p]


def with_fusec(names: Sequence[str]) -> Iterator[str]:
    yield '#include "five.h"\n' + _HEAD
    yield "int main() {\n    for (size_t n : {" + ", ".join(map(str, SIZES)) + "}) {"
    yield "        std::vector<double> x(n), y(n);"
    yield "        for (size_t i = 0; i < n; i++) { x[i] = element(i, 0); y[i] = element(i, 1); }"
    for name in names:
        passed = ", ".join("1.5" if p == "a" else f"{p}.data()" for p in names_of(name))
        sizes = "n"
        yield "        {\n            size_t bytes[1], needed;"
        yield f"            if ({name}_sizes({sizes}, bytes, &needed)) return 1;"
        yield "            std::vector<double> out(bytes[0] / 8);"
        yield "            std::vector<char> work(needed);"
        call = f"{name}({sizes}, {passed}, out.data(), work.data(), needed)"
        yield f"            if ({call}) return 2;"
        yield f"            double ns = least([&] {{ {call}; }});"
        yield f'            printf("{name} %zu %.17g %.1f\\n", n, out[0], ns);'
        yield "        }"
    yield "    }\n    return 0;\n}"


def with_torch(names: Sequence[str], folder: Path) -> Iterator[str]:
    yield "#include <ATen/ATen.h>\n#include <ATen/Parallel.h>"
    yield "#include <torch/csrc/inductor/aoti_package/model_package_loader.h>\n" + _HEAD
    yield "int main() {\n    c10::InferenceMode inference;\n    at::set_num_threads(1);"
    for name in names:
        yield f'    torch::inductor::AOTIModelPackageLoader {name}("{folder / name}.pt2");'
    yield "    for (int64_t n : {" + ", ".join(map(str, SIZES)) + "}) {"
    yield "        at::Tensor a = at::full({}, 1.5, at::kDouble), x = at::empty({n}, at::kDouble);"
    yield "        at::Tensor y = x.clone();\n        for (int64_t i = 0; i < n; i++) {"
    yield "            x.data_ptr<double>()[i] = element(i, 0);"
    yield "            y.data_ptr<double>()[i] = element(i, 1);\n        }"
    for name in names:
        passed = ", ".join(names_of(name))
        yield f"        {{\n            std::vector<at::Tensor> given{{{passed}}};"
        yield f"            auto out = {name}.run(given);"
        yield f"            double ns = least([&] {{ {name}.run(given); }});"
        yield (f'            printf("{name} %lld %.17g %.1f\\n", (long long)n, '
               "out[0].data_ptr<double>()[0], ns);\n        }")
    yield "    }\n    return 0;\n}"


def built(lines: Iterator[str], path: Path, options: Sequence[str]) -> dict[str, Any]:
    """The lines that the program prints, and what building it took."""
    source = path.with_suffix(".cpp")
    source.write_text("\n".join(lines))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["g++", "-std=c++20", "-O2", str(source), "-o", str(path), *options], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    libraries = os.pathsep.join(o[2:] for o in options if o.startswith("-L"))
    told = subprocess.run([path], env={**os.environ, "LD_LIBRARY_PATH": libraries}, check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return {"g++ s": round(after.ru_utime - before.ru_utime, 1),
            "program bytes": path.stat().st_size, "calls": told.splitlines()}


def main(names: Sequence[str]) -> None:
    """See the module."""
    for name in {*TEXTS} - {*names}:
        del TEXTS[name]
    torch = Path(import_module("torch").__file__ or "").parent
    with tempfile.TemporaryDirectory() as at:
        folder = Path(at)
        build_fusec(folder)
        print("fusec", json.dumps(built(with_fusec(names), folder / "ours", [
            f"-I{folder / 'five'}", str(folder / "five/libfive.a"), "-lm"]), indent=1), flush=True)
        build_aoti(folder)
        lib = torch / "lib"
        print("torch", json.dumps(built(with_torch(names, folder), folder / "theirs", [
            f"-I{torch / 'include'}", f"-I{torch / 'include/torch/csrc/api/include'}",
            f"-L{lib}", f"-Wl,-rpath,{lib}", "-ltorch", "-ltorch_cpu", "-lc10"]), indent=1))


if __name__ == "__main__":
    main(sys.argv[1:] or [*TEXTS])
