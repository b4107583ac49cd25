"""Arguments that are objects: reads through them are made anew, writes at each call, or refused.
"""

import collections
import csv
import datetime
import decimal
import functools
import io
import itertools
import queue
from dataclasses import dataclass, field

import numpy as np
import pytest

import fusec

X = np.arange(3.0)


def shown(value):
    """The key that two results are compared by: the bits and types of numbers, at any depth."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict | collections.UserDict):
        return [(k, shown(v)) for k, v in value.items()]
    if isinstance(value, list | tuple | collections.deque | collections.UserList):
        return [shown(v) for v in value]
    return type(value).__name__, repr(value)


def three_calls(fn, make, change):
    """Results of three calls, with the state changed after each, and the state at the end."""
    given, state = make()
    found = []
    for i in range(3):
        found.append(shown(fn(X + i, given)))
        change(state)
    return found, shown(state)


def assert_as_python(fn, make, change):
    assert three_calls(fusec.jit(fn), make, change) == three_calls(fn, make, change)


def nothing(_):
    return None


def itself(make):
    def made():
        found = make()
        return found, found
    return made


def bound(make, name, wrap=lambda method: method):
    def made():
        owner = make()
        return wrap(getattr(owner, name)), owner
    return made


def tripled(d):
    d["k"] *= 3


def doubled(a):
    a *= 2


class Holder:
    def __init__(self, cb):
        self.cb = cb


@dataclass
class Callbacks:
    cb: object


# ---------------------------------------------------------------------------- bound methods of C's

APPENDS = {
    "method": (lambda x, c: c(x.sum()), lambda m: m),
    "in a list": (lambda x, c: c[0](x.sum()), lambda m: [m]),
    "in a dict": (lambda x, c: c["a"](x.sum()), lambda m: {"a": m}),
    "in a tuple": (lambda x, c: c[0](x.sum()), lambda m: (m, 1)),
    "in an object": (lambda x, c: c.cb(x.sum()), Holder),
    "in a dataclass": (lambda x, c: c.cb(x.sum()), Callbacks),
    "partial of a method": (lambda x, c: c(x.sum()), functools.partial),
    "partial of a partial": (lambda x, c: c(x.sum()),
                             lambda m: functools.partial(functools.partial(m))),
    "partial in a list": (lambda x, c: c[0](x.sum()), lambda m: [functools.partial(m)]),
}


@pytest.mark.parametrize("kind", [list, collections.deque], ids=lambda k: k.__name__)
@pytest.mark.parametrize("form", APPENDS)
def test_what_a_method_appends_is_appended_by_each_call(form, kind):
    fn, wrap = APPENDS[form]
    assert_as_python(fn, bound(kind, "append", wrap), nothing)


@pytest.mark.parametrize(("fn", "make"), [
    (lambda x, c: c(a=x.sum()), bound(dict, "update")),
    (lambda x, c: c("a", x.sum()), bound(dict, "__setitem__")),
    (lambda x, c: c("a", x.sum()), bound(dict, "setdefault")),
    (lambda x, c: c([x.sum(), 1.0]), bound(list, "extend")),
    (lambda x, c: c(0, x.sum()), bound(list, "insert")),
    (lambda x, c: x * c(), bound(lambda: [1.0, 2.0, 3.0, 4.0], "pop")),
    (lambda x, c: c(1.0), bound(set, "add")),
], ids=["update", "setitem", "setdefault", "extend", "insert", "pop", "add"])
def test_what_a_method_writes_is_written_by_each_call(fn, make):
    assert_as_python(fn, make, nothing)


def table():
    return {"k": 1.0}


def ones():
    return np.ones(300)


def first():
    return [1.0]


READS = {
    "get": (lambda x, g: x * g("k"), bound(table, "get"), tripled),
    "getitem": (lambda x, g: x * g("k"), bound(table, "__getitem__"), tripled),
    "items": (lambda x, g: x * next(iter(g()))[1], bound(table, "items"), tripled),
    "partial": (lambda x, g: x * g(),
                bound(table, "get", lambda m: functools.partial(m, "k")), tripled),
    "in a list": (lambda x, g: x * g[0]("k"), bound(table, "get", lambda m: [m]), tripled),
    "key=": (lambda x, g: x * sorted(["k", "l"], key=g)[0].count("k"),
             bound(lambda: {"k": 1.0, "l": 2.0}, "get"), tripled),
    "count": (lambda x, g: x * g(1.0), bound(first, "count"), lambda v: v.append(1.0)),
    "index": (lambda x, g: x * g(1.0), bound(first, "index"), lambda v: v.insert(0, 2.0)),
    "len": (lambda x, g: x * g(), bound(first, "__len__"), lambda v: v.append(1.0)),
    "contains": (lambda x, g: x * g(1), bound(lambda: {2}, "__contains__"), lambda s: s.add(1)),
    "values": (lambda x, v: x * sum(v), lambda: ((d := table()).values(), d), tripled),
    "array's sum": (lambda x, g: x * g(), bound(ones, "sum"), doubled),
    "array's item": (lambda x, g: x * g(0), bound(ones, "item"), doubled),
    "array's getitem": (lambda x, g: x * g(0), bound(ones, "__getitem__"), doubled),
    "array's fill": (lambda x, g: g(x.sum()), bound(ones, "fill"), doubled),
    "small array": (lambda x, g: x * g(), bound(lambda: np.ones(3), "mean"), doubled),
    "array in a partial": (
        lambda x, g: g(x), lambda: (functools.partial(np.dot, (a := np.ones(3))), a), doubled),
}


@pytest.mark.parametrize("name", READS)
def test_what_a_method_reads_is_read_by_each_call(name):
    assert_as_python(*READS[name])


table_now, list_now, array_now = {"k": 1.0}, [1.0], np.ones(300)
get_now, count_now, sum_now = table_now.get, list_now.count, array_now.sum


@pytest.mark.parametrize(("fn", "change"), [
    (lambda x: x * get_now("k"), lambda: tripled(table_now)),
    (lambda x: x * count_now(1.0), lambda: list_now.append(1.0)),
    (lambda x: x * sum_now(), lambda: doubled(array_now)),
], ids=["get", "count", "sum"])
def test_methods_in_globals_read_anew(fn, change):
    compiled = fusec.jit(fn)
    for i in range(3):
        assert shown(compiled(X + i)) == shown(fn(X + i))
        change()


# ------------------------------------------------------------------------------ equal, not the same


@dataclass(frozen=True)
class Gain:
    name: str
    gain: object = field(compare=False)


class Equal:
    def __init__(self, gain):
        self.gain = gain

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1

    def get(self):
        return self.gain


class EqualInSlots:
    __slots__ = ("gain",)
    __init__, __eq__, __hash__ = Equal.__init__, Equal.__eq__, Equal.__hash__


class Text(str):
    pass


class Pair(tuple):
    pass


class Number(float):
    pass


class Whole(int):
    pass


def with_gain(x, gain):
    x.gain = gain
    return x


def at(hour, offset):
    zone = datetime.timezone(datetime.timedelta(hours=offset))
    return datetime.datetime(2020, 1, 1, hour, tzinfo=zone)


def times_gain(x, m):
    return x * m.gain


ALIKE = {
    "dataclass": (times_gain, [Gain("a", 1.0), Gain("a", 9.0), Gain("a", 1.0)]),
    "int beside float": (lambda x, m: (x, m.gain), [Gain("a", 1.0), Gain("a", 1), Gain("a", True)]),
    "signed zeros": (lambda x, m: np.copysign(x, m.gain), [Gain("a", 0.0), Gain("a", -0.0)]),
    "class": (times_gain, [Equal(1.0), Equal(9.0)]),
    "slots": (times_gain, [EqualInSlots(1.0), EqualInSlots(9.0)]),
    "arrays": (times_gain, [Equal(np.ones(3)), Equal(np.full(3, 2.0))]),
    "lists": (lambda x, m: x * m.gain[0], [Equal([1.0]), Equal([2.0])]),
    "nested": (lambda x, m: x * m.gain.gain, [Equal(Equal(1.0)), Equal(Equal(2.0))]),
    "in a tuple": (lambda x, m: x * m[0].gain, [(Equal(1.0),), (Equal(2.0),)]),
    "in a frozenset": (lambda x, m: x * next(iter(m)).gain,
                       [frozenset([Equal(1.0)]), frozenset([Equal(2.0)])]),
    "frozensets": (lambda x, m: (x, next(iter(m))),
                   [frozenset([1]), frozenset([1.0]), frozenset([True])]),
    "text": (times_gain, [with_gain(Text("a"), 1.0), with_gain(Text("a"), 2.0)]),
    "tuples": (lambda x, m: (x * m.gain, m[0]), [
        with_gain(Pair([1.0]), 1.0), with_gain(Pair([1]), 1.0), with_gain(Pair([1.0]), 2.0)]),
    "floats": (times_gain, [with_gain(Number(1.0), 1.0), with_gain(Number(1.0), 2.0)]),
    "ints": (times_gain, [with_gain(Whole(1), 1.0), with_gain(Whole(1), 2.0)]),
    "decimals": (lambda x, m: (x, str(m)), [decimal.Decimal("1.0"), decimal.Decimal("1.00")]),
    "times": (lambda x, m: (x, str(m)), [at(1, 0), at(2, 1)]),
    "ranges": (lambda x, m: (x, m.stop), [range(0), range(-5), range(0, 4, 2), range(0, 3, 2)]),
    "methods": (lambda x, m: x * m(), [Equal(1.0).get, Equal(2.0).get]),
    "partials": (lambda x, m: x * m().gain,
                 [functools.partial(Equal, 1.0), functools.partial(Equal, 2.0)]),
}


@pytest.mark.parametrize("name", ALIKE)
def test_equal_objects_have_values_of_their_own(name):
    fn, values = ALIKE[name]
    compiled = fusec.jit(fn)
    for value in (*values, *values):
        assert shown(compiled(X, value)) == shown(fn(X, value))


@pytest.mark.parametrize("name", ALIKE)
def test_equal_objects_as_static_arguments(name):
    fn, values = ALIKE[name]
    compiled = fusec.jit(fn, static=("m",))
    for value in values:
        assert shown(compiled(X, value)) == shown(fn(X, value))


def test_objects_with_the_same_values_share_a_trace():
    compiled = fusec.jit(times_gain)
    for _ in range(5):
        compiled(X, Gain("a", 2.0))
        compiled(X, EqualInSlots(3.0))
    assert compiled.trace_count == 2


@pytest.mark.parametrize("make", [
    lambda: Equal(1.0), lambda: EqualInSlots(1.0), lambda: with_gain(Text("a"), 1.0),
], ids=["class", "slots", "text"])
def test_attributes_assigned_between_calls(make):
    assert_as_python(lambda x, m: x * m.gain, lambda: (make(), []), nothing)
    given = make()
    compiled = fusec.jit(times_gain)
    for gain in (1.0, 2.0, 1.0):
        given.gain = gain
        assert shown(compiled(X, given)) == shown(X * gain)


def test_a_text_that_is_changed():
    given = collections.UserString("a")
    compiled = fusec.jit(lambda x, s: x * len(s))
    for _ in range(3):
        assert shown(compiled(X, given)) == shown(X * len(given))
        given.data += "b"


# ---------------------------------------------------------------------------------------- iterators

ITERATORS = {
    "iter": lambda: iter([1.0, 2.0, 3.0, 4.0]),
    "generator": lambda: (float(i) for i in range(9)),
    "zip": lambda: zip([1.0, 2.0, 3.0], strict=True),
    "enumerate": lambda: enumerate([1.0, 2.0]),
    "count": itertools.count,
    "cycle": lambda: itertools.cycle([1.0, 2.0]),
    "map": lambda: map(float, [1, 2, 3]),
    "reversed": lambda: reversed([1.0, 2.0, 3.0]),
    "rows": lambda: csv.reader(["1", "2", "3"]),
    "lines": lambda: io.StringIO("1\n2\n3\n"),
    "keys": lambda: iter({1.0: 1, 2.0: 1}),
}
TAKING = {
    "next": lambda x, it: (x, next(it)),
    "__next__": lambda x, it: (x, it.__next__()),
    "for": lambda x, it: [x for _ in it],
    "comprehension": lambda x, it: [(x, i) for i in it],
    "list": lambda x, it: (x, list(it)),
    "star": lambda x, it: (x, [*it]),
}


@pytest.mark.parametrize("taking", TAKING)
@pytest.mark.parametrize("name", ITERATORS)
def test_iterators_are_refused(name, taking):
    made = ITERATORS[name]()
    with pytest.raises(fusec.UnsupportedError, match="before the call and pass them") as error:
        fusec.jit(TAKING[taking])(X, made)
    assert "test_static_arguments.py" in str(error.value)
    assert next(made) == next(ITERATORS[name]())  # nothing was taken


def test_a_bound_next_is_refused():
    with pytest.raises(fusec.UnsupportedError, match="iterator that outlives the call"):
        fusec.jit(lambda x, take: x + take())(X, iter([1.0]).__next__)


# --------------------------------------------------------------------------------------- containers


class Items(list):
    pass


class Named(dict):
    pass


CONTAINERS = {
    "list read": (lambda x, v: x * v[0] * len(v), itself(lambda: Items([1.0])),
                  lambda v: v.append(2.0)),
    "list item": (lambda x, v: x * v[0], itself(lambda: Items([1.0])),
                  lambda v: v.__setitem__(0, v[0] * 3)),
    "list sum": (lambda x, v: x * sum(v), itself(lambda: Items([1.0])), lambda v: v.append(2.0)),
    "list append": (lambda x, v: v.append(1.0), itself(lambda: Items([1.0])), nothing),
    "dict read": (lambda x, d: x * d["k"], itself(lambda: Named(k=1.0)), tripled),
    "dict array": (lambda x, d: x * d["k"], itself(lambda: Named(k=np.ones(3))), tripled),
    "dict len": (lambda x, d: x * len(d), itself(lambda: Named(k=1.0)),
                 lambda d: d.setdefault(len(d))),
    "Counter": (lambda x, c: x * c["k"], itself(lambda: collections.Counter("k")),
                lambda c: c.update("k")),
    "most_common": (lambda x, c: x * c.most_common(1)[0][1],
                    itself(lambda: collections.Counter("k")), lambda c: c.update("k")),
    "UserDict": (lambda x, d: x * d["k"], itself(lambda: collections.UserDict(k=1.0)), tripled),
    "UserList": (lambda x, d: x * d[0], itself(lambda: collections.UserList([1.0])),
                 lambda v: v.__setitem__(0, v[0] * 3)),
    "ChainMap": (lambda x, d: x * d["k"], lambda: (collections.ChainMap({}, d := table()), d),
                 tripled),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_of_other_classes(name):
    assert_as_python(*CONTAINERS[name])


@pytest.mark.parametrize(("fn", "make"), [
    (lambda x, v: v.append(x.sum()), Items),
    (lambda x, v: v.__setitem__("s", x.sum()), Named),
    (lambda x, v: v.__setitem__("s", x.sum()), collections.UserDict),
    (lambda x, v: v.put(x.sum()), queue.Queue),
], ids=["list", "dict", "UserDict", "queue"])
def test_values_of_the_graph_do_not_stay_in_objects(fn, make):
    given = make()
    with pytest.raises(fusec.UnsupportedError, match="keeping a value of the graph"):
        fusec.jit(fn)(X, given)
    held = given.queue if isinstance(given, queue.Queue) else given
    assert not held


def test_the_same_methods_share_a_trace():
    compiled, given = fusec.jit(lambda x, get: x * get("k")), table()
    for _ in range(3):
        compiled(X, given.get)
    assert compiled.trace_count == 1


@pytest.mark.parametrize("nested", [False, True])
def test_the_order_of_an_ordered_dict(nested):
    def names(x, d):
        d = d[0]["d"] if nested else d
        return [(key, x * value) for key, value in d.items()]

    items = collections.OrderedDict(a=1.0, b=X, c=2.0)
    given = [{"d": items}] if nested else items
    compiled = fusec.jit(names)
    for key in ("a", "b", "a", "a", "c"):
        assert shown(compiled(X, given)) == shown(names(X, given))
        assert shown(compiled(X, given)) == shown(names(X, given))
        items.move_to_end(key)


def test_functions_and_classes_as_arguments_share_a_trace():
    compiled = fusec.jit(lambda x, f: f(x))
    for _ in range(3):
        compiled(X, np.sin)
        compiled(X, doubled)
        compiled(X, Holder)
    assert compiled.trace_count == 3
