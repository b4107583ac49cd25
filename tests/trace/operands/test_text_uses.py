"""Texts of numbers that only the run knows: what looks into them is refused at its line, and the
texts of exceptions keep their markers."""
# ruff: noqa: UP031, UP032 (the ways to make a text are what is tested)

import functools
import json
import logging
import re
import sys
import warnings
from typing import NamedTuple

import numpy as np
import pytest

import fusec

CODES = {"5": 1, ("55", 1): 2}


class Record(NamedTuple):
    text: str
    count: int


class Word(str):
    pass


class BadSize(ValueError):
    def __init__(self, message, size):
        super().__init__(message)
        self.size = size


def letters(text):
    count = 0
    for _ in text:
        count += 1
    return count


def int_or_less(text):
    try:
        return int(text)
    except ValueError:
        return -1


def of_kind(text):
    match (1, text):
        case (1, "55"):
            return 1
        case _:
            return 0


@functools.lru_cache
def cached_length(text):
    return len(text)


LOOKS = {
    "len": lambda n: len(str(n)),
    "len of repr": lambda n: len(repr(n)),
    "len of f-string": lambda n: len(f"{n:5d}"),
    "len of percent": lambda n: len("%d" % n),
    "len of percent of a text": lambda n: len("%s" % str(n)),
    "len of format": lambda n: len("{}".format(n)),
    "len of join": lambda n: len(",".join([str(n), "a"])),
    "len of sum": lambda n: len("a" + str(n)),
    "len of times": lambda n: len(str(n) * 2),
    "len of zfill": lambda n: len(str(n).zfill(2)),
    "len of a list's text": lambda n: len(str([n])),
    "len of keys": lambda n: len({str(n): 1, "55": 2}),
    "len of a set": lambda n: len({str(n), "55"}),
    "len by map": lambda n: sum(map(len, [str(n)])),
    "len by partial": lambda n: functools.partial(len, str(n))(),
    "len in a cached function": lambda n: cached_length(str(n)),
    "len of an exception's": lambda n: len(ValueError(f"v{n}").args[0]),
    "len of a record's": lambda n: len(Record(str(n), 1).text),
    "__len__": lambda n: str(n).__len__(),
    "subclass": lambda n: len(Word(str(n))),
    "count": lambda n: str(n).count("5"),
    "count in another": lambda n: "5555".count(str(n)),
    "isdigit": lambda n: 1 if str(n).isdigit() else 0,
    "startswith": lambda n: 1 if f"v{n}".startswith("v5") else 0,
    "upper": lambda n: len(str(n).upper()),
    "split": lambda n: len(str(n).split("5")),
    "ord": lambda n: ord(str(n)[0]),
    "slice": lambda n: len(str(n)[:1]),
    "list": lambda n: len(list(str(n))),
    "star": lambda n: len([*str(n)]),
    "loop": lambda n: letters(str(n)),
    "comprehension": lambda n: sum([int(c) for c in str(n)]),
    "generator": lambda n: sum(int(c) for c in str(n)),
    "int": lambda n: int(str(n)),
    "int in try": lambda n: int_or_less(str(n)),
    "float": lambda n: float(str(n)),
    "re": lambda n: len(re.findall("5", str(n))),
    "json": lambda n: len(json.dumps([str(n)])),
    "max": lambda n: len(max(str(n), "9")),
    "max by key": lambda n: max([n, 9], key=lambda v: str(v)),
    "min of pairs": lambda n: min((str(v), v) for v in (n, 9))[1],
    "sorted by key": lambda n: len("".join(sorted(["b", "a"], key=lambda s: s + str(n)))),
    "hash": lambda n: hash(str(n)) % 5,
    "item of a list": lambda n: 1 if "55" in [str(n)] else 0,
    "item of a generator": lambda n: 1 if "55" in (str(v) for v in (n, 9)) else 0,
    "equal lists": lambda n: 1 if [str(n)] == ["55"] else 0,
    "a part of a key": lambda n: CODES.get((str(n), 1), 0),
    "a part of an index": lambda n: CODES[(str(n), 1)],
    "match": lambda n: of_kind(str(n)),
    "precision": lambda n: len("%.1s" % str(n)),
    "width": lambda n: len("%*d" % (n, 5)),
    "spec": lambda n: len(f"{5:{n}}"),
    "named spec": lambda n: len("{:>{w}}".format(5, w=n)),
    "template": lambda n: len(f"{n} {{x}}".format(x=5)),
}


@pytest.mark.parametrize("name", LOOKS)
def test_what_looks_into_a_text_is_refused_at_its_line(name):
    look = LOOKS[name]
    in_branch = fusec.jit(lambda x: look(x[0]) if x[1] > 0 else 0)
    for call in (lambda: in_branch(np.array([55, 1])),
                 lambda: fusec.vmap(look)(np.array([5, 55, 555]))):
        with pytest.raises((fusec.UnsupportedError, fusec.ConcreteValueError)) as caught:
            call()
        assert "only known when the compiled code runs" in str(caught.value)
        assert "test_text_uses.py" in str(caught.value)


def test_the_cure_names_the_numbers():
    with pytest.raises(fusec.UnsupportedError, match="compare or compute with the numbers"):
        fusec.vmap(LOOKS["len"])(np.array([5, 55]))


def raising(message):
    def f(x):
        n = x[0]
        if n > 10:
            raise ValueError(message(n))
        return n

    return f


MESSAGES = {
    "f-string": (lambda n: f"no {n:5d}", "no {x[0]}"),
    "a text in a text": (lambda n: f"no {str(n)!r:>6}", "no '{x[0]}'"),
    "percent": (lambda n: "no %s of %d" % (str(n), n), "no {x[0]} of {x[0]}"),
    "format": (lambda n: "{} {:>4}".format(str(n), n), "{x[0]} {x[0]}"),
    "join": (lambda n: ", ".join([f"{n}", "a"]), "{x[0]}, a"),
    "join of a generator": (lambda n: ", ".join(f"{v}" for v in (n, n)), "{x[0]}, {x[0]}"),
    "zfill": (lambda n: f"{n}".zfill(5) + f"{n}" * 2, "{x[0]}{x[0]}{x[0]}"),
    "record": (lambda n: Record(f"{n}", 1).text, "{x[0]}"),
    "the program's exception": (lambda n: BadSize(f"no {n}", 1).args[0], "no {x[0]}"),
    "truth": (lambda n: f"{n}" or "nothing", "{x[0]}"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_texts_of_exceptions_have_markers(name):
    message, text = MESSAGES[name]
    f = raising(message)
    with pytest.raises(ValueError) as plain:
        f(np.array([11]))
    lanes = np.array([[1], [11]])
    for call, wanted in ((lambda: fusec.jit(f)(np.array([11])), text),
                         (lambda: fusec.jit(lambda x: fusec.vmap(f)(x))(lanes), text),
                         (lambda: fusec.vmap(f)(lanes), str(plain.value))):
        with pytest.raises(ValueError) as caught:
            call()
        assert str(caught.value) == wanted


def test_warnings_and_output_may_have_markers(capsys):
    @fusec.jit
    def f(x):
        n = x[0]
        if n > 10:
            text = f"{n}"
            warnings.warn(text, stacklevel=2)
            logging.getLogger("fusec.test").info("%s", text)
            print(text)
            sys.stderr.write(text)
            return n
        return n + 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert f(np.array([11])) == 11
    assert "{x[0]}" in capsys.readouterr().out


def test_numbers_of_a_generator_are_ordered_where_data_decides():
    def f(x):
        return min(v for v in (x[0], 9)) if x[1] > 0 else 0

    x = np.array([55, 1])
    assert fusec.jit(f)(x) == f(x)
