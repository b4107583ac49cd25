"""The source converter: converted functions keep their meaning, and hooks see everything."""

from __future__ import annotations

import _pydecimal
import ast
import difflib
import fractions
import functools
import inspect
import itertools
import math
import re
import statistics
import sys
import textwrap
import traceback
import types
from pathlib import Path

import convert_samples as samples
import numpy as np
import pytest

from fusec.errors import hide_frames as strip_frames
from fusec.ir.graph import Loc
from fusec.trace.convert import hooks as hooks_module
from fusec.trace.convert import properties
from fusec.trace.convert.cache import convert, converted_code
from fusec.trace.convert.call_table import CallTable
from fusec.trace.convert.callbacks import CALLS
from fusec.trace.convert.hooks import Hooks
from fusec.trace.facts.policy import stays_plain
from fusec.trace.rewrite import flow
from fusec.trace.source.errors import SourceUnavailable

HOOK_NAMES = (
    "call", "getattr", "setattr", "delattr", "getitem", "setitem", "delitem", "unop", "binop",
    "iop", "compare", "contains", "test", "operand", "not_", "iterate", "unpack", "format_value",
)


class Recorder(Hooks):
    """Notes the name and the arguments of every hook, in the order they happen."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple] = []

    def names(self) -> list[str]:
        return [name for name, *_ in self.seen]

    def places(self, hook: str) -> list[tuple[int, int, int]]:
        return [(w[1], w[2], w[4]) for name, w, *_ in self.seen if name == hook]


def _recording(name):
    def hook(self, where, /, *args, **kwargs):
        self.seen.append((name, where, *args))
        return getattr(Hooks, name)(self, where, *args, **kwargs)

    return hook


for _name in HOOK_NAMES:
    setattr(Recorder, _name, _recording(_name))


def outcome(fn, args):
    """The outcome of a call: the value or the exception, and everything evaluated on the way."""
    samples.CALLS.clear()
    samples.COUNT = 0
    try:
        result = ("value", repr(fn(*args)))
    except Exception as error:
        result = (type(error).__name__, str(error))
    result = tuple(re.sub(r"0x[0-9a-f]+|convert_samples\.", "", text) for text in result)
    return result, list(samples.CALLS), samples.COUNT


def _asks_twice():
    """Whether this Python asks for the truth of an operand twice: 3.12 up to .7, and 3.13.0."""
    asked = []

    class Operand:
        def __bool__(self):
            asked.append(self)
            return False

    first = Operand()
    if (first and first) or None:
        pass
    bool((first and first) or None)
    return len(asked) > 2


ASKS_TWICE = _asks_twice()


def each_once(found):
    """The outcome as Pythons without that fault have it."""
    result, calls, count = found
    return result, [call for call, _ in itertools.groupby(calls)], count


@pytest.mark.parametrize(
    ("fn", "args"), samples.SAMPLES,
    ids=[f"{getattr(f, '__name__', f)}{i}" for i, (f, _) in enumerate(samples.SAMPLES)],
)
def test_converted_functions_mean_the_same(fn, args):
    hooks = Recorder()
    expected = outcome(fn, args)
    got = outcome(functools.partial(hooks.call, hooks.where, fn), args)
    assert got == expected or (ASKS_TWICE and each_once(got) == each_once(expected))


def without_source(fn):
    """The same function as `exec` makes it."""
    inner = tuple(c.replace(co_filename="<nowhere>") if isinstance(c, types.CodeType) else c
                  for c in fn.__code__.co_consts)
    code = fn.__code__.replace(co_filename="<nowhere>", co_consts=inner)
    made = types.FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    made.__kwdefaults__, made.__qualname__ = fn.__kwdefaults__, fn.__qualname__
    return made


def test_functions_rebuilt_from_their_bytecode_mean_the_same():
    rebuilt = 0
    for fn, args in samples.SAMPLES:
        if not isinstance(fn, types.FunctionType):
            continue
        hooks, plain = Recorder(), without_source(fn)
        try:
            convert(plain, hooks)
        except SourceUnavailable:
            continue
        rebuilt += 1
        expected = outcome(fn, args)
        found = outcome(functools.partial(hooks.call, hooks.where, plain), args)
        assert (found[0], found[2]) == (expected[0], expected[2]), fn.__name__
    assert rebuilt > 55, rebuilt  # 3.12 inlines comprehensions: a few less than in 3.11


def test_every_hook_is_reached_by_the_samples():
    hooks = Recorder()
    for fn, args in samples.SAMPLES:
        outcome(functools.partial(hooks.call, hooks.where, fn), args)
    assert set(hooks.names()) == set(HOOK_NAMES)


# -- order, once, places --------------------------------------------------------------------------


def test_hooks_come_in_pythons_order():
    def f(a, i, y):
        a[i] += y * 2
        return a.sum() < y

    hooks = Recorder()
    convert(f, hooks)(np.ones(3), 1, 2.0)
    assert hooks.names() == [
        "getitem", "binop", "iop", "setitem", "getattr", "call", "compare",
    ]


def test_places_are_the_users():
    def f(x, y):
        z = x + y * 2
        return np.maximum(z,
                          y).sum(
                              axis=0)

    hooks, first = Recorder(), f.__code__.co_firstlineno
    convert(f, hooks)(np.ones(2), np.ones(2))
    assert hooks.places("binop") == [(first + 1, 16, 21), (first + 1, 12, 21)]
    # as in CPython's tracebacks, a call through several lines is at its method's name
    assert [p[0] - first for p in hooks.places("call")] == [2, 3]
    loc = Loc._make(hooks.seen[0][1])
    assert (loc.file, loc.line, loc.function) == (__file__, first + 1, "f")


def test_the_place_returns_to_the_caller_after_a_call():
    def inner(x):
        return x + 1

    class AtEnd(Hooks):
        def handler(self, x):
            return self.loc.line

    hooks = AtEnd(CallTable(CALLS))
    hooks.table.register(math.sin, AtEnd.handler)

    def outer(x):
        inner(x)
        return (math.sin(inner(x)),
                hooks.loc.line)

    line = outer.__code__.co_firstlineno + 2
    assert convert(outer, hooks)(1) == (line, line + 1)


def test_after_an_error_the_place_is_the_innermost_one():
    def inner(x):
        return x + "text"

    def outer(x):
        return inner(x)

    hooks = Hooks()
    with pytest.raises(TypeError):
        convert(outer, hooks)(1)
    assert hooks.loc == Loc(__file__, inner.__code__.co_firstlineno + 1, 15, "inner", 25)


def test_tracebacks_show_only_the_users_lines():
    def inner(x):
        y = x + 1
        return y[0]

    def outer(x):
        return list(map(inner, [x]))

    try:
        convert(outer, Hooks())(1)
    except TypeError as error:
        frames = traceback.extract_tb(strip_frames(error).__traceback__)[1:]
    lines = outer.__code__.co_firstlineno + 1, inner.__code__.co_firstlineno + 2
    assert [f.lineno for f in frames] == list(lines)
    assert [f.name for f in frames] == ["outer", "inner"]
    assert [f.line for f in frames] == ["return list(map(inner, [x]))", "return y[0]"]
    assert all(f.filename == __file__ for f in frames)


def test_frame_lines_are_the_users():
    def f():
        a = [
            sys._getframe(1).f_lineno,  # frame 0 is the call hook's
        ]
        b = (a,
             sys._getframe(1).f_lineno)
        return a[0], b[1], sys._getframe(1).f_code.co_name

    first = f.__code__.co_firstlineno
    assert convert(f, Hooks())() == (first + 2, first + 5, "f")
    lines = {line for _, _, line in converted_code(f.__code__).co_lines() if line}
    assert lines <= set(range(first, first + 7))


# -- sharing --------------------------------------------------------------------------------------


def test_cells_are_shared_with_the_original():
    count, reset = samples.make_counter(10)
    converted = convert(count, Hooks())
    assert (converted(), count()) == (11, 12)
    convert(reset, Hooks())(0)
    assert (converted(), count()) == (1, 2)


def test_globals_are_read_when_used(monkeypatch):
    converted = convert(samples.calling, Hooks())
    monkeypatch.setattr(samples, "defaults_of", lambda *args, **kwargs: "rebound")
    assert converted()[0] == "rebound"
    assert converted.__globals__ is vars(samples)
    assert "__fusec__" not in vars(samples)


def test_metadata_and_defaults_are_kept():
    def f(a, b=[1], *, c={2: 3}, **d):  # noqa: B006
        """Says so."""
        return b, c

    f.mark = "kept"
    converted = convert(f, Hooks())
    assert converted(0)[0] is f.__defaults__[0]
    assert converted(0)[1] is f.__kwdefaults__["c"]
    same = ("__name__", "__qualname__", "__module__", "__doc__", "mark")
    assert all(getattr(converted, n) == getattr(f, n) for n in same)
    assert converted.__code__.co_qualname == f.__code__.co_qualname


def test_bound_methods_keep_self():
    box = samples.Box(5)
    converted = convert(box.fluent, Hooks())
    assert converted.__self__ is box
    assert converted(2) is box
    assert box.value == 7


def test_a_closure_of_one_trace_uses_the_hooks_of_the_next():
    def make(k):
        return lambda x: x + k

    old, new = Recorder(), Recorder()
    kept = convert(make, old)(3)
    old.seen.clear()
    assert new.call(new.where, kept, 4) == 7
    assert new.names() == ["call", "binop"]
    assert old.seen == []


# -- the call table -------------------------------------------------------------------------------


def test_handlers_answer_by_identity():
    class Unhashable:
        __hash__ = None

        def __call__(self):
            return "plain"

    thing, table = Unhashable(), CallTable(CALLS)
    table.register(thing, lambda hooks: "thing")
    table.register(np.zeros, lambda hooks, *args: ("zeros", args))
    table.register(np.ndarray.sum, lambda hooks, a, axis=None: ("sum", a.size, axis))
    table.register(samples.Box.fluent, lambda hooks, box, x: ("fluent", box.value, x))
    table.register(np.random.RandomState.rand, lambda hooks, state, *n: ("rand", n))
    table.register(np.random.Generator.normal, lambda hooks, rng: "normal")
    table.register(np.float64, lambda hooks, x: ("float64", x))

    def f(x, box, rng):
        return [
            thing(), np.zeros(3), x.sum(axis=0), (lambda m: m())(x.sum), box.fluent(2),
            np.random.rand(2), rng.normal(), np.float64(1), x.max(), list(map(np.zeros, (4,))),
        ]

    converted = convert(f, Hooks(table))
    assert converted(np.ones(3), samples.Box(1), np.random.default_rng(0)) == [
        "thing", ("zeros", (3,)), ("sum", 3, 0), ("sum", 3, None), ("fluent", 1, 2),
        ("rand", (2,)), "normal", ("float64", 1), 1.0, [("zeros", (4,))],
    ]
    assert np.zeros not in CALLS
    assert len(table) == len(CALLS) + 7


def test_functions_passed_as_values_are_converted():
    def key(x):
        return x * -1

    hooks = Recorder()
    convert(lambda xs: sorted(xs, key=key), hooks)([1, 2])
    assert [s[2:] for s in hooks.seen if s[0] == "binop"] == [("mul", 1, -1), ("mul", 2, -1)]


def test_properties_partials_and_callable_objects_are_converted():
    hooks = Recorder()
    box = samples.Box(2)
    add = functools.partial(lambda a, b: a - b, 10)
    assert convert(lambda: (box.double, box(3), add(b=4)), hooks)() == (4, 5, 6)
    assert [s[2] for s in hooks.seen if s[0] == "binop"] == ["mul", "add", "sub"]


def test_the_numeric_stack_and_the_standard_library_stay_plain():
    from scipy import special

    for fn in (np.mean, np.linalg.norm, statistics.mean, functools.wraps, convert, special.softmax):
        inner = getattr(fn, "__wrapped__", fn)
        assert not isinstance(inner, types.FunctionType) or stays_plain(inner)
    assert not stays_plain(samples.factorial)


def test_a_users_module_named_like_a_standard_one_is_converted(tmp_path, monkeypatch):
    (tmp_path / "queue.py").write_text("def f(x):\n    return x + 1\n")
    space = {"__name__": "queue"}
    exec(compile((tmp_path / "queue.py").read_text(), str(tmp_path / "queue.py"), "exec"), space)
    hooks = Recorder()
    assert hooks.call(hooks.where, space["f"], 1) == 2
    assert hooks.names() == ["call", "binop"]


# -- library code ---------------------------------------------------------------------------------


def statistics_of(data):
    names = ["mean", "median", "stdev", "geometric_mean", "quantiles", "multimode", "fmean"]
    fitted = statistics.linear_regression(data, data[::-1])
    return [getattr(statistics, n)(data) for n in names], fitted, statistics.NormalDist(1, 2).cdf(0)


def harmonic_sum(n):
    total = fractions.Fraction(0)
    for i in range(1, n):
        total += fractions.Fraction(1, i)
    return total, total.limit_denominator(50), float(total), total**2, round(total)


def text_tools(text):
    close = difflib.get_close_matches("appel", ["ape", "apple", "peach"])
    ratio = difflib.SequenceMatcher(None, text, text[::-1]).ratio()
    return textwrap.fill(text, 33), textwrap.shorten(text, 40), close, ratio


def decimals(text):
    value = _pydecimal.Decimal(text)
    return str(value.sqrt()), str(value.exp()), f"{value:,.2f}", str(value // 2), value.is_nan()


@pytest.mark.parametrize(("fn", "arg", "least"), [
    (statistics_of, [1.5, 2, 2, 5, 9.25, 3], 200), (harmonic_sum, 12, 10),
    (text_tools, "The quick brown fox jumps over the lazy dog. " * 3, 400), (decimals, "2.5", 200),
])
def test_library_code_means_the_same(monkeypatch, fn, arg, least):
    """Real code through every hook: the policy is relaxed to all but the machinery's own modules
    and generators."""
    plain = {"ast", "contextlib", "dis", "functools", "fusec", "linecache", "re", "weakref"}

    def relaxed(inner):
        module = inner.__globals__["__name__"].partition(".")[0]
        codes = (inner.__code__, *inner.__code__.co_consts)
        flags = [c.co_flags for c in codes if getattr(c, "co_name", "<")[0] != "<"]
        return module in plain or any(f & inspect.CO_GENERATOR for f in flags)

    monkeypatch.setattr(hooks_module, "stays_plain", relaxed)
    monkeypatch.setattr(properties, "stays_plain", relaxed)
    hooks = Recorder()
    assert convert(fn, hooks)(arg) == fn(arg)
    assert len(hooks.seen) > least


def test_walks_of_a_tree_pass_over_contexts_and_operators_alone():
    tree = ast.parse(Path(flow.__file__).read_text() + textwrap.dedent("""
        match x:
            case {"a": [1, *b], **c} | P(d=2) as e:
                async with f as g: x @= (h := lambda *i, j=1, **k: f"{i!r:>{j}}" if not k else -j)
        try: del x.a, x[1:2]; nonlocal y
        except (A, B) as z: import m.n as o
    """))
    left_out = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
    assert flow.walk(tree) == [n for n in ast.walk(tree) if not isinstance(n, left_out)]
