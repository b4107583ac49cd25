"""Programs of the corpus as ONNX models: loops, branches, sizes that the data decides."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from tests.programs.five_sizes import sized_programs

from . import corpus
from .running import run

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

PROGRAMS = {p.name: p for p in sized_programs()}
SOME = ("nqueens", "sieve", "kepler", "buffon_pi", "xorshift_stream", "viterbi", "median_filter",
        "csr_transpose")
# Results of other kinds, state, libraries, complex numbers; `dct_denoise` cuts at a coefficient
# that two elements have but for rounding.
REFUSED = {
    "gauss_jordan_inverse", "adam_rosenbrock", "normalised_features", "controlled_tank", "track",
    "running_statistics", "filter_chain", "advect", "longstaff_schwartz", "pagerank",
    "robertson_backward_euler", "levinson_durbin", "ekman_spiral", "particle_in_cell",
    "fft_radix2", "fft_recursive", "welch", "dpss_like_multitaper"}
OTHER = {"dct_denoise"}


def _agrees(name: str) -> None:
    kind, text = corpus.report(PROGRAMS[name])
    assert kind == "agrees", text


@pytest.mark.parametrize("name", SOME)
def test_some_programs(name: str) -> None:
    _agrees(name)


@pytest.mark.repeats
@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - REFUSED - OTHER - set(SOME)))
def test_other_programs(name: str) -> None:
    _agrees(name)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_refused(name: str) -> None:
    kind, text = corpus.report(PROGRAMS[name])
    assert kind == "refused", text


def test_the_digits_classifier_has_the_same_predictions() -> None:
    """Trained here as the example does; all 360 test images."""
    pytest.importorskip("sklearn")
    spec = importlib.util.spec_from_file_location(
        "digits_of_onnx", Path(__file__).parents[2] / "examples/digits.py")
    assert spec is not None and spec.loader is not None
    example: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    model, (x, y) = example.Classifier(), example.digits()
    for i in range(0, 1400, 100):
        model.train(x[i: i + 100], y[i: i + 100])

    def predict(images: Any) -> Any:
        return model.scores(images).argmax(axis=1)

    images, labels = example.digits(test=True)
    made = fusec.to_onnx(predict, [fusec.TensorSpec((None, 64), images.dtype)])
    predicted = run(made, images)[0]
    assert len(predicted) == 360
    np.testing.assert_array_equal(predicted, np.asarray(fusec.jit(predict)(images)))
    assert (predicted == labels).mean() > 0.8
