"""Functions that use every construct the converter knows.  Not a test file, because pytest would
rewrite the assertions in it.  ``SAMPLES`` pairs each function with the arguments to try."""

# Odd code is what this file is for.
# ruff: noqa: B023, B905, C416, F821, RUF012, SIM201

from __future__ import annotations

import functools
import io
import itertools
import operator
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SAMPLES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
CALLS: list[Any] = []
COUNT = 0


def sample(*calls: tuple[Any, ...]) -> Callable[[Any], Any]:
    def add(fn: Any) -> Any:
        SAMPLES.extend((fn, args) for args in calls or ((),))
        return fn

    return add


def note(value: Any) -> Any:
    """Its argument, and a record that it was evaluated."""
    CALLS.append(repr(value))
    return value


class Loud:
    """A value that records each operation on it."""

    def __init__(self, name: str, truth: bool = True) -> None:
        self.name, self.truth = name, truth

    def _did(self, *what: Any) -> None:
        CALLS.append((self.name, *map(str, what)))

    def __repr__(self) -> str:
        return self.name

    def __bool__(self) -> bool:
        self._did("bool")
        return self.truth

    def __lt__(self, other: Any) -> Loud:
        self._did("lt", other)
        return Loud(f"{self.name}<{other}", self.truth)

    def __contains__(self, item: Any) -> bool:
        self._did("contains", item)
        return self.truth

    def __iadd__(self, other: Any) -> Loud:
        self._did("iadd", other)
        return self

    def __add__(self, other: Any) -> Loud:
        self._did("add", other)
        return Loud(f"{self.name}+{other}")

    def __getitem__(self, key: Any) -> Any:
        self._did("getitem", key)
        return Loud(f"{self.name}[{key}]")

    def __setitem__(self, key: Any, value: Any) -> None:
        self._did("setitem", key, value)

    def __delitem__(self, key: Any) -> None:
        self._did("delitem", key)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        self._did("call", args, kwargs)
        return args, kwargs


# -- operators ------------------------------------------------------------------------------------


@sample((7, 3), (7.5, 2), (-7, 2), (1, "a"), (True, 2), (3, 0))
def arithmetic(a, b):
    return a + b, a - b, a * b, a / b, a // b, a % b, a**b, -a, +a, not a, 1 + 2, -1


@sample((6, 3), (1.5, 2), (-1, 2))
def bits(a, b):
    return a & b, a | b, a ^ b, a << b, a >> b, ~a


@sample()
def matrix_product():
    a = np.arange(6.0).reshape(2, 3)
    return (a @ a.T).tolist()


@sample((1, 2), (2, 1), (1, 1), ("a", 1), (None, None))
def comparisons(a, b):
    return a == b, a != b, a is b, a is not b, a < b, a <= b, a > b, a >= b


@sample((1, (1, 2)), (3, [1, 2]), ("b", "abc"), (1, 5))
def membership(x, xs):
    return x in xs, x not in xs


@sample((True, True), (True, False), (False, True), (False, False))
def chains(p, q):
    a, b, c = Loud("a", p), Loud("b", q), Loud("c")
    out = [repr(note(a) < note(b) < note(c)), repr(a < b < c < 3)]
    if a < note(b) < c:
        out.append("then")
    if not (a < b < note(c)) or 1 < len(out) < 9:
        out.append("not")
    while a < b[0] < c and len(out) < 3:
        out.append("loop")
    return out, [0 < i + 1 < 3 for i in range(4)], [i for i in (0, 1 < len(out) + 0 < 9)]


@sample((True, True), (True, False), (False, True), (False, False))
def truth(p, q):
    a, b = Loud("a", p), Loud("b", q)
    out = [a and b, a or b, not a, not (a and b), (a and note(0)) or b, a or (note("x") and b)]
    out.append("yes" if a and not b else "no")
    if a or b:
        out.append(1)
    elif not a and not b:
        out.append(2)
    else:
        out.append(3)
    if (a and b) or not (a or b):
        out.append(4)
    if (x := a) and x:
        out.append(5)
    return repr(out)


@sample((0,), (1,), ([],), ("s",))
def assertions(x):
    assert x, note(f"was {x}")
    assert x or note(1)
    return "passed"


@sample((5,), (0,))
def ternary(x):
    return "big" if x > 3 else "small" if x else "none"


# -- stores ---------------------------------------------------------------------------------------


@sample()
def in_place():
    a, b = 1, [1, 2, 3]
    c = b
    a += 2
    a **= 2
    b += [4]
    b[note(0)] += note(10)
    b[1:3] *= 2
    b[-1] -= 1
    x = Loud("x")
    x += 1
    x[note("k")] += note(1)
    note(x)[note("i"), 1:2] += 5
    return a, b, c is b


class Box:
    scale = 2

    def __init__(self, value: Any = 0) -> None:
        self.value, self.__secret = value, 41

    @property
    def double(self) -> Any:
        return note(self.value) * 2

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value})"

    def secret(self) -> Any:
        self.__secret += 1
        __local = self.__secret
        return __local, hasattr(self, "_Box__secret"), Box.scale

    def __enter__(self) -> Box:
        note("enter")
        return self

    def __exit__(self, *error: Any) -> bool:
        note("exit")
        return error[0] is ZeroDivisionError

    @classmethod
    def make(cls, *args: Any) -> Box:
        return cls(*args)

    @staticmethod
    def twice(x: Any) -> Any:
        return x + x

    def __call__(self, x: Any) -> Any:
        return note(x) + self.value

    def fluent(self, x: Any) -> Box:
        self.value += x
        return self


class SubBox(Box):
    def __init__(self, value: Any) -> None:
        super().__init__(value)

    def secret(self) -> Any:
        first = super().secret()
        return first, super().secret(), __class__.__name__


@sample()
def attributes():
    box = Box(3)
    box.value += 1
    note(box).value = note(9)
    box.other = box.extra = Box(1)
    box.other.value -= box.double
    del box.extra
    out = [box.value, box.other.value, hasattr(box, "extra"), box.secret(), SubBox(1).secret()]
    return out, box(1), Box.make(4).value, Box.twice(4), box.fluent(1).fluent(2).value


@sample()
def missing_attribute():
    return Box(1).nothing


@sample()
def unpacking():
    box, data = Box(), [0, 0, 0]
    a, (b, *c), box.value = 1, (2, 3, 4), 5
    i, data[i] = 1, "late index"
    data[0], i = "old", 2
    *rest, data[i] = range(4)
    [p, q] = {"x": 1, "y": 2}
    x = y = data[2:] = [7, 8]
    (m, n), k = (lambda: ((1, 2), 3))()
    data[0], data[1] = data[1], data[0]
    return a, b, c, box.value, data, rest, p, q, x is y, m, n, k


@sample((1,), ((1, 2, 3),), ("ab",))
def bad_unpacking(value):
    a, b = value
    return a, b


@sample()
def order_of_evaluation():
    x, y = Loud("x"), Loud("y")
    note(x)[note(1)] = note("value")
    note(x)[note(2) : note(3), ...] = note("other")
    note(x)(note(1), *note((2, 3)), k=note(4), **note({"z": 5}))
    {note("k"): note("v"), **note({"m": 1})}, [*note([1]), note(2)], {note(1), note(2)}
    del note(y)[note("gone")], note(y)[note(0)]
    return note(x)[note(4)], note(x) + note(y)


@sample()
def items():
    data = list(range(10))
    a = np.arange(12).reshape(3, 4)
    a[1:, ::2] = -1
    a[..., 0] += 5
    a[a < 0] = 7
    index = (1, slice(None))
    d = {"k": 1, (1, 2): 3}
    d["n"] = d.pop("k")
    del data[2:4], data[0]
    return data[1:3], data[::-1], data[-1], a.tolist(), a[*index].tolist(), d, a[None, 1].shape


@sample(([1, 2], 5), ({}, "k"), (3, 0))
def bad_item(xs, i):
    return xs[i]


@sample()
def deletion():
    a = b = 1
    xs = [1, 2, 3]
    del a, (xs[0], b)
    try:
        return a
    except UnboundLocalError as error:
        return str(error), xs


@sample()
def annotated():
    a: int = 3
    b: np.ndarray
    box = Box()
    box.value: int = 5
    try:
        b  # noqa: B018
    except UnboundLocalError:
        b = 2
    return a, b, box.value


# -- calls ----------------------------------------------------------------------------------------


def defaults_of(a, /, b=2, *args, c, d=4, **kwargs):
    return a, b, args, c, d, kwargs


@sample()
def calling():
    args, kwargs = (1, 2), {"c": 3, "where": 5}
    return [
        defaults_of(1, c=2), defaults_of(*args, 3, 4, **kwargs), defaults_of(1, *args, c=1, d=2),
        defaults_of(0, c=0, self=1, fn=2), (lambda x, *y, z=3: (x, y, z))(1, 2, z=4),
    ]


@sample((1,), ())
def bad_call(*args):
    return defaults_of(*args)


@sample()
def values_of_functions():
    def key(x):
        return -x

    data = [3, 1, 2]
    data.sort(key=key)
    part = functools.partial(defaults_of, 1, c=3)
    return [
        data, sorted([1, 2, 3], key=lambda x: x % 3), max([1, -5], key=abs), min(3, 2, key=key),
        list(map(Box.twice, "ab")), list(filter(None, [0, 1])), list(filter(lambda v: v, [0, 2])),
        functools.reduce(lambda a, b: a * b, [1, 2, 3], 10), part(d=7), operator.add(1, 2),
        list(itertools.accumulate([1, 2, 3], lambda a, b: a + b)), list(zip("ab", (1, 2))),
        [(k, list(g)) for k, g in itertools.groupby([1, 1, 2], lambda v: v * 2)],
    ]


@sample((10,), (1,))
def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)


@sample()
def inner_recursion():
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return fib(10)


def doubled(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs), fn(*args, **kwargs)

    return wrapper


def repeated(times):
    def decorate(fn):
        return lambda *args: [fn(*args) for _ in range(times)]

    return decorate


@sample((3,))
@doubled
@repeated(times=2)
def decorated(x, step=lambda y: y + 1):
    return step(x)


@sample()
def builtins_on_frames():
    a, b = 1, 2
    xs = [1]
    xs[0] += a
    x, xs[0] = 5, 6
    seen = sorted(locals()), sorted(vars()), dir()
    space = {}
    exec("c = 10", space)
    return seen, eval("a + b"), space["c"], globals()["COUNT"] >= 0, vars(Box(1))["value"], x


# -- scopes ---------------------------------------------------------------------------------------


@sample()
def scopes():
    global COUNT
    COUNT += 1
    total = 0

    def add(n, *, factor: int = note(2)) -> int:
        nonlocal total
        total += n * factor
        return total

    class Local(Box):
        label: str = "l" + "ocal"
        sizes = [i * 2 for i in range(3)]
        first, *others = sizes

        def value_of(self, k=label):
            return super().secret(), self.__hidden(), k

        def __hidden(self):
            return "hidden"

    add(1)
    add(2, factor=3)
    names = sorted(n for n in vars(Local) if not n.startswith("__"))
    return total, Local(2).value_of(), Local.sizes, Local.others, names, add.__qualname__


@sample()
def comprehensions():
    rows = [[1, 2], [3, 4]]
    flat = [x * y for row in rows for x in row if x > 1 for y in (1, 10) if not y == 5]
    found = [last := x for x in flat]
    lazy = (note(x) for x in rows)
    note("before")
    return flat, {x: i for i, x in enumerate(flat)}, {x % 3 for x in flat}, list(lazy), last, found


@sample()
def late_binding():
    fs = [lambda: i for i in range(3)]
    gs = [lambda i=i: i for i in range(3)]
    return [f() for f in fs], [g() for g in gs]


# -- statements -----------------------------------------------------------------------------------


@sample((0,), (3,), (8,))
def loops(n):
    out = []
    for i in range(n):
        if i == 1:
            continue
        if i > 5:
            break
        out.append(i)
    else:
        out.append("else")
    while n:
        n -= 1
        if n == 4:
            break
    else:
        out.append("done")
    box, xs = Box(), [0, 0]
    for box.value in range(3):
        pass
    for xs[0], (k, *xs[1:]) in [(1, (2, 3)), (4, (5, 6, 7))]:
        out.append(k)
    return out, box.value, xs


@sample((1,), (0,), ("a",))
def exceptions(x):
    out = []
    try:
        try:
            out.append(1 / x)
        except ZeroDivisionError as error:
            raise ValueError("wrapped") from error
        except (TypeError, KeyError) as error:
            out.append(type(error).__name__)
        else:
            out.append("else")
        finally:
            out.append("finally")
    except ValueError as error:
        out.append(repr(error.__cause__))
    return out


@sample((1,), (0,))
def contexts(x):
    box = Box()
    with Box(1) as box.value, Box(2) as other:
        return 1 / x, other.value
    return "suppressed", box.value.value


@sample()
def redirected():
    with redirect_stdout(io.StringIO()) as out:
        print("a", 1, sep="-")
    return out.getvalue()


@sample((3,), ((1, 2),), ({"k": 5},), ("other",))
def matching(value):
    match value:
        case int(n) if n > 2:
            return "int", n
        case (1, *rest):
            return "tuple", rest
        case {"k": k}:
            return "dict", k
        case Box.scale:
            return "never"
    return "none"


@sample((1.5,), ("é",), (None,))
def formats(x):
    width = 8
    return f"{x}|{x!r:>{width}}|{x!s}|{x!a}|{{}}|{note(x)=}|{'nested ' + f'{width + 1:03d}'}"


@sample()
def bad_format():
    return f"{'text':d}"


@dataclass
class Point:
    x: float = 1.0
    tags: list = field(default_factory=list)

    def norm(self) -> float:
        return (self.x**2 + len(self.tags)) ** 0.5


@sample()
def dataclasses_work():
    p = Point(3.0, ["a"] * 7)
    return p, p.norm(), p == Point(), Point().tags


@sample(([3, 1, 2],), ([],))
def long_lines(xs):
    """A docstring."""
    return (
        sorted(
            x
            for x in xs
            if x
        ),
        len(
            xs
        )
    )


@sample((6,))
def numerics(n):
    x = np.linspace(0, 1, n)
    y = np.zeros_like(x)
    y[1:-1] = (x[2:] - 2 * x[1:-1] + x[:-2]) * n**2
    y[0] = y[-1] = np.sin(x).sum()
    m = np.where(x > 0.5, x, -x)
    return y.tolist(), m.max(), x.T.shape, np.array([x[0], 1.0]).tolist(), float(np.float64(3))


def make_counter(start: int) -> tuple[Callable[[], int], Callable[[int], None]]:
    def count() -> int:
        nonlocal start
        start += 1
        return start

    def reset(value: int) -> None:
        nonlocal start
        start = value

    return count, reset


first, second, third = lambda x: x + 1, lambda x: x + 2, lambda x: (lambda x: x * 10)(x)
SAMPLES += [(first, (1,)), (second, (1,)), (third, (1,)), (lambda *, k=3: k, ())]
SAMPLES += [((lambda x: lambda x: x - 1)(0), (5,)), (sorted, ([2, 1],)), (Box.twice, ("t",))]
SAMPLES += [(Box(1).fluent, (0,)), (SubBox(1).__call__, (2,)), (SubBox.make, (3,))]
