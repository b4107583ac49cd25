"""A sample of the corpus, judged as `tests/gradients/corpus.py` judges all of it."""

from __future__ import annotations

import pytest

from tests.gradients.corpus import verdict
from tests.programs.corpus import programs

SAMPLE = ("kepler", "crank_nicolson", "viterbi", "cholesky", "lstm", "csr_matvec", "rk4_lorenz",
          "fft_recursive", "running_statistics")


@pytest.mark.parametrize("name", SAMPLE)
def test_the_gradient_is_right(name: str) -> None:
    (program,) = (p for p in programs() if p.name == name)
    assert verdict(program) == "right"


def test_what_is_not_known_is_refused() -> None:
    (program,) = (p for p in programs() if p.name == "haar")
    assert verdict(program).startswith("refused: the derivative of Loop (the way back needs")
