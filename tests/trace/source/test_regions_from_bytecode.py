"""Functions with `with` and `try` that are rebuilt from their bytecode, where there is no text."""

import numpy as np
import pytest

import fusec
from fusec.trace.source.source import find_source

TEXT = '''
def returned_from_with(x):
    with np.errstate(all="ignore"):
        return x + 1


def branch_in_with(x):
    with np.errstate(all="ignore"):
        y = x + 1
        if x[0] > 2: y = y * 2
    return y


def two_contexts(x):
    with np.errstate(all="ignore") as e, np.printoptions(precision=3):
        y = x + 1
    return y


def break_in_with(x):
    for i in range(3):
        with np.errstate(all="ignore"):
            x = x + i
            if i == 1: break
    return x


def else_and_finally(x):
    try:
        y = x + np.ones(4)
    except ValueError as e:
        y = x - 1
    else:
        y = y * 2
    finally:
        z = x * 3
    return y + z


def passed(x):
    try:
        return x + np.ones(4)
    except (ValueError, TypeError):
        pass
    return x


def finally_alone(x):
    y = x
    try:
        y = y + 1
    finally:
        y = y * 2
    return y


def continue_in_handler(x):
    for i in range(4):
        try:
            x = x + np.ones(3 if i == 2 else 4)
        except ValueError:
            continue
        x = x * 2
    return x


def two_handlers(x):
    try:
        y = x[10]
    except IndexError:
        y = 0.0
    except ValueError:
        y = 1.0
    return y


def with_in_with(x):
    with fusec.device("/device:CPU:0"):
        with fusec.name_scope("a"):
            y = x * 2
        y = y + 1
    return y


def raised_anew(x):
    try:
        try:
            y = x + np.ones(4)
        except ValueError:
            raise KeyError("no")
    except KeyError:
        y = x * 7
    return y


def with_in_try(x):
    try:
        with np.errstate(all="ignore"):
            y = x + np.ones(4)
    except ValueError as e:
        y = x
    return y


def try_in_with(x):
    with np.errstate(all="ignore"):
        try:
            y = x + np.ones(4)
        except ValueError:
            y = x
    return y


def returned_from_handler(x):
    try:
        y = x.nothing
    except AttributeError:
        return x * 3
    return y


def named_and_bare(x):
    try:
        y = x.nothing
    except AttributeError as e:
        y = 1.0
        if x.ndim == 1: y = 2.0
    except:
        raise
    return y * x


def before_a_loop(x, y=None):
    try:
        n = len(y)
    except TypeError:
        n = 1
    for i in range(n):
        x = x + i
    return x


def both_sides_return(x):
    with np.errstate(all="ignore"):
        if x.ndim == 1:
            return x / 0
        else:
            return x


def break_in_handler(x):
    for k in range(4):
        try:
            if k == 2: raise KeyError(k)
            x = x + k
        except KeyError:
            break
    return x


def suppressed(x):
    import contextlib
    with contextlib.suppress(ValueError):
        x = x + np.ones(4)
    return x


def nothing_within(x):
    with np.errstate(all="ignore"):
        with np.errstate(all="warn"):
            pass
        for i in range(3):
            x = x * i
    return x


def branch_in_finally(x):
    try:
        y = x + 1
    finally:
        if x.ndim == 1:
            x = x + 2
    return y + x


def finally_around_except(x):
    try:
        try:
            y = x + np.ones(4)
        except ValueError:
            y = x
    finally:
        y = y * 2
    return y
'''
SPACE: dict = {"np": np, "fusec": fusec}
exec(TEXT, SPACE)
NAMES = [line[4:line.index("(")] for line in TEXT.splitlines() if line.startswith("def ")]


@pytest.mark.parametrize("name", NAMES)
def test_the_tree_compiles_to_the_same_code(name: str) -> None:
    assert find_source(SPACE[name].__code__).node.name == name  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["else_and_finally", "continue_in_handler", "break_in_with",
                                  "returned_from_handler", "try_in_with"])
def test_values_are_pythons(name: str) -> None:
    f = SPACE[name]
    np.testing.assert_array_equal(fusec.jit(f)(np.ones(3)), f(np.ones(3)))


def test_a_way_out_of_finally_is_refused() -> None:
    space: dict = {}
    exec("def f(x):\n    for i in range(3):\n        try:\n            if i: return x\n"
         "        finally:\n            x = x + 1\n    return x * 2\n", space)
    with pytest.raises(fusec.FusecError, match="a way out of finally"):
        fusec.jit(space["f"])(np.ones(3))
