"""Objects in slots and namespaces, and those of libraries: copied, shown and read anew by each
call, as arguments and as globals."""

import configparser
import copy
import decimal
import inspect
import pickle
import queue
import sqlite3
import threading
import types
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import fusec

X = np.arange(3.0)


@dataclass(slots=True)
class Slotted:
    k: float


@dataclass(slots=True, frozen=True)
class Frozen:
    k: float


class InSlots:
    __slots__ = ("__weakref__", "k")

    def __init__(self, k):
        self.k = k


class Below(InSlots):
    __slots__ = ("other",)


class Private:
    __slots__ = ("__k",)

    def __init__(self, k):
        self.__k = k

    @property
    def k(self):
        return self.__k

    @k.setter
    def k(self, k):
        self.__k = k


class Plain:
    def __init__(self, k):
        self.k = k


def namespace(k):
    return types.SimpleNamespace(k=k)


FORMAT = "{0.k}"
MAKING = {"slotted": Slotted, "in slots": InSlots, "below": Below, "private": Private,
          "namespace": namespace, "plain": Plain}
READING = {
    "attribute": lambda x, o: x * o.k,
    "copy": lambda x, o: x * copy.copy(o).k,
    "deepcopy": lambda x, o: x * copy.deepcopy(o).k,
    "deepcopy in a list": lambda x, o: x * copy.deepcopy([o])[0].k,
    "pickle": lambda x, o: x * pickle.loads(pickle.dumps(o)).k,
    "format": lambda x, o: x * float(FORMAT.format(o)),
    "format_map": lambda x, o: x * float("{o.k}".format_map({"o": o})),
    "f-string": lambda x, o: x * float(f"{o.k}"),
}
CASES = [(m, r) for m in MAKING for r in READING]
held = None


def assert_read_anew(fn, given, change):
    compiled = fusec.jit(fn)
    for i in range(3):
        got, wanted = compiled(X + i, given), fn(X + i, given)
        assert repr(got) == repr(wanted)
        change(given)


def tripled(o):
    o.k *= 3


@pytest.mark.parametrize(("making", "reading"), CASES)
def test_objects_as_arguments(making, reading):
    assert_read_anew(READING[reading], MAKING[making](1.5), tripled)


@pytest.mark.parametrize(("making", "reading"), CASES)
def test_objects_in_globals(making, reading):
    global held
    held = MAKING[making](1.5)
    fn = READING[reading]
    assert_read_anew(lambda x, _: fn(x, held), None, lambda _: tripled(held))


@pytest.mark.parametrize("making", MAKING)
def test_copies_hold_values_of_the_graph(making):
    def changed(x, o):
        made = copy.copy(o)
        made.k = x.sum() * made.k
        return made.k + o.k, copy.deepcopy([made])[0].k

    assert_read_anew(changed, MAKING[making](1.5), tripled)


def test_copies_of_what_is_frozen():
    compiled = fusec.jit(lambda x, o: x * copy.copy(o).k * copy.deepcopy(o).k)
    for k in (1.0, 2.0, 1.0):
        assert repr(compiled(X, Frozen(k))) == repr(X * k * k)


def test_arrays_in_namespaces_are_read_anew():
    given = types.SimpleNamespace(k=np.ones(3))
    assert_read_anew(lambda x, o: x * o.k, given, lambda o: o.k.__imul__(2))
    assert_read_anew(lambda x, o: x * copy.copy(o).k, given, lambda o: o.k.__imul__(2))
    assert_read_anew(lambda x, o: x * len(repr(o)), given, lambda o: o.k.__imul__(20))


# -------------------------------------------------------------------------------------- polynomials


POLYNOMIALS = {
    "called": lambda x, p: p(x),
    "coefficients": lambda x, p: x * p.coef[0],
    "degree": lambda x, p: x * p.degree(),
    "derived": lambda x, p: p.deriv()(x),
    "multiplied": lambda x, p: (p * 2)(x),
    "domain": lambda x, p: x * p.domain[1],
}
CHANGES = {
    "coefficient": lambda p: p.coef.__setitem__(0, p.coef[0] + 5.0),
    "coefficients": lambda p: setattr(p, "coef", np.append(p.coef * 2, 3.0)),
    "domain": lambda p: setattr(p, "domain", p.domain * 2),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("use", POLYNOMIALS)
@pytest.mark.parametrize("kind", [np.polynomial.Polynomial, np.polynomial.Chebyshev])
def test_polynomials(kind, use, change):
    global held
    fn = POLYNOMIALS[use]
    assert_read_anew(fn, kind([1.0, 2.0, 1.0]), CHANGES[change])
    held = kind([1.0, 2.0, 1.0])
    assert_read_anew(lambda x, _: fn(x, held), None, lambda _: CHANGES[change](held))


# ----------------------------------------------------------------------------- the standard library


def config():
    made = configparser.ConfigParser()
    made["a"] = {"k": "1"}
    return made


def set_config(given):
    given["a"]["k"] = str(float(given["a"]["k"]) * 2)


def numbers():
    made = queue.Queue()
    for i in range(5):
        made.put(float(i))
    return made


LIBRARY = {
    "configparser": (lambda x, c: x * float(c["a"]["k"]), config, set_config),
    "getfloat": (lambda x, c: x * c.getfloat("a", "k"), config, set_config),
    "section": (lambda x, c: x * c.getfloat("k"), lambda: config()["a"],
                lambda c: c.__setitem__("k", c["k"] + "1")),
    "Event": (lambda x, e: x * e.is_set(), threading.Event, threading.Event.set),
    "bound is_set": (lambda x, e: x * e(), lambda: threading.Event().is_set,
                     lambda e: e.__self__.set()),
    "qsize": (lambda x, q: x * q.qsize(), numbers, queue.Queue.get),
    "empty": (lambda x, q: x * q.empty(), numbers, lambda q: q.queue.clear()),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_objects_of_the_standard_library(name):
    global held
    fn, make, change = LIBRARY[name]
    assert_read_anew(fn, make(), change)
    held = make()
    assert_read_anew(lambda x, _: fn(x, held), None, lambda _: change(held))


@pytest.mark.parametrize("fn", [
    lambda x, d: x * float(decimal.Decimal(1) / 3),
    lambda x, d: x * float(d / 3),
    lambda x, d: x * decimal.getcontext().prec,
    lambda x, d: x * float(+d),
], ids=["made here", "given", "prec", "rounded"])
def test_precision_of_decimals(fn):
    compiled, given = fusec.jit(fn), decimal.Decimal("1.234567")
    with decimal.localcontext() as context:
        for precision in (9, 3, 5, 3):
            context.prec = precision
            assert repr(compiled(X, given)) == repr(fn(X, given))
    assert compiled.trace_count == 3


def database():
    made = sqlite3.connect(":memory:")
    made.execute("create table t (v real)")
    made.execute("insert into t values (1.5)")
    return made


@pytest.mark.parametrize(("fn", "make"), [
    (lambda x, c: x * c.execute("select v from t").fetchone()[0], database),
    (lambda x, q: x * q.qsize(), queue.SimpleQueue),
    (lambda x, lock: x * lock.locked(), threading.Lock),
], ids=["sqlite3", "SimpleQueue", "Lock"])
def test_what_nothing_can_look_into_is_warned_of(fn, make):
    given = make()
    with pytest.warns(fusec.SideEffectWarning, match="while .* is traced, not at each call"):
        fusec.jit(fn)(X, given)


def test_locks_are_taken_without_a_word():
    def f(x, lock):
        with lock:
            return x + 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fusec.jit(f)(X, threading.Lock())


def test_values_of_the_graph_are_not_put_into_such():
    given = queue.SimpleQueue()
    with pytest.raises(fusec.UnsupportedError, match=r"value of the graph to SimpleQueue\.put"):
        fusec.jit(lambda x, q: q.put(x.sum()))(X, given)
    assert given.empty()


class Fitted:
    def __init__(self):
        self.mean_ = np.arange(3.0)


WITH = {inspect.isclass: Fitted, inspect.isfunction: namespace, inspect.isroutine: namespace,
        inspect.ismethod: Fitted().__init__, inspect.isgenerator: (x for x in ()), callable: Fitted}


@pytest.mark.parametrize("asked", WITH)
def test_what_an_object_with_arrays_is(asked):
    held, other = Fitted(), WITH[asked]

    def f(x, obj):
        if asked(obj) or not asked(other):
            raise TypeError
        return x + obj.mean_

    jitted = fusec.jit(f)
    for _ in range(2):
        held.mean_ = held.mean_ + 1
        assert np.array_equal(jitted(X, held), X + held.mean_)
