"""The check that a text is the source of the bytecode: small edits of it are all noticed."""

from __future__ import annotations

import io
import itertools
import linecache
import subprocess
import sys
import tokenize
from types import FunctionType

import pytest

import fusec
from fusec.trace.convert.cache import convert
from fusec.trace.convert.hooks import Hooks
from fusec.trace.source.source import find_source, written_source

SAMPLES = '''
import numpy as np
on, off, G = True, False, [1.0, 2.0]

def choose(x, y):
    if on and not off or y:
        return x + y
    elif y is None or x > 3:
        return -x
    return x - y if x else y

def loop(x, y):
    total = 0
    for i in range(3):
        if i == y:
            continue
        total += x * i
        while total < 9:
            total += 2
            if total % 5 == 0:
                break
        else:
            total -= 1
    return total, i

def handled(x, y):
    done = []
    try:
        done.append(x / y)
        done.append(G[x])
    except (ZeroDivisionError, IndexError) as error:
        done.append(type(error).__name__)
    else:
        done.append("else")
    finally:
        done.append(y)
    return done

def asserted(x, y):
    assert x >= 0, "negative"
    if __debug__ and y == 1:
        return x
    assert y != 2
    return 1 <= x < 3 <= y

def calls(x, y=2, *rest, key=0.0, **named):
    add = lambda a, b=y: a + b * 2
    made = [add(i) for i in (x, y) if i != 1]
    (first, *others), last = (x, y, 3), {"a": x, "b": -y}
    named = dict(x=1, y=x), pow(x, exp=y), f"{x:.1f} {y!r}"
    return np.minimum(x, y), sum(made), first, others, last["a"], named, x // 2 ** y

def closure(x, y):
    count = 1
    def inner(z):
        nonlocal count
        count += z
        return count << 1
    inner(x)
    inner(y)
    return [count, x in (1, 2), y not in [3], ~x & y | 4, x ^ y]
'''
NAMES = ("choose", "loop", "handled", "asserted", "calls", "closure")
ARGUMENTS = [(a, b) for a in (0, 1, 2, 4) for b in (0, 1, 2, 3)]
KINDS = (
    ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<"),
    ("<", "<=", ">", ">=", "==", "!=", "is"),
    ("and", "or", "+"), ("not", "-", "~", ""), ("is", "is not", "=="), ("in", "not in", "is"),
    ("+=", "-=", "*=", "="), ("if", "if not"), ("while", "while not"), ("elif", "if"),
    ("return", "", "yield"), ("True", "False", "None"), ("break", "continue", "pass"),
    ("else", "finally"), ("x", "y", "i", "total", "a", "count", "z"), ("on", "off", "y"),
    ("i", "x", "range"), ("total", "x"), ("a", "b"), ("b", "a"), ("count", "x"), ("z", "x"),
    ("first", "others"), ("minimum", "maximum"), ("nonlocal", "global"), ("append", "extend"),
    ("ZeroDivisionError", "IndexError"), ("made", "rest"), ("(", "[("), ("exp", "mod"),
    ("lambda", "lambda z=1,"),
)
REPLACEMENTS = {text: [other for kind in KINDS if text in kind for other in kind if other != text]
                for text in itertools.chain(*KINDS)}


def _mutants():
    """The samples with one token changed, or one line left out, doubled, moved or indented."""
    tokens = list(tokenize.generate_tokens(io.StringIO(SAMPLES).readline))
    lines = SAMPLES.splitlines(keepends=True)
    for token in tokens:
        row, column = token.start
        others = REPLACEMENTS.get(token.string, []) if token.string else []
        if token.type == tokenize.NUMBER:
            others = [f"({token.string} + 1)", f"{token.string}.0", f"-{token.string}"]
        elif token.type == tokenize.STRING:
            others = [token.string.replace(token.string[1], token.string[1] + "Z", 1)]
        for other in others:
            line = lines[row - 1]
            changed = line[:column] + other + line[token.end[1]:]
            yield "".join([*lines[: row - 1], changed, *lines[row:]])
    for row, (line, following) in enumerate(itertools.pairwise(lines)):
        before, after = lines[:row], lines[row + 1:]
        for changed in ([], [line, line], ["    " + line], [line.removeprefix("    ")]):
            yield "".join([*before, *changed, *after])
        yield "".join([*before, following, line, *after[1:]])


def _outcomes(function):
    return [_outcome(function, arguments) for arguments in ARGUMENTS]


def _outcome(function, arguments):
    steps = itertools.count()

    def limit(*event):  # a mutant's loop may not end
        if next(steps) > 300:
            raise TimeoutError
        return limit

    before = sys.gettrace()
    sys.settrace(limit)
    try:
        return repr(function(*arguments))
    except Exception as error:
        return repr(error)
    finally:
        sys.settrace(before)


def _module(text, name):
    """The names defined by the text, read as that file; None where it is no program."""
    space = {"__name__": "samples"}
    try:
        exec(compile(text, name, "exec"), space)
    except Exception:
        return None
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    return space


def _with_code(function, other):
    """A function as its text would now make it, with the globals and defaults that it has."""
    made = FunctionType(other.__code__, function.__globals__, "f", function.__defaults__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _is_found(function):
    return written_source(function.__code__, function.__globals__) is not None


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_every_small_edit_that_changes_a_function_is_noticed():
    name = "<mutant>"
    original = _module(SAMPLES, name)
    behaviour = {n: _outcomes(original[n]) for n in NAMES}
    assert all(_is_found(original[n]) for n in NAMES)
    changed = kept = 0
    for text in dict.fromkeys(_mutants()):
        mutant = _module(text, name)
        for n in NAMES if mutant else ():
            if n in mutant and mutant[n].__code__ == original[n].__code__:
                continue
            found = _is_found(original[n])
            differs = n not in mutant or behaviour[n] != _outcomes(
                _with_code(original[n], mutant[n]))
            assert not (differs and found), f"{n} is another function in\n{text}"
            changed, kept = changed + differs, kept + found
    del linecache.cache[name]
    assert changed > 300
    assert kept > 100


def test_assertions_that_pytest_rewrote_are_compared_too():
    def checked(x):
        assert x.ndim == 1, "a vector is needed"
        return x + 1

    assert "@pytest_ar" in checked.__code__.co_names
    lines = find_source(checked.__code__, checked.__globals__).lines
    at = checked.__code__.co_firstlineno
    edited = [*lines[:at], lines[at].replace("== 1", "== 2"), *lines[at + 1:]]
    name = "<edited test>"
    linecache.cache[name] = 1, None, edited, name
    assert written_source(checked.__code__.replace(co_filename=name), {}) is None
    linecache.cache[name] = 1, None, ["\n", *lines], name
    assert find_source(checked.__code__.replace(co_filename=name), {}).node.lineno == at + 1
    del linecache.cache[name]


OPTIMIZED = '''
import numpy as np
import fusec

class Model:
    __scale = 2.0

    @staticmethod
    @fusec.jit
    def step(x):
        """The docstring."""
        assert x[0] > 5, "checked"
        if __debug__:
            x = x + 100
        return [k * x * Model.__scale for k in (1, 2)]

print(Model.step(np.array([1.0 + 5 * __debug__])))
'''


@pytest.mark.parametrize("option", ["-O", "-OO", "-Xutf8"])
def test_what_the_compiler_leaves_out_at_other_levels(option, tmp_path):
    file = tmp_path / "optimized.py"
    file.write_text("from __future__ import annotations\n" + OPTIMIZED)
    done = subprocess.run([sys.executable, option, str(file)], capture_output=True, text=True)
    shown = "[array([212.]), array([424.])]" if option == "-Xutf8" else "[array([2.]), array([4.])]"
    assert done.stdout.strip() == shown, done.stderr


def test_code_compiled_at_another_level_than_the_process():
    name, text = "<levels>", "def f(x):\n    assert x > 5\n    return x if __debug__ else -x\n"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    for level, expected in ((0, AssertionError), (1, -1), (2, -1)):
        space = {}
        exec(compile(text, name, "exec", optimize=level), space)
        converted = convert(space["f"], Hooks())
        if expected is AssertionError:
            with pytest.raises(AssertionError):
                converted(1)
        else:
            assert converted(1) == expected
    del linecache.cache[name]


def test_a_class_in_a_function_in_a_function() -> None:
    def program(x: float) -> float:
        class Pair:
            class Half:
                k = 0.5

            def __init__(self, x: float) -> None:
                self.x = x * self.Half.k

        return Pair(x).x

    assert fusec.jit(program)(3.0) == 1.5
