"""Names that the package does not have: the error names the cure."""

from __future__ import annotations

from collections.abc import Iterable

from fusec.errors import nearest

# What the peers call it, and how fusec does it.
_ELSEWHERE = {
    "pmap": "fusec.replicate on the workers of a cluster; kernels use all cores by themselves",
    "njit": "fusec.jit", "compile": "fusec.jit",
    "prange": "range: loops of kernels use all cores by themselves",
    "guvectorize": "fusec.vectorize for functions of numbers, fusec.jit for functions of arrays",
    "value_and_gradient": "fusec.value_and_grad", "gradient": "fusec.grad",
    "jacrev": "fusec.jacobian", "jacfwd": "fusec.jacobian", "GradientTape": "fusec.grad",
    "Tensor": "np.ndarray: fusec has no arrays of its own", "tensor": "np.asarray",
    "array": "np.array: fusec has no arrays of its own", "numpy": "NumPy itself: import numpy",
    "lax": "Python's if, while and for, or fusec.cond, fusec.while_loop, fusec.scan",
    "Module": "any class: its methods may be jitted, and its fusec.Variables are trained",
    "cuda": "fusec.device(\"GPU\")", "gpu": "fusec.device(\"GPU\")", "cpu": "fusec.device(\"CPU\")",
    "checkpoint": "fusec.Checkpoint keeps Variables; what gradients keep is limited by "
                  "fusec.config.gradient_memory",
    "evaluate": "fusec.jit of a function of the expression", "no_grad": "fusec.stop_gradient",
}


def absent(name: str, known: Iterable[str]) -> AttributeError:
    """The error for a name that the package lacks, with its replacement where that is known.

    ``known`` are the package's names, of which the nearest are offered.
    """
    text = f"module 'fusec' has no attribute {name!r}"
    if name in _ELSEWHERE:
        text += f"; what there is: {_ELSEWHERE[name]}"
    elif close := nearest(name, known):
        text += f"; did you mean {' or '.join(f'fusec.{other}' for other in close)}?"
    return AttributeError(text)
