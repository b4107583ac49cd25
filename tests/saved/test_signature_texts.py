"""What `concrete` and a loaded function say of the sizes that they are for."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec

SPEC = fusec.TensorSpec
Point = namedtuple("Point", "a b")


def loaded(folder: Path, f: Any, *specs: Any) -> Any:
    fusec.save(folder, {"f": fusec.jit(f).concrete(*specs)})
    return fusec.load(folder).f


def halves(x: Any) -> Any:
    return sum(x[k] for k in range(len(x) // 2)) + 0 * x


def test_sizes_that_were_to_be_open_and_are_not() -> None:
    """Nothing but the 2 of its specs told that."""
    concrete: Any = fusec.jit(halves).concrete(SPEC((None,)))
    why = r"halves\(x: f64\[2\]\), 2 for each open size: it has the value of x.shape\[0\], asked at"
    with pytest.raises(TypeError, match=why):
        concrete(np.ones(5))
    assert "2 for each open size" in str(concrete.explanation())
    assert "open size" not in repr(fusec.jit(halves).concrete(np.ones(2)))


def test_conditions_of_open_sizes(tmp_path: Path) -> None:
    def f(x: Any, y: Any, n: int = 3) -> Any:
        return (x + y) * (2 if len(x) > 100 else n)

    text = str(loaded(tmp_path, f, SPEC((None,)), SPEC((None,))).signatures[0])
    assert text == ("f(TensorSpec([s0], float64), TensorSpec([s0], float64), 3) where s0 >= 2 and "
                    "s0 <= 100")


def test_many_conditions(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return x * sum(k for k in range(5, 20) if len(x) % k)

    assert " more" in str(loaded(tmp_path, f, SPEC((None,))).signatures[0])


def test_numbers_have_their_type(tmp_path: Path) -> None:
    def f(x: Any, a: Any, b: Any, c: Any) -> Any:
        return x * a + b * c

    f = loaded(tmp_path, f, SPEC((2,)), 2.5, np.float32(1), SPEC(()))
    assert str(f.signatures[0]) == (
        "f(TensorSpec([2], float64), float (a number), np.float32 (a number), "
        "TensorSpec([], float64))")


def test_a_generator_is_named_as_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(fusec.UnsupportedError, match=r"calls a random generator \(rng0"):
        loaded(tmp_path, lambda x: x + rng.random(3), SPEC((3,)))


def point(p: Any, x: Any) -> Any:
    return Point(p.a + 1, p.b * x)


def test_specs_inside_of_named_tuples(tmp_path: Path) -> None:
    """They were taken for values of the program."""
    f = loaded(tmp_path, point, Point(SPEC((None,)), 2.0), SPEC((3,)))
    for n in (1, 2, 7):
        a, b = f(Point(np.ones(n), 2.0), np.ones(3))
        assert a.tolist() == [2.0] * n and b.tolist() == [2.0] * 3
    library = fusec.export_c({"point": (point, (Point(SPEC((None,)), 2.0), SPEC((3,))))},
                             tmp_path / "points", ("v3",))
    assert "int64_t p_0_0" in library.header.read_text()


def test_an_array_beside_open_sizes_has_the_size_that_it_has(tmp_path: Path) -> None:
    f = loaded(tmp_path, lambda x, w: (x.sum() * w, x), SPEC((None,)), np.ones(11))
    assert "TensorSpec([11], float64)" in str(f.signatures[0])
