"""A list or dict that one way through a loop's body binds anew, and another one changes."""

from __future__ import annotations

import linecache
import warnings
from itertools import count, product

import numpy as np
import pytest

import fusec

SOURCE = """
def program(x, high, low):
    s = 0.0
    {made}
    if x[0] < high:
        {before}
        for i in range({n}):
            if {test}:
                {bound}
            else:
                {changed}
            if {value} < low:
                break
    return {value}
"""
CONTAINERS = [
    ("n = [0, 1.5]", "n = [3, 1.5]", "n[0] += 1", "n[0]"),
    ("n = {'k': 0}", "n = {'k': 7}", "n['k'] += 1", "n['k']"),
    ("n = m = [0]", "n = [3]", "m[0] += 1", "n[0]"),
    ("n = [[0]]", "n = [[4]]", "n[0][0] += 1", "n[0][0]"),
    ("n, m = [0], [5]", "n, m = m, n", "n[0] += 1", "n[0] + 10 * m[0]"),
]
CALLS = [(3.0, 0.5), (3.0, 1.5), (-9.0, 0.5), (3.0, 2.5)]
numbers = count()


def program(**parts):
    source = SOURCE.format(**parts)
    name = f"<rebound {next(numbers)}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    scope: dict = {}
    exec(compile(source, name, "exec"), scope)
    return scope["program"]


@pytest.mark.parametrize(("made", "bound", "changed", "value"), CONTAINERS)
@pytest.mark.parametrize("n", [2, 3, 40])
def test_where_the_run_never_binds_it_anew(made, bound, changed, value, n):
    for test, is_changed in product(["s > 5", "s < 0"], [False, True]):
        f = program(made=made, bound=bound, changed=changed, value=value, n=n, test=test,
                    before=changed if is_changed else "pass")
        fast = fusec.jit(f)
        for args in CALLS:
            assert fast(np.array([-1.375, 1, 2]), *args) == f(np.array([-1.375, 1, 2]), *args)


@pytest.mark.parametrize(("made", "bound", "changed", "value"), CONTAINERS)
@pytest.mark.parametrize("test", ["x[1] > 100", "x[1] < 100 and i > 1", "i == 1"])
@pytest.mark.parametrize("n", [2, 40])
def test_where_data_may_bind_it_anew_it_is_right_or_refused(made, bound, changed, value, test, n):
    f = program(made=made, bound=bound, changed=changed, value=value, n=n, test=test,
                before=changed)
    fast = fusec.jit(f)
    for args in CALLS:
        x = np.array([-1.375, 1, 2])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                got = fast(x, *args)
            except fusec.UnsupportedError as error:
                assert "data chooses" in str(error) or "to another" in str(error) or (
                    "do not settle" in str(error))
                continue
        assert got == f(x, *args)
