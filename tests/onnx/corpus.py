"""Every program of the corpus and the bench as an ONNX model, run by ONNX Runtime and compared with
NumPy's results.

``python -m tests.onnx.corpus [NAME ...]`` prints a line a program.
"""

from __future__ import annotations

import collections
import re
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import optree

import fusec
from fusec.trace.facts.trees import flattened
from tests.programs.compare import difference, outcome
from tests.programs.five_sizes import Sized, sized_programs

NUMBERS = (bool, int, float, complex, np.generic, np.ndarray)


def session(model: Any) -> Any:
    """The model in ONNX Runtime, on one thread."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return ort.InferenceSession(model.SerializeToString(), options)


def run(model: Any, concrete: Any, arguments: Sequence[Any]) -> dict[str, np.ndarray]:
    """The model's outputs by name, for these arguments."""
    made = session(model)
    traced, leaves = concrete.build.traced, flattened((tuple(arguments), {}))[0]
    given = {}
    for leaf, position in zip(leaves, traced.positions, strict=True):
        if position >= 0:
            wanted = concrete.graph.inputs[position].type.dtype
            given[made.get_inputs()[position].name] = np.asarray(leaf, wanted)
    return dict(zip([o.name for o in made.get_outputs()], made.run(None, given), strict=True))


def found_difference(program: Sized, concrete: Any, model: Any, n: int) -> str:
    """Of the model's results, and of what it says is written, from NumPy's; empty where none."""
    outputs = run(model, concrete, program.inputs(n))
    arguments = program.inputs(n)
    want, after = outcome(program.function, arguments)
    results = [r for r in optree.tree_leaves(want) if isinstance(r, NUMBERS)]
    written = {k: v for k, v in outputs.items() if k.startswith("written_")}
    got = [v for k, v in outputs.items() if k not in written]
    if len(got) != len(results):
        return f"{len(got)} results for {len(results)}"
    leaves = dict(zip(concrete.build.traced.positions, flattened((after, {}))[0], strict=True))
    pairs = list(zip(got, results, strict=True))
    for position, (_, value) in zip(concrete.build.traced.updates, written.items(), strict=True):
        pairs.append((value, leaves[position]))
    texts = (difference(a, np.asarray(b), f"result {i}") for i, (a, b) in enumerate(pairs))
    return next((text for text in texts if text), "")


def report(program: Sized) -> tuple[str, str]:
    """``agrees``, ``differs`` or ``refused``, and a line about it."""
    n, start = program.sizes[2], time.perf_counter()
    try:
        concrete = fusec.jit(program.function, **program.options).concrete(*program.inputs(n))
        model = fusec.to_onnx(concrete, ())
    except fusec.UnsupportedError as error:
        values = error.diagnostic.values or [("", error.diagnostic.title)]
        causes = sorted({re.sub(r" at /.*", "", str(text)) for _, text in values})
        return "refused", "; ".join(causes)
    text = found_difference(program, concrete, model, n)
    return ("differs" if text else "agrees"), f"{text} {time.perf_counter() - start:.1f} s"


def main(names: Sequence[str]) -> None:
    counts: collections.Counter[str] = collections.Counter()
    for program in sized_programs():
        if not names or program.name in names:
            try:
                kind, line = report(program)
            except Exception as error:
                kind, line = "ERROR", f"{type(error).__name__}: {str(error)[:500]}"
            counts[kind] += 1
            print(f"{program.name}: {kind}: {line}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main(sys.argv[1:])
