"""Graphs of strangers whose indices, limits and sizes are false: nothing is read or
written beyond an array.  Each graph here did, or was dropped in silence."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fusec.errors import FusecError
from fusec.ops.graphs.admit import NotAdmittedError, admit
from fusec.ops.graphs.carve import carve
from fusec.ops.graphs.evaluate import evaluate

NEGATIVE = "  %l = Const {value=i64(-2)} : i64"
WRAPPED = """  %c = Const {value=i64(-56)} : i64
  %d = Cast(%c) {dtype=u8} : u8
  %l = Cast(%d) {dtype=i64} : i64"""  # 200
COMPUTED = """  %a = Const {value=i64(0x7fffffffffffffff)} : i64
  %l = Add(%a, %a) : i64"""  # -2
OF_DATA = "  %l = Sum(%n) {axes=(0,)} : i64"
LIMITS = {"negative": NEGATIVE, "through a cast that wraps": WRAPPED,
          "a sum that wraps": COMPUTED, "of data": OF_DATA}
READ = """graph f(x: f64[10], i: i64[4], n: i64[2]) {
LIMIT
  %k = CheckIndex(%i, %l) {axis=0} : i64[4]
  %g = Gather(%x, %k) {axes=(0,), at=0} : f64[4]
  return %g
}"""
WRITE = """graph w(x: f64[10], i: i64[1], v: f64[1], n: i64[2]) {
LIMIT
  %k = CheckIndex(%i, %l) {axis=0} : i64[1]
  %g = Scatter(%x, %v, %k) {axes=(0,), at=0} : f64[10]
  return %g
  update x = %g
}"""


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_no_larger_than_what_is_indexed(name: str) -> None:
    read = admit(READ.replace("LIMIT", LIMITS[name]))
    assert admit(str(read)).to_json() == read.to_json()
    function = read.function()
    write = admit(WRITE.replace("LIMIT", LIMITS[name])).function()
    around = np.zeros(100)
    for total in (-2, 200, -(2**63), 2**62) if name == "of data" else (0,):
        n = np.array([total, 0])
        for i in ([11, 12, 40, 150], [1 << 40] * 4, [-11] * 4, [-(2**63)] * 4):
            with pytest.raises(IndexError, match="is out of bounds for axis 0"):
                evaluate(read, [np.arange(10.0), np.array(i), n])
            with pytest.raises(IndexError, match="is out of bounds for axis 0"):
                function(np.arange(10.0), np.array(i), n)
            with pytest.raises(IndexError):
                write(around[:10], np.array(i[:1]), np.array([666.0]), n)
            assert not around.any()


def test_what_the_code_checks_is_what_the_interpreter_checks() -> None:
    """Limits of data, within and beyond the array."""
    graph = admit(READ.replace("LIMIT", OF_DATA))
    function, x = graph.function(), np.arange(10.0)
    for limit in (0, 1, 9, 10, 11, 200, -1):
        for i in (0, 8, 9, 10, -1, -10, -11):
            args = [x, np.full(4, i), np.array([limit, 0])]
            assert _answer(function, args) == _answer(lambda *a: evaluate(graph, a)[0], args)


def _answer(function, args):
    try:
        return function(*args).tolist()
    except IndexError as error:
        return str(error)


LOOP = """graph f(x: f64[10], i: i64~, l: i64) {
  %z = Const {value=0} : i64~
  %o = Const {value=f64(0.0)} : f64
  %loop = Loop(%z, %o, %x, %i, %l) {carried=2,
                                     test=graph t(k: i64~, o: f64, x: f64[10], i: i64~, l: i64) {
    %c = Const {value=3} : i64~
    %t = Less(%k, %c) : bool~
    return %t
  }, body=graph b(k: i64~, o: f64, x: f64[10], i: i64~, l: i64) {
    %one = Const {value=1} : i64~
    %k2 = Add(%k, %one) : i64~
    %j = CheckIndex(%i, %l) {axis=0} : i64
    %g = Gather(%x, %j) {axes=(0,), at=0, kind="scalar"} : f64
    %o2 = Add(%o, %g) : f64
    return %k2, %o2
  }} : (i64~, f64)
  return %loop:1
}"""


def test_limits_in_native_loops() -> None:
    graph = admit(LOOP)
    function, x = graph.function(), np.arange(10.0)
    for limit in (10, 9, 200, 0, -2, -(2**63)):
        for i in (0, 9, 11, 1 << 40, -1, -11):
            args = [x, i, np.int64(limit)]
            assert _answer(function, args) == _answer(lambda *a: evaluate(graph, a)[0], args)


DEAD = {
    "a check": "  %k = CheckIndex(%i, %l) {axis=0} : i64[2]",
    "a check of a constant": '  %c = Const {value=7} : i64~\n'
                             '  %k = CheckIndex(%c, %l) {axis=0} : i64',
    "an element": "  %k = Pick(%x, %j) {axes=(0,)} : f64[]",
    "elements": "  %k = Gather(%x, %i) {axes=(0,), at=0} : f64[2]",
    "a write": "  %k = Scatter(%x, %i2, %i) {axes=(0,), at=0} : f64[3]",
}


@pytest.mark.parametrize("name", DEAD)
def test_indices_that_nothing_reads_are_checked(name: str) -> None:
    graph = admit("graph f(x: f64[3], i: i64[2], j: i64) {\n  %l = Const {value=i64(3)} : i64\n"
                  "  %i2 = Cast(%i) {dtype=f64} : f64[2]\n" + DEAD[name] + "\n  return %x\n}")
    assert admit(str(graph)).to_json() == graph.to_json()
    args = [np.arange(3.0), np.array([1, 9]), 9]
    for function in (graph.function(), graph.function(outputs=["x:0"]),
                     lambda *a: evaluate(carve(graph), a)):
        with pytest.raises(IndexError, match=r"index \d is out of bounds for axis 0 with size 3"):
            function(*args)


def test_a_slice_defines_a_size_of_its_own() -> None:
    """In a loop nobody compared it with the size of that name: elements read were not there."""
    text = """graph f(x: f64[10], m: bool[10], q: i64~) {
  %c = Compress(%m, %x) {form=("tuple", ("operand", 0), ("operand", 1)), named=("tuple",),
                         results=(type(f64[n]),)} : f64[n]
  %e = Extent(%q) {given=(False, True), step=1, limit=10, length="n"} : (i64~, bool[n])
  %s = Size(%e:1) {size=size("n")} : i64~
  %w = Window(%x, %e, %s) {axes=(0,), steps=(1,), sizes=(size("n"),)} : f64[n]
  %z = Add(%w, %c) : f64[n]
  return %z
}"""
    with pytest.raises(NotAdmittedError, match="the size n is defined twice") as caught:
        admit(text)
    assert "line of the graph: 4" in str(caught.value)


def test_a_slice_begins_at_an_integer() -> None:
    text = """graph f(x: f64[3], k: i64~) {
  %zero = Const {value=0.0} : f64~
  %e = Extent(%k) {given=(False, True), step=1, limit=3, length="n"} : (i64~, bool[n])
  %s = Size(%e:1) {size=size("n")} : i64~
  %w = Window(%x, %zero, %s) {axes=(0,), steps=(1,), sizes=(size("n"),)} : f64[n]
  return %w
}"""
    with pytest.raises(NotAdmittedError, match="where a slice begins is f64~, not an int64"):
        admit(text)
    np.testing.assert_array_equal(
        admit(text.replace("0.0} : f64~", "0} : i64~")).function()(np.arange(3.0), 2), [0.0, 1.0])


# ------------------------------------------------------------------------------------ told early

BITS = ("expected a number", "f64.bits takes an integer")
LATE = {
    'Const {value=f64.bits("x")}': BITS[0], "Const {value=f64.bits(None)}": BITS[0],
    "Const {value=f64.bits(1.5)}": BITS[1], "Const {value=f64.bits()}": BITS[1],
    "Const {value=f64(graph c() { return })}": BITS[0], 'Const {value=f64("1.5")}': BITS[0],
    "Const {value=f64(1, 2)}": "f64 takes a number", "Const {value=type()}": "expected a type",
    "Const {value=graph c() { return }}": "value is not a number",
    "Const {value=f64}": "value is not a number",
    'Exp(%x) @"/device:CPU:0 "': "is no name of a device",
    'Exp(%x) @"\\n"': "is no name of a device", 'Exp(%x) @"CPU\\n"': "is no name of a device",
    'Exp(%x) @"CPU~f8"': "nothing is sent as 'f8'",
    'Exp(%x) @"/device:NULL:0"': "not computed on the device NULL",
    'Exp(%x) @"null"': "not computed on the device NULL",
    'Recursion(%x) {function="g", results=(type(f64),)}': "not in a Call of 'g'",
    'Call(%x) {own=1, function="h", body=graph b(x: f64) {\n'
    '    %r = Recursion(%x) {function="g", results=(type(f64),)} : f64\n    return %r\n  }}':
        "not in a Call of 'g'",
    **{f'{op}(%x) {{form=("tuple"{form}), named=("tuple"{named}), results=(type(f64),)}}': why
       for op, form, named, why in (
        ("Sort", ",", ",", "the arguments of sort: missing a required argument: 'a'"),
        ("Sort", ', ("operand", 0), 0, None, None, 1', ",", "too many positional arguments"),
        ("Sort", ', ("operand", 0)', ', ("tuple", "foo", 3)', "unexpected keyword argument 'foo'"),
        ("Numpy", ', "roll", ("operand", 0)', ",", "the arguments of roll: missing"),
        ("Scipy", ', "linalg.expm"', ",", "the arguments of expm: missing"),
        ("GetItem", ', ("operand", 0)', ",", "the arguments of getitem: missing"),
        ("Ufunc", ', "hypot", "__call__", ("operand", 0)', ",", "at least 2 and at most 2"),
        ("Ufunc", ', "exp", "__call__", ("operand", 0)', ', ("tuple", "extobj", 3)',
         "exp.__call__ has no argument extobj"))},
}


@pytest.mark.parametrize("node", LATE)
def test_what_came_late_is_told_with_its_line(node: str) -> None:
    text = f"graph main(x: f64) {{\n  %y = Exp(%x) : f64\n  %a = {node} : f64\n  return %a\n}}"
    with pytest.raises(NotAdmittedError, match=re.escape(LATE[node])) as caught:
        admit(text)
    assert re.search(r"line of the graph: [34]|on line 3 of the graph", str(caught.value))


def test_a_function_runs_itself_again() -> None:
    admit("""graph main(x: f64[3]) {
  %c = Call(%x) {own=1, function="g", body=graph b(x: f64[3]) {
    %r = Recursion(%x) {function="g", results=(type(f64[3]),)} : f64[3]
    return %r
  }} : f64[3]
  return %c
}""")


TWINS = """graph f(x: f64[3]) {
  %z = Const {value=0} : i64~
  %a = Loop(%z, %x) {carried=2, test=graph t(p: i64~, x: f64[3]) {
    %m = Const {value=3} : i64~
    %t = Less(%p, %m) : bool~
    return %t
  }, body=graph b(p: i64~, x: f64[3]) {
    %o = Const {value=1} : i64~
    %q = Add(%p, %o) : i64~
    %y = Add(%x, %x) : f64[3]
    return %q
    update x = %y
  }} : (i64~, f64[3])
  %one = Const {value=True} : bool~
  %b = Cond(%one, %x) {changed=0, EXTENDS then=graph t(x: f64[3]) {
    %y = Neg(%x) : f64[3]
    return %y
  }, orelse=graph e(x: f64[3]) {
    %y = Exp(%x) : f64[3]
    return %y
  }} : f64[3]
  return %a:1, %b
}"""


@pytest.mark.parametrize("name", ["a", "b", "x", "nothing"])
def test_a_node_stands_for_no_other(name: str) -> None:
    """A text said that a loop or branch computes another node's result, whatever its types: that
    one was replaced, and a loop that named itself was looked up for ever."""
    graph = admit(TWINS.replace("EXTENDS", f'extends="{name}",'))
    a, b = graph.function()(np.arange(3.0))
    assert (a.tolist(), b.tolist()) == ([0.0, 8.0, 16.0], [0.0, -1.0, -2.0])


def test_of_a_slice_only_the_size_is_read() -> None:
    """Its second result has no memory: native loops fell over it."""
    text = """graph f(k: i64~) {
  %e = Extent(%k) {given=(True, False), step=1, limit=10, length="n"} : (i64~, bool[n])NOT
  return RESULT
}"""
    negated = "\n  %a = LogicalNot(%e:1) : bool[n]"
    with pytest.raises(NotAdmittedError, match="of e:1 only the size may be read"):
        admit(text.replace("NOT", negated).replace("RESULT", "%a"))
    with pytest.raises(NotAdmittedError, match="the size of a slice as an array"):
        admit(text.replace("NOT", "").replace("RESULT", "%e:1"))


def test_offsets_of_diagonals_are_those_of_numpy() -> None:
    with pytest.raises(NotAdmittedError, match="the offset is too large"):
        admit("graph f(x: f64[4,5]) {\n"
              "  %d = Diagonal(%x) {axes=(0, 1), offset=-2147483648} : f64[0]\n  return %d\n}")


SIZED = """graph f(x: f64[10], m: bool[10], k: i64~) {
  %c = Compress(%m, %x) {form=("tuple", ("operand", 0), ("operand", 1)), named=("tuple",),
                         results=(type(f64[n]),)} : f64[n]
  %zero = Const {value=0} : i64~
  %l = Loop(%zero, %x, %c, %m, %k) {carried=2, test=graph t(p: i64~, x: f64[10], c: f64[n],
                                                         m: bool[10], k: i64~) {
    %most = Const {value=3} : i64~
    %t = Less(%p, %most) : bool~
    return %t
  }, body=graph b(p: i64~, x: f64[10], c: f64[n], m: bool[10], k: i64~) {
    %one = Const {value=1} : i64~
    %q = Add(%p, %one) : i64~
    %neg = LogicalNot(%m) : bool[10]
    %v = Const {value=f64(1.0)} : f64
    %size = Size(%c) {size=size("n")} : i64~
    %d = GIVEN : f64[n]
    %y = Add(%d, %c) : f64[n]
    %s = Sum(%y) {axes=(0,)} : f64
    %new = Add(%x, %s) : f64[10]
    return %q
    update x = %new
  }} : (i64~, f64[10])
  return %l:1
}"""
CALL = 'FUNCTION {form=("tuple", FORM), named=("tuple",), results=(type(f64[n]),)}'


@pytest.mark.parametrize("given", [
    CALL.replace("FUNCTION", "Compress(%neg, %x)").replace(
        "FORM", '("operand", 0), ("operand", 1)'),
    'Fill(%v, %k) {shape=(size("n"),)}',
])
def test_a_size_that_is_known_is_not_defined_again(given: str) -> None:
    """A native loop took the size of the new array for that of another, and read beyond that."""
    with pytest.raises(NotAdmittedError, match=r"is defined twice|not proven to be the size n"):
        admit(SIZED.replace("GIVEN", given))


def test_a_size_that_a_call_is_told_is_compared() -> None:
    text = SIZED.replace("GIVEN", CALL.replace("FUNCTION", "Numpy(%size, %k)").replace(
        "FORM", '"linspace", 0.0, 1.0, ("operand", 1)'))
    function = admit(text).function()
    args = np.arange(10.0), np.arange(10) < 4
    function(*args, 4)
    with pytest.raises(FusecError, match="depends on the data"):
        function(*args, 9)


def test_an_array_is_reserved_for_one() -> None:
    text = "graph f(x: f64[2]) {\n  %r = Reserve(%x, %x) {shape=(3,)} : f64[3]\n  return %r\n}"
    with pytest.raises(NotAdmittedError, match="it takes 1 operands, not 2"):
        admit(text)
