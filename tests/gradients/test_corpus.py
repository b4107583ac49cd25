"""A sample of the corpus, judged as `tests/gradients/corpus.py` judges all of it."""

from __future__ import annotations

import pytest

from tests.gradients.corpus import verdict
from tests.programs.corpus import programs

SAMPLE = ("kepler", "crank_nicolson", "viterbi", "cholesky", "lstm", "csr_matvec", "rk4_lorenz",
          "fft_recursive", "running_statistics", "crr_american_put", "pagerank", "rkf45",
          "sph_density")


@pytest.mark.parametrize("name", SAMPLE)
def test_the_gradient_is_right(name: str) -> None:
    (program,) = (p for p in programs() if p.name == name)
    assert verdict(program) == "right"


def test_of_integers_it_is_zero() -> None:
    (program,) = (p for p in programs() if p.name == "levenshtein")
    assert verdict(program) == "zero"
