"""The algebraic rules, one a line, by theme; the language is explained in `passes.match`.

Every rule keeps the value bit for bit: for integers with their wrap-around, for floats with
infinities, -0.0 and NaN (being NaN counts; a NaN's sign and payload do not, NumPy itself does not
define them).  Rules that look right and are not, and are therefore absent, for floats:

* ``x + 0 -> x``      -0.0 + 0.0 is 0.0 (``x - 0`` and ``x + -0.0`` are right)
* ``x * 0 -> 0``, ``x - x -> 0``, ``x / x -> 1``      NaN, infinities, the sign of zero
* ``-(x - y) -> y - x``, ``0 - x -> -x``      the sign of zero when x == y, x == 0
* ``sqrt(x**2) -> |x|``, ``x**0.5 -> sqrt(x)``      overflow; pow(-inf, 0.5) is inf
* ``(x + c) + d -> x + (c + d)``, ``x / y -> x * (1 / y)``      rounding
* ``not (x < y) -> x >= y``      NaN
"""

from __future__ import annotations

from .match import Rule, rule

INTEGER, FLOAT, REAL, SIGNED, BOOL = "iu", "f", "iuf", "if", "b"
ANY = "biufc"

NEUTRAL = [
    rule("Mul(x, 1) -> x", REAL),                              # x*1 -> x
    rule("Div(x, 1) -> x", FLOAT),                             # x/1 -> x
    rule("Sub(x, 0) -> x", REAL),                              # x-0.0 -> x
    rule("Add(x, -0.0) -> x", FLOAT),                          # x+(-0.0) -> x
    rule("StopGradient(x) -> x", ANY),
    rule("Pos(x) -> x", REAL),                                 # +x -> x
    rule("Pow(x, 1) -> x if not is_weak(x)", REAL),            # x**1 -> x
    rule("Pow(x, 0) -> 1 if not is_weak(x)", REAL),            # x**0 -> 1, also for NaN
]
SIGNS = [
    rule("Neg(Neg(x)) -> x", REAL + "c"),                      # -(-x) -> x
    rule("Add(x, Neg(y)) -> Sub(x, y)", REAL),                 # x+(-y) -> x-y
    rule("Sub(x, Neg(y)) -> Add(x, y)", REAL),                 # x-(-y) -> x+y
    rule("Sub(-0.0, x) -> Neg(x)", FLOAT),                     # -0.0-x -> -x
    rule("Mul(Neg(x), Neg(y)) -> Mul(x, y)", REAL),            # (-x)*(-y) -> x*y
    rule("Div(Neg(x), Neg(y)) -> Div(x, y)", FLOAT),           # (-x)/(-y) -> x/y
    rule("Neg(Mul(Neg(x), y)) -> Mul(x, y)", REAL),            # -(-x*y) -> x*y
    rule("Mul(x, -1) -> Neg(x)", REAL),                        # x*-1 -> -x
    rule("Abs(Abs(x)) -> Abs(x)", REAL),                       # ||x|| -> |x|
    rule("Abs(Neg(x)) -> Abs(x)", SIGNED),                     # |-x| -> |x|
    rule("Square(Abs(x)) -> Square(x)", REAL),                 # |x|**2 -> x**2
    rule("Square(Neg(x)) -> Square(x)", REAL),                 # (-x)**2 -> x**2
    rule("Sign(Sign(x)) -> Sign(x)", REAL),                    # sign(sign(x)) -> sign(x)
]
POWERS = [
    rule("Mul(x, x) -> Square(x)", REAL),                      # x*x -> x**2
    rule("Pow(x, 2) -> Square(x) if not is_weak(x)", REAL),    # x**2 -> square(x)
    rule("Pow(x, -1) -> Reciprocal(x) if not is_weak(x)", FLOAT),              # x**-1 -> 1/x
    rule("Div(x, c) -> Mul(x, reciprocal(c)) if has_exact_reciprocal(c)", FLOAT),   # x/2^k
]
INTEGERS = [
    rule("Add(x, 0) -> x", INTEGER),                           # x+0 -> x
    rule("Mul(x, 0) -> 0", INTEGER),                           # x*0 -> 0
    rule("Sub(x, x) -> 0", INTEGER),                           # x-x -> 0
    rule("Sub(0, x) -> Neg(x)", INTEGER),                      # 0-x -> -x
    rule("Neg(Sub(x, y)) -> Sub(y, x)", INTEGER),              # -(x-y) -> y-x
    rule("FloorDiv(x, 1) -> x", INTEGER),                      # x//1 -> x
    rule("FloorDiv(x, c) -> ShiftRight(x, log2(c)) if is_power_of_two(c)", INTEGER),  # x//2^k
    rule("Mod(x, c) -> BitAnd(x, decrement(c)) if is_power_of_two(c)", INTEGER),      # x%2^k
    rule("ShiftLeft(x, 0) -> x", INTEGER),                     # x<<0 -> x
    rule("ShiftRight(x, 0) -> x", INTEGER),                    # x>>0 -> x
]
BITS = [
    rule("BitAnd(x, x) -> x", INTEGER + BOOL),                 # x&x -> x
    rule("BitOr(x, x) -> x", INTEGER + BOOL),                  # x|x -> x
    rule("BitXor(x, x) -> 0", INTEGER + BOOL),                 # x^x -> 0
    rule("BitAnd(x, 0) -> 0", INTEGER + BOOL),                 # x&0 -> 0
    rule("BitAnd(x, -1) -> x", INTEGER),                       # x&-1 -> x
    rule("BitOr(x, 0) -> x", INTEGER + BOOL),                  # x|0 -> x
    rule("BitXor(x, 0) -> x", INTEGER + BOOL),                 # x^0 -> x
    rule("BitAnd(x, True) -> x", BOOL),                        # b&True -> b
    rule("BitOr(x, True) -> True", BOOL),                      # b|True -> True
    rule("Invert(Invert(x)) -> x", INTEGER + BOOL),            # ~~x -> x
]
LOGIC = [
    rule("LogicalNot(LogicalNot(x)) -> x", BOOL),              # not not b -> b
    rule("LogicalAnd(x, x) -> x", BOOL),                       # b and b -> b
    rule("LogicalOr(x, x) -> x", BOOL),                        # b or b -> b
    rule("LogicalAnd(x, True) -> x", BOOL),                    # b and True -> b
    rule("LogicalAnd(x, False) -> False", BOOL),               # b and False -> False
    rule("LogicalOr(x, False) -> x", BOOL),                    # b or False -> b
    rule("LogicalOr(x, True) -> True", BOOL),                  # b or True -> True
    rule("LogicalNot(Less(x, y)) -> GreaterEqual(x, y) if is_integer(x)", BOOL),     # not x<y
    rule("LogicalNot(LessEqual(x, y)) -> Greater(x, y) if is_integer(x)", BOOL),     # not x<=y
    rule("LogicalNot(Greater(x, y)) -> LessEqual(x, y) if is_integer(x)", BOOL),     # not x>y
    rule("LogicalNot(GreaterEqual(x, y)) -> Less(x, y) if is_integer(x)", BOOL),     # not x>=y
    rule("LogicalNot(Equal(x, y)) -> NotEqual(x, y)", BOOL),   # not x==y -> x!=y, also for NaN
    rule("LogicalNot(NotEqual(x, y)) -> Equal(x, y)", BOOL),   # not x!=y -> x==y
]
CHOICES = [
    rule("Where(p, x, x) -> x", ANY),                          # where(p, x, x) -> x
    rule("Where(True, x, y) -> x", ANY),                       # where(True, x, y) -> x
    rule("Where(False, x, y) -> y", ANY),                      # where(False, x, y) -> y
    rule("Where(LogicalNot(p), x, y) -> Where(p, y, x) if is_bool(p)", ANY),    # where(not p, x, y)
    rule("Maximum(x, x) -> x", REAL),                          # max(x, x) -> x
    rule("Minimum(x, x) -> x", REAL),                          # min(x, x) -> x
    rule("Copysign(x, x) -> x", FLOAT),                        # copysign(x, x) -> x
    rule("Less(x, x) -> False", REAL),                         # x<x -> False, also for NaN
    rule("Greater(x, x) -> False", REAL),                      # x>x -> False
    rule("NotEqual(x, x) -> IsNan(x)", FLOAT),                 # x!=x -> isnan(x)
    rule("NotEqual(x, x) -> False", INTEGER + BOOL),           # i!=i -> False
    rule("Equal(x, x) -> True", INTEGER + BOOL),               # i==i -> True
    rule("LessEqual(x, x) -> True", INTEGER),                  # i<=i -> True
    rule("GreaterEqual(x, x) -> True", INTEGER),               # i>=i -> True
]
ROUNDING = [
    rule("Floor(Floor(x)) -> Floor(x)", FLOAT),                # floor(floor(x)) -> floor(x)
    rule("Ceil(Ceil(x)) -> Ceil(x)", FLOAT),                   # ceil(ceil(x)) -> ceil(x)
    rule("Trunc(Trunc(x)) -> Trunc(x)", FLOAT),                # trunc(trunc(x)) -> trunc(x)
    rule("Rint(Rint(x)) -> Rint(x)", FLOAT),                   # rint(rint(x)) -> rint(x)
]
CASTS = [
    rule("Cast[d](x) -> x", ANY),                              # cast to its own type
    rule("Cast[d](Cast[e](x)) -> Cast[d](x) if is_lossless(x, e, d)", ANY),     # i32 -> i64 -> f64
]
VIEWS = [
    rule("Transpose[p](x) -> x if is_identity(p)", ANY),       # x.transpose(0, 1) -> x
    rule("Transpose[p](Transpose[q](x)) -> Transpose[compose(p, q)](x)", ANY),     # x.T.T
    rule("Slice[a, b, n](x) -> x if is_full(a, b)", ANY),      # x[:] -> x
    rule("Slice[a, b, n](Slice[e, f, m](x)) -> Slice[shift(a, e, f), times(b, f), n](x)", ANY),
    rule("Reshape[s](x) -> x", ANY),                           # reshape to its own shape
    rule("Reshape[s](Reshape[t](x)) -> Reshape[s](x)", ANY),   # reshape of reshape
    rule("Reshape[s](ExpandDims[t](x)) -> Reshape[s](x)", ANY),     # x[None].reshape(s)
    rule("Reshape[s](Squeeze[t](x)) -> Reshape[s](x)", ANY),   # squeeze(x).reshape(s)
    rule("BroadcastTo[s](x) -> x", ANY),                       # broadcast to its own shape
    rule("BroadcastTo[s](BroadcastTo[t](x)) -> BroadcastTo[s](x)", ANY),   # broadcast twice
    rule("Squeeze[a](ExpandDims[b](x)) -> x if a == b", ANY),  # squeeze(x[None]) -> x
    rule("ExpandDims[a](Squeeze[b](x)) -> x if a == b", ANY),  # squeeze(x)[None] -> x
]
FILLED = [                                                     # views of one repeated number
    rule("Slice[a, b, n](BroadcastTo[s](x)) -> BroadcastTo[n](x) if is_scalar(x)", ANY),
    rule("Transpose[p](BroadcastTo[s](x)) -> BroadcastTo[out](x) if is_scalar(x)", ANY),
    rule("Reshape[t](BroadcastTo[s](x)) -> BroadcastTo[t](x) if is_scalar(x)", ANY),
    rule("ExpandDims[a](BroadcastTo[s](x)) -> BroadcastTo[out](x) if is_scalar(x)", ANY),
    rule("Squeeze[a](BroadcastTo[s](x)) -> BroadcastTo[out](x) if is_scalar(x)", ANY),
]
UPDATES = [                                                    # t with a region replaced by v
    rule("SliceUpdate[a, b, n](t, v) -> v if is_full(a, b)", ANY),               # t[:] = v
    rule("SliceUpdate[a, b, n](t, Slice[e, f, m](t)) -> t if a == e and b == f", ANY),
    rule("Slice[a, b, n](SliceUpdate[e, f, m](t, v)) -> v if a == e and b == f", ANY),  # read back
    rule("Slice[a, b, n](SliceUpdate[e, f, m](t, v)) -> Slice[a, b, n](t)"
         " if is_disjoint(a, b, n, e, f, m)", ANY),            # read elsewhere
    rule("Slice[a, b, n](SliceUpdate[e, f, m](t, v)) -> Slice[less(a, e), b, n](v)"
         " if is_inside(a, b, n, e, f, m)", ANY),              # read a part back
    rule("SliceUpdate[a, b, n](SliceUpdate[e, f, m](t, v), w) -> SliceUpdate[a, b, n](t, w)"
         " if a == e and b == f and n == m", ANY),             # write twice
    rule("SliceUpdate[a, b, n](BroadcastTo[s](x), BroadcastTo[t](x)) -> BroadcastTo[s](x)"
         " if is_scalar(x)", ANY),                             # x into what is x everywhere
]

ARITHMETIC: list[Rule] = NEUTRAL + SIGNS + POWERS + INTEGERS + ROUNDING
LOGICAL: list[Rule] = BITS + LOGIC + CHOICES
INDEXING: list[Rule] = VIEWS + FILLED + UPDATES
RULES: list[Rule] = ARITHMETIC + LOGICAL + CASTS + INDEXING
