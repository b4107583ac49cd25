"""Error classes, the exact text of messages, and frame hiding."""

from __future__ import annotations

import pickle
import traceback
from pathlib import Path

import numpy as np
import pytest

from fusec import config, errors
from fusec.errors import Diagnostic, FusecError, user_error
from fusec.ir.graph import Loc

SOURCE = "def f(a, b):\n    y = a + b\n\tz = é * y + f(\n\n"


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "prog.py"
    path.write_text(SOURCE, encoding="utf-8")
    return str(path)


def test_full_text(program: str) -> None:
    error = user_error(
        ValueError,
        "operands could not be broadcast together with shapes (3,) (4,)",
        Loc(program, 2, 8, "f", 13),
        "make the sizes equal, or one of them 1",
        ["sizes are compared from the last axis"],
        values=[("left", "f64[3]"), ("b", "f64[4]")],
        candidates=["np.add.outer"],
    )
    assert str(error) == f"""\
operands could not be broadcast together with shapes (3,) (4,)
  left: f64[3]
  b:    f64[4]
  note: sizes are compared from the last axis
  did you mean np.add.outer?
  cure: make the sizes equal, or one of them 1
  at {program}:2 in f
    y = a + b
        ^^^^^"""


def test_place_without_columns_or_source(program: str) -> None:
    known_line = f"no\n  at {program}:2\n    y = a + b"
    assert str(user_error(TypeError, "no", Loc(program, 2))) == known_line
    assert str(user_error(TypeError, "no", Loc(program, 4, 2))) == f"no\n  at {program}:4"
    assert str(user_error(TypeError, "no", Loc("<stdin>", 1, 0))) == "no\n  at <stdin>:1"
    assert str(user_error(TypeError, "no")) == "no"


def test_carets_count_bytes_and_stop_at_the_end_of_the_line(program: str) -> None:
    # On line 3 the letter é takes two bytes, so `y` is byte 10 and character 9.
    assert str(user_error(TypeError, "no", Loc(program, 3, 10, "", 11))).splitlines()[2:] == [
        "    z = é * y + f(",
        "            ^",
    ]
    several_lines = user_error(TypeError, "no", Loc(program, 3, 14, "", 1))
    assert str(several_lines).splitlines()[-1] == "                ^^"


@pytest.mark.parametrize(
    "base",
    [ValueError, TypeError, IndexError, KeyError, OverflowError, ZeroDivisionError,
     FloatingPointError, NotImplementedError, np.exceptions.AxisError,
     np.exceptions.DTypePromotionError, np.linalg.LinAlgError],
)
def test_user_errors_are_numpys_and_ours_and_pickle(base: type[Exception]) -> None:
    error = user_error(base, "what", None, "do that", values=[("x", np.dtype("f8"))])
    assert isinstance(error, base)
    assert isinstance(error, FusecError)
    assert type(error) is errors.error_class(base)
    assert type(error).__name__ == f"Fusec{base.__name__}"
    assert str(error) == "what\n  x: float64\n  cure: do that"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert again.diagnostic == error.diagnostic
    assert pickle.loads(pickle.dumps(type(error))) is type(error)


@pytest.mark.parametrize(
    ("cls", "base"),
    [(errors.TraceError, TypeError), (errors.ConcreteValueError, TypeError),
     (errors.UnsupportedError, NotImplementedError)],
)
def test_fixed_classes(cls: type[FusecError], base: type[Exception]) -> None:
    error = cls("what", cure="that", values=[("x", 1)])
    assert isinstance(error, base)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (cls, "what\n  x: 1\n  cure: that")
    assert errors.error_class(cls) is cls


def test_unsupported_names_the_nearest() -> None:
    error = errors.unsupported("np.sinn", ["np.sin", "np.sinh", "np.cos"], cure="use np.sin")
    assert str(error) == """\
np.sinn is not supported inside a fusec.jit function
  did you mean np.sin or np.sinh?
  cure: use np.sin"""
    assert str(errors.unsupported("np.unwrap", ["np.sin"])) == (
        "np.unwrap is not supported inside a fusec.jit function"
    )


def test_internal_errors_ask_for_a_report() -> None:
    error = errors.InternalError("no lowering for 'sin'", values=[("node", "sin_1")])
    assert str(error) == f"""\
internal error: no lowering for 'sin'
  node: sin_1
  note: this happened with {errors.version_line()}
  cure: this is a defect of fusec, not of your program: please report it with this text"""
    assert f"numpy {np.__version__}" in errors.version_line()
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_place_is_filled_in_once() -> None:
    error = user_error(ValueError, "what")
    assert error.located(Loc("a", 1)).loc == Loc("a", 1)
    assert error.located(Loc("b", 2)).loc == Loc("a", 1)


def test_diagnostic_prints_itself() -> None:
    assert str(Diagnostic("what", (("a", "1"),), "that")) == "what\n  a: 1\n  cure: that"


def _call_through_fusec(function: object) -> BaseException:
    """Call ``function`` from a frame whose module says it belongs to fusec."""
    space = {"__name__": "fusec.trace.fake"}
    exec("def inner(f):\n    return f()\ndef outer(f):\n    return inner(f)", space)
    try:
        space["outer"](function)  # type: ignore[operator]
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def _users_function() -> None:
    try:
        raise KeyError("first")
    except KeyError as error:
        raise user_error(ValueError, "second") from error


def _functions(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_frames_are_hidden() -> None:
    error = _call_through_fusec(_users_function)
    assert _functions(error) == ["_call_through_fusec", "outer", "inner", "_users_function"]
    assert errors.hide_frames(error) is error
    assert _functions(error) == ["_call_through_fusec", "_users_function"]
    assert _functions(error.__cause__) == ["_users_function"]  # type: ignore[arg-type]


def test_frames_stay_when_asked_and_for_internal_errors() -> None:
    with config.override(verbose_errors=True):
        assert len(_functions(errors.hide_frames(_call_through_fusec(_users_function)))) == 4

    def fail() -> None:
        raise errors.InternalError("oops")

    assert "inner" in _functions(errors.hide_frames(_call_through_fusec(fail)))


def test_unknown_attributes_of_the_module() -> None:
    assert errors.FusecValueError is errors.error_class(ValueError)
    with pytest.raises(AttributeError, match="has no attribute 'FusecNothing'"):
        _ = errors.FusecNothing
