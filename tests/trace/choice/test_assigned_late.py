"""Names that a function called late assigns, and the program has read before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

GAIN, COUNT, FLAG = 1.0, 2, None
BUFFER = np.arange(3.0)


class Gauge:
    def __init__(self) -> None:
        self.total, self.hits, self.best = -0.5, 3, None
        self.data = np.arange(3.0)

    def add(self, c: Any) -> None:
        self.total += c

    def count(self) -> None:
        self.hits -= 1

    def keep(self, c: Any) -> Any:
        if self.best is None or c > self.best:
            self.best = c
        return self.best

    def __getitem__(self, i: int) -> Any:
        return self.data[i] + self.total

    def retune(self) -> None:
        global GAIN
        GAIN = GAIN * 2


gauge = Gauge()


def tune(c: Any) -> None:
    global GAIN
    GAIN = GAIN + c


def set_count(c: Any) -> None:
    global COUNT
    COUNT = c


def set_flag(c: Any) -> None:
    global FLAG
    FLAG = c


def scale_buffer() -> None:
    global BUFFER
    BUFFER = BUFFER * 2


def gained(x: Any) -> Any:
    return x * GAIN


def maker() -> Callable[..., None]:
    def inner(c: Any) -> None:
        global GAIN
        GAIN += c

    return inner


def abs_then_tune(x: Any) -> Any:
    a = abs(GAIN)
    tune(a)
    return x * a


def helper_then_tune(x: Any) -> Any:
    a = gained(x)
    tune(1.0)
    return a


def helper_then_a_function_made_inside(x: Any) -> Any:
    a = gained(abs(GAIN))
    maker()(1.0)
    return a * x


def abs_then_a_method(x: Any) -> Any:
    a = abs(GAIN)
    gauge.retune()
    return a * x


def array_then_rebound(x: Any) -> Any:
    a = BUFFER * x
    scale_buffer()
    return a


def element_then_rebound(x: Any) -> Any:
    a = BUFFER[1] + x
    scale_buffer()
    return a * x


def as_a_range(x: Any) -> Any:
    a = x * 0
    for i in range(COUNT):
        a = a + i
    set_count(COUNT + 1)
    return a


def as_a_length(x: Any) -> Any:
    a = np.zeros(3)[:COUNT] * x
    set_count(COUNT - 1 if COUNT > 1 else 3)
    return a.sum() + len(a)


def as_a_flag(x: Any) -> Any:
    a = 0.0 if FLAG is None else FLAG
    set_flag(a + x)
    return a


def attribute_in_a_builtin(x: Any) -> Any:
    gauge.add(abs(gauge.total))
    return x


def attribute_by_setattr(x: Any) -> Any:
    a = abs(gauge.total)
    setattr(gauge, "total", a + x)  # noqa: B010
    return a


def attribute_that_decides(x: Any) -> Any:
    ones = [1.0] * gauge.hits
    gauge.count()
    return sum(ones) * x


def attribute_in_a_test(x: Any) -> Any:
    if gauge.hits > 2:
        x = x + 1
    gauge.count()
    return x


def best_so_far(x: Any) -> Any:
    before = gauge.best
    return gauge.keep(x * 2) + (0.0 if before is None else before)


def item_then_array(x: Any) -> Any:
    s = gauge[0] + x
    gauge.data[:] = x
    return s


PROGRAMS = (
    abs_then_tune, helper_then_tune, helper_then_a_function_made_inside, abs_then_a_method,
    array_then_rebound, element_then_rebound, as_a_range, as_a_length, as_a_flag,
    attribute_in_a_builtin, attribute_by_setattr, attribute_that_decides, attribute_in_a_test,
    best_so_far, item_then_array,
)


def outcomes(program: Callable[..., Any]) -> list[Any]:
    """Results and state of three calls, from one state."""
    global GAIN, COUNT, FLAG, BUFFER, gauge
    GAIN, COUNT, FLAG, BUFFER, gauge = 1.0, 2, None, np.arange(3.0), Gauge()
    found = []
    for k in range(3):
        result = np.asarray(program(2.0 + k)).tolist()
        state = [GAIN, COUNT, FLAG, gauge.total, gauge.hits, gauge.best]
        found.append([result, *(None if v is None else float(v) for v in state),
                      BUFFER.tolist(), gauge.data.tolist()])
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_it_is_read_anew_at_each_call(program: Callable[..., Any]) -> None:
    assert outcomes(fusec.jit(program)) == outcomes(program)


@pytest.mark.parametrize("program", [abs_then_tune, helper_then_tune, attribute_in_a_builtin])
def test_one_trace_does(program: Callable[..., Any]) -> None:
    compiled = fusec.jit(program)
    outcomes(compiled)
    assert compiled.trace_count == 1


SOURCE = '''
class Gauge:
    def __init__(self, data):
        self.data = data
    def __getitem__(self, i):
        return self.data[i]

one = Gauge(np.zeros(3))

def program(x):
    s = one[0] + 1
    one.data[:] = x
    return s
'''


def test_classes_of_code_that_has_no_module() -> None:
    """``exec`` without ``__name__`` makes classes of the module ``builtins``."""
    import linecache

    name = "<a cell>"
    linecache.cache[name] = (len(SOURCE), None, SOURCE.splitlines(True), name)
    module: dict[str, Any] = {"np": np}
    exec(compile(SOURCE, name, "exec"), module)
    compiled = fusec.jit(module["program"])
    assert [compiled(np.full(3, float(k))) for k in range(3)] == [1.0, 1.0, 2.0]
