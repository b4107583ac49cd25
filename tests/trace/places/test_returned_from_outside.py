"""Lists, dicts and sets from outside that a program returns are themselves, as in Python."""

from __future__ import annotations

import numpy as np

import fusec

OUTSIDE: dict = {"list": [1, [2]], "set": {1}, "bytes": bytearray(b"a"), "dict": {"a": [1]}}


def test_what_lies_outside_is_returned_itself():
    @fusec.jit
    def f(x):
        return x, [OUTSIDE["list"]], OUTSIDE["list"][1], {"a": OUTSIDE["set"]}, (
            OUTSIDE["bytes"], OUTSIDE["dict"]), OUTSIDE

    for _ in range(4):
        _, [items], inner, sets, (content, table), everything = f(np.ones(2))
        assert items is OUTSIDE["list"] and inner is items[1] and sets["a"] is OUTSIDE["set"]
        assert content is OUTSIDE["bytes"] and table is OUTSIDE["dict"] and everything is OUTSIDE
        OUTSIDE["list"] = [1, [2]]  # another one of the same content
        OUTSIDE["set"] = {1}
