"""Models in ONNX Runtime, compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import optree

import fusec


def run(model: Any, *args: Any) -> list[np.ndarray]:
    """The results of ONNX Runtime on one thread."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = ort.InferenceSession(model.SerializeToString(), options)
    names = [given.name for given in session.get_inputs()]
    return session.run(None, dict(zip(names, map(np.asarray, args), strict=True)))


def check(f: Any, *args: Any, ulps: float = 0.0, specs: Any = None) -> None:
    """The model's results have NumPy's dtypes, shapes and values; ``ulps``: of each result's
    largest element."""
    with np.errstate(all="ignore"):
        want = [np.asarray(x) for x in optree.tree_leaves(f(*args))]
    got = run(fusec.to_onnx(f, args if specs is None else specs), *args)
    compare(got, want, ulps)


def compare(got: Any, want: Any, ulps: float = 0.0) -> None:
    """Whether dtypes, shapes and values are the same."""
    for a, b in zip(got, want, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if not ulps:
            np.testing.assert_array_equal(a, b)
            continue
        finite = np.isfinite(b)
        np.testing.assert_array_equal(a[~finite], b[~finite])
        if finite.any():
            unit = np.spacing(np.abs(b[finite]).max()).astype(float)
            assert np.abs(a[finite].astype(float) - b[finite]).max() <= ulps * unit
