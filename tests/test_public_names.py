"""Values of `fusec.NAME`: classes that programs catch, and errors for names that are not there."""

import numpy as np
import pytest

import fusec
from fusec.api.absent_names import _ELSEWHERE


@pytest.mark.parametrize("name", [
    "UnrolledWarning", "FirstCallWarning", "RetraceWarning", "DtypeWarning", "PlacementWarning",
    "OverlapError", "FusecValueError", "FusecTypeError", "FusecIndexError", "FusecLinAlgError",
    "FusecAxisError"])
def test_whatever_programs_may_catch_is_there(name: str) -> None:
    assert issubclass(getattr(fusec, name), Exception)


def test_errors_are_caught_by_their_names() -> None:
    with pytest.raises(fusec.FusecValueError):
        fusec.jit(lambda x: x + np.ones(4))(np.ones(3))


@pytest.mark.parametrize("name,said", [
    ("njit", "fusec.jit"), ("jacrev", "fusec.jacobian"),
    ("Benchmark", "did you mean fusec.benchmark?"), ("check_grad", "fusec.check_grads")])
def test_names_of_peers_and_misspelt_ones(name: str, said: str) -> None:
    assert not hasattr(fusec, name)
    with pytest.raises(AttributeError, match=f"no attribute '{name}'") as caught:
        getattr(fusec, name)
    assert said in str(caught.value)


def test_no_name_is_both_there_and_absent() -> None:
    assert not {*_ELSEWHERE} & {*fusec.__all__}


class Scaled:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.factor * x + 1


class Jitted(Scaled):
    __call__ = fusec.jit(Scaled.__call__)


@pytest.mark.parametrize("kind", [Scaled, Jitted])
def test_objects_that_are_called(kind: type) -> None:
    scaled = kind(2.0)
    f = fusec.jit(scaled)
    assert f(np.ones(2)).tolist() == [3, 3]
    scaled.factor = 4.0
    assert f(np.ones(2)).tolist() == [5, 5] and f.__name__ == kind.__name__


def test_a_sparse_array_is_passed_whole_or_by_its_parts() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    a = sparse.random(30, 20, 0.2, format="csr", random_state=0)
    x = np.arange(20.0)
    with pytest.raises(TypeError, match="pass it as an argument") as caught:
        fusec.jit(lambda x: a @ x)(x)
    assert "toarray" not in str(caught.value)
    np.testing.assert_array_equal(fusec.jit(lambda a, x: a @ x)(a, x), a @ x)  # as the cure says

    @fusec.jit
    def product(data, row, col, x, n):
        return np.bincount(row, weights=data * x[col], minlength=n)

    c = a.tocoo()
    np.testing.assert_allclose(product(c.data, c.row, c.col, x, 30), a @ x, rtol=1e-13)
