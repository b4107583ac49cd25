"""Where NumPy's floats are one of several right answers, and how far apart those are.

Eager and compiled code round differently in few, known ways.  The oracle does them to the eager
run: it is repeated with each statement's rounding disturbed at random, and the compiled result must
lie within the span of these runs.  A value that no disturbance reaches must be equal bit for bit.

The disturbed values, by a statement's ``rounding``:

- "exact": nothing.  Comparisons, selection, ``+ - / sqrt``, rounding to integers, conversions.
- "zeros": the sign of a zero, which NumPy leaves open for maximum and minimum.
- "product": under ``fp="contract"`` products, which may be rounded once with the sum that they
  are a term of.  (An overflowed or underflowed product may be in range before it is rounded.)
- "complex n": the same where an operand is complex: ``abs``, and products under ``fp="strict"``,
  which NumPy's loops round in two ways (docs/ir.md).
- "ulp n": results, by a math function's stated bound plus NumPy's own error.
- "backward": results are exact ones of operands changed in the last places: sums in any order,
  composites such as ``var``, library calls.  Statements that only move elements are recognised by
  that and stay exact, and so do decisions (bool and integer results).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import optree

from .orders import AnyOrder, is_extremum, is_order_free, reduced_axes
from .program import _NAME, Program, Statement, names

NUMPYS_OWN_ULP = 4  # its float32 loops promise no more
RUNS, MORE_RUNS = 12, 120
_READS_ITS_RESULTS = tuple(f"np.{name}.{method}" for name in ("arctan2", "power", "float_power")
                           for method in ("reduce", "accumulate"))
_AS_FLOATS = re.compile(r"dtype='[fc]\d")


class Disturbed:
    """One run of a program, statement by statement, with its rounding disturbed."""

    def __init__(self, program: Program, args: list[Any], seed: int) -> None:
        self.program, self.rng = program, np.random.default_rng(seed)
        self.scope = names()
        self.scope.update((f"x{i}", a) for i, a in enumerate(args))

    def run(self) -> list[Any]:
        """The leaves of the results, then of the arguments."""
        for statement in self.program.statements:
            self._run(statement)
        results = [self.scope[n] for n in self.program.results]
        arguments = [self.scope[f"x{i}"] for i in range(len(self.program.arguments))]
        leaves = optree.tree_leaves([results, arguments], none_is_leaf=True)
        return [v.copy() if isinstance(v, np.ndarray) else v for v in leaves]

    def _run(self, statement: Statement) -> None:
        if self._casts_what_numpy_leaves_open(statement):
            raise FloatingPointError("NumPy's vectors and single elements cast in two ways")
        far = _product_may_overflow if "prod" in statement.text else _may_overflow
        if statement.rounding == "backward" and any(far(self.scope[n]) for n in statement.reads):
            raise FloatingPointError("the order of a sum or product says whether it overflows")
        if statement.rounding == "backward" and _AS_FLOATS.search(statement.text) and any(
                _is_rounded(self.scope[n]) for n in statement.reads):
            raise FloatingPointError("integers are rounded one by one before they are added")
        if statement.op.startswith(_READS_ITS_RESULTS):
            raise FloatingPointError("NumPy's vector loop reads what it has written: 2.4.6")
        change = self._change(statement.rounding)
        if change is None:
            exec(statement.line, self.scope)
        else:
            self._run_disturbed(statement, change)
        self._open_signs_of_nan(statement)

    def _casts_what_numpy_leaves_open(self, statement: Statement) -> bool:
        """Whether floats that fit no uint32 may become one: the result depends on their place."""
        if "u4" not in statement.text and "uint32" not in statement.text:
            return False
        read = [np.asarray(self.scope[n]) for n in statement.reads if _is_inexact(self.scope[n])]
        return any((~((v.real > -1) & (v.real < 1 << 32))).any() for v in read)

    def _run_disturbed(self, statement: Statement, change: Any) -> None:
        if statement.op == "operator *+" and self._run_product(statement, change):
            return
        read = [self.scope[n] for n in dict.fromkeys(statement.reads)]
        before = [(v, v.copy()) for v in read if isinstance(v, np.ndarray)]
        inputs = [np.array(v) for v in read if _is_number(v)]
        inputs += [np.array(-0.0)] if "-0.0" in statement.text else []
        other = self._on_other_operands(statement) if statement.rounding == "backward" else None
        computed = self._computed(statement)
        target, selected = self._target(statement)
        exec(statement.line, self.scope)
        if other and target is not None:
            np.copyto(target, other[0], where=selected, casting="unsafe")
        for array, old in before:
            written = selected if array is target else _changed(array, old)
            self._disturb_written(array, written, change, inputs, computed)
        if not statement.target:
            self._disturb_rebound(statement, read, change, inputs)
            return
        result = self.scope[statement.target]
        if any(result is v for v in read):
            return
        if is_extremum(statement.op) and target is None:
            result = self.scope[statement.target] = self._with_another_nan(statement, result)
        if other == []:
            is_chosen = "initial" in statement.text or np.size(result) < max(map(np.size, inputs))
            if is_chosen and _both_zeros(inputs):
                self.scope[statement.target] = _mapped(lambda v: change(v, inputs, 0), result)
            return
        if statement.op in _PRODUCTS and np.asarray(result).dtype.kind == "c" and (
                self.rng.random() < 0.4):
            found = self._with_scalar_products(statement, self.scope)
            self.scope[statement.target] = result if found is None else found[0]
            return
        if other:
            result = other[0]
        self.scope[statement.target] = _mapped(lambda v: change(v, inputs), result)

    def _with_another_nan(self, statement: Statement, result: Any) -> Any:
        """The largest of complex numbers is the first with NaN, in the order they are taken in."""
        if np.asarray(result).dtype.kind != "c" or not np.isnan(result).any():
            return result
        scope, order = dict(self.scope), self._other_order(statement, is_extremum)
        for name in statement.reads:
            scope[name] = order(scope[name])
        exec(statement.line, scope)
        return scope[statement.target]

    def _open_signs_of_nan(self, statement: Statement) -> None:
        """NaN that arithmetic makes of numbers has the sign of the processor's choice."""
        written = _NAME.match(statement.text)  # x0 of x0[1:] //= 1
        name = statement.target or (written[0] if written else "")
        result = self.scope.get(name)
        op = statement.op.removesuffix("=").replace("x[...]", "operator")
        if op not in _MAKE_NAN or not isinstance(result, (np.ndarray, np.floating)):
            return
        if result.dtype.kind != "f" or not np.isnan(result).any():
            return
        signed = _like(result, self._with_any_sign(np.array(result)))
        if isinstance(result, np.ndarray) and not statement.target:
            result[...] = signed
        else:
            self.scope[name] = signed

    def _with_any_sign(self, array: np.ndarray) -> np.ndarray:
        signs = self.rng.choice([-1.0, 1.0], array.shape)
        return np.where(np.isnan(array), np.copysign(array, signs), array).astype(array.dtype)

    def _run_product(self, statement: Statement, change: Any) -> bool:
        """``a * b + c`` with the product disturbed before the sum; False for another form."""
        tree = ast.parse(statement.text, mode="eval").body
        if not isinstance(tree, ast.BinOp) or not isinstance(tree.left, ast.BinOp):
            return False
        operands = [eval(ast.unparse(x), self.scope) for x in (tree.left.left, tree.left.right)]
        product = eval(ast.unparse(tree.left), self.scope)
        self.scope["product"] = change(product, [np.array(v) for v in operands if _is_number(v)])
        sign = "+" if isinstance(tree.op, ast.Add) else "-"
        exec(f"{statement.target} = product {sign} {ast.unparse(tree.right)}", self.scope)
        if self.program.fp == "contract" and self.rng.random() < 0.4:
            self._contract(statement.target, operands, sign, ast.unparse(tree.right))
        return True

    def _contract(self, target: str, operands: list[Any], sign: str, right: str) -> None:
        """Where a product overflows that is added unrounded, the sum need not."""
        result = self.scope[target]
        if not _is_number(result) or np.asarray(result).dtype.kind != "f":
            return
        wide = [np.asarray(v, np.longdouble) for v in (*operands, eval(right, self.scope))]
        exact = wide[0] * wide[1] + (wide[2] if sign == "+" else -wide[2])
        array = np.asarray(result)
        self.scope[target] = _like(result, np.where(
            np.isfinite(array), array, exact.astype(array.dtype)).astype(array.dtype))

    def _disturb_rebound(
        self, statement: Statement, read: list[Any], change: Any, inputs: list[np.ndarray]
    ) -> None:
        """``t0 += x0`` of a scalar binds the name anew."""
        for name, old in zip(dict.fromkeys(statement.reads), read, strict=True):
            if self.scope[name] is not old:
                self.scope[name] = change(self.scope[name], inputs)

    def _change(self, rounding: str) -> Callable[..., Any] | None:
        kind, _, bound = rounding.partition(" ")
        if kind == "product" and self.program.fp == "strict":
            kind = "complex"  # NumPy's own loops round these products in two ways
        if kind == "exact":
            return None
        ulp = {"zeros": 0, "product": 1, "backward": 4, "complex": 2}.get(kind, 0)
        if bound:
            ulp = int(bound) + NUMPYS_OWN_ULP
        return lambda value, inputs, most=ulp: self._disturb(value, inputs, kind, most)

    def _on_other_operands(self, statement: Statement) -> list[Any] | None:
        """[result] for operands changed in the last place; [] where it moves or decides only.

        None where it cannot be asked: with a variable as ``out=`` of another call than a plain sum
        or product, or where such operands raise.
        """
        into_variable = self._target(statement)[0] is not None
        if not statement.target or (into_variable and not is_order_free(statement.op)):
            return None
        exact = self._with_own_out(statement)
        exec(statement.line, exact)
        found = self._result_near(statement, exact, True) or self._result_near(
            statement, exact, False)
        if found is None:
            return None
        result, changed = found
        floats = [np.ravel(v) for v in optree.tree_leaves(result) if _is_inexact(v)]
        if not floats:
            return []
        if is_order_free(statement.op):
            return [self._about_another_mean(statement, result, changed)]
        if statement.op == "np.apply_along_axis" and self.rng.random() < 0.5:
            return self._in_any_order(statement) or [result]
        if statement.op.rpartition(".")[2] == "cross" and self.rng.random() < 0.5:
            return self._with_scalar_products(statement, exact) or [result]
        if statement.op.rpartition(".")[2] in ("trapezoid", "average") and self.rng.random() < 0.5:
            return self._in_any_order(statement) or [result]
        if statement.op == "np.gradient" and self.program.fp == "contract" and all(
                np.isfinite(v).all() for v in changed):
            return [_mapped(self._where_products_overflow, result)]
        if statement.op.rpartition(".")[2] in (*BY_BLAS, "polyval") and self.rng.random() < 0.5:
            return self._with_unrounded_products(statement, exact) or [result]
        known = {v.tobytes() for a in changed for v in np.atleast_1d(a)}
        moved = all(v.tobytes() in known or v == 0 or v == 1 or v != v for a in floats for v in a)
        return [] if moved else [result]

    def _with_unrounded_products(
        self, statement: Statement, exact: dict[str, Any]
    ) -> list[Any] | None:
        """[result] as libraries with FMAs have it: no product overflows before it is added."""
        scope = dict(self.scope)
        for name in statement.reads:
            if _is_number(scope[name]) and np.asarray(scope[name]).dtype.kind == "f":
                scope[name] = np.asarray(scope[name], np.longdouble)
        try:
            exec(statement.line, scope)
        except Exception:  # then not in this dtype
            return None
        plain, wide = exact[statement.target], np.asarray(scope[statement.target])
        dtype = np.asarray(plain).dtype
        if dtype.kind == "f":  # sums of infinite products, some of them or none unrounded
            rounded = self._where_products_overflow(np.asarray(plain))
            wide = np.where(np.isnan(wide) | (self.rng.random(wide.shape) < 0.5), wide, rounded)
        return [_like(plain, wide.astype(dtype))]

    def _where_products_overflow(self, result: np.ndarray) -> np.ndarray:
        """A sum of products that overflow is NaN, or infinite where one of them is not rounded."""
        other = self.rng.choice([np.nan, np.inf, -np.inf], result.shape)
        return np.where(np.isnan(result), other, result).astype(result.dtype)

    def _about_another_mean(self, statement: Statement, result: Any, changed: list[Any]) -> Any:
        """A variance of equal numbers is how far their mean is off, which adding decides."""
        name = statement.op.rpartition(".")[2].removeprefix("nan")
        sizes = [np.abs(a) for a in changed if a.dtype.kind == "f" and a.size]
        if name not in ("var", "std") or not _is_inexact(result) or not sizes:
            return result
        largest = max(float(np.max(a, where=np.isfinite(a), initial=0)) for a in sizes)
        count = max(a.size for a in sizes)
        array = np.array(result)
        unit = np.spacing(array.dtype.type(largest))
        off = (1 + count // 4) * unit  # which NumPy's own mean may be
        if self.rng.random() < 0.5:
            array = np.where(array <= (off if name == "std" else off * off), 0, array)
        shift = self.rng.integers(0, 1 + count // 4) * unit
        moved = np.hypot(array, shift) if name == "std" else array + shift * shift
        return _like(result, moved.astype(array.dtype))

    def _in_any_order(self, statement: Statement) -> list[Any] | None:
        """[result] with its sums taken in another order."""
        scope = dict(self.scope)
        for name in statement.reads:
            if isinstance(scope[name], np.ndarray):
                scope[name] = scope[name].view(AnyOrder)
        AnyOrder.rng = self.rng
        exec(statement.line, scope)
        result = scope[statement.target]
        return [result.view(np.ndarray) if isinstance(result, AnyOrder) else result]

    def _with_scalar_products(
        self, statement: Statement, exact: dict[str, Any]
    ) -> list[Any] | None:
        """[result] with complex products as NumPy's scalars round them: equal ones cancel.

        NumPy's loops round them in another way, and then ``a * b - b * a`` is not zero.
        """
        scope = dict(self.scope)
        operands = [n for n in statement.reads if np.asarray(scope[n]).dtype.kind == "c"]
        for name in operands:
            flat = list(np.ravel(scope[name]))  # NumPy's scalars, of its own precision
            scope[name] = np.fromiter(flat, object, len(flat)).reshape(np.shape(scope[name]))
        if not operands or "out=" in statement.text:
            return None
        exec(statement.line, scope)
        plain = exact[statement.target]
        return [_like(plain, np.asarray(scope[statement.target]).astype(plain.dtype))]

    def _result_near(
        self, statement: Statement, exact: dict[str, Any], with_integers: bool
    ) -> tuple[Any, list[np.ndarray]] | None:
        """The result on other operands, and those; None where they raise or change its type."""
        scope, changed = self._with_own_out(statement), []
        order = self._other_order(statement)
        for name in dict.fromkeys(statement.reads):
            if name == _out_name(statement):
                continue
            scope[name] = order(self._nearby(scope[name], with_integers))
            if _is_number(scope[name]):
                changed.append(np.ravel(scope[name]))
        try:
            exec(statement.line, scope)
        except Exception:  # then not on these: the exact run says what happens
            return None
        result = scope[statement.target]
        return (result, changed) if _types(result) == _types(exact[statement.target]) else None

    def _nearby(self, value: Any, with_integers: bool) -> Any:
        """The operand with its floats in the next places; integers as the floats that sums take.
        """
        is_integer = with_integers and isinstance(value, np.ndarray) and value.dtype.kind in "iu"
        if is_integer and value.dtype.itemsize == 8:
            return self._move(value.astype(np.float64), 1)
        if isinstance(value, (tuple, list)) or not _is_inexact(value):
            return value
        return _like(value, self._move(np.array(value), 1))

    def _other_order(
        self, statement: Statement, is_free: Callable[[str], bool] = is_order_free
    ) -> Callable[[Any], Any]:
        """Elements along the axes of a sum or product may be taken in any order."""
        read = [n for n in statement.reads if n != _out_name(statement)]
        shapes = {np.shape(self.scope[n]) for n in read} - {()}
        if len(shapes) != 1 or not is_free(statement.op):
            return lambda value: value
        (shape,) = shapes
        axes = reduced_axes(statement.text, len(shape))
        if len(axes) == len(shape):
            order = self.rng.permutation(math.prod(shape))
            return lambda value: np.ravel(value)[order].reshape(shape) if (
                np.shape(value) == shape) else value
        orders = [(d, self.rng.permutation(shape[d])) for d in axes]

        def ordered(value: Any) -> Any:
            for axis, order in orders if np.shape(value) == shape else ():
                value = np.take(value, order, axis)
            return value

        return ordered

    def _disturb_written(
        self, array: np.ndarray, written: np.ndarray, change: Any, inputs: list[np.ndarray],
        computed: np.dtype | None,
    ) -> None:
        if not _is_inexact(array) or not array.flags.writeable:
            return
        if written.any():
            narrow = array if computed is None else array.astype(computed)
            array[written] = change(narrow, inputs)[written]

    def _with_own_out(self, statement: Statement) -> dict[str, Any]:
        """The variables, with a copy of that which the call writes to."""
        scope, name = dict(self.scope), _out_name(statement)
        if isinstance(scope.get(name), np.ndarray):
            scope[name] = scope[name].copy()
        return scope

    def _target(self, statement: Statement) -> tuple[Any, Any]:
        """The variable that the call writes to with ``out=``, and to which of its elements."""
        given, target = _keywords(statement), self.scope.get(_out_name(statement))
        if not isinstance(target, np.ndarray):
            return None, None
        where = eval(ast.unparse(given["where"]), dict(self.scope)) if "where" in given else True
        try:
            return target, np.broadcast_to(np.array(where, bool), target.shape)
        except ValueError:  # of a reduction, where it is the operand's
            return target, np.ones(target.shape, bool)

    def _computed(self, statement: Statement) -> np.dtype | None:
        """The dtype of a call without its ``out``, where that is narrower than ``out``."""
        call = ast.parse(statement.text, mode="eval").body if "out=" in statement.text else None
        if not isinstance(call, ast.Call):
            return None
        given = next((k.value for k in call.keywords if k.arg == "out"), None)
        call.keywords = [k for k in call.keywords if k.arg != "out"]
        if given is None:
            return None
        result = eval(ast.unparse(call), dict(self.scope))
        out = eval(ast.unparse(given), dict(self.scope))
        if not _is_inexact(result) or not _is_inexact(out) or isinstance(result, float):
            return None
        return result.dtype if result.dtype.itemsize < out.dtype.itemsize else None

    def _disturb(self, value: Any, inputs: list[np.ndarray], kind: str, ulp: int) -> Any:
        if not _is_inexact(value) or (
                kind == "complex" and not any(i.dtype.kind == "c" for i in inputs)):
            return value
        array = np.array(value)
        if kind in ("zeros", "backward") and _both_zeros(inputs):
            sign = self.rng.choice([-1.0, 1.0], array.shape).astype(array.dtype)
            array = np.where(array == 0, array * sign, array).astype(array.dtype)
        if kind == "product":
            array = self._out_of_range(array, inputs)
        if array.dtype.kind == "c":
            array = self._other_parts(array, inputs, kind)
        if array.dtype.kind == "f" and np.isnan(array).any():  # whose sign NumPy leaves open
            array = self._with_any_sign(array)
        return _like(value, self._move(array, ulp) if ulp else array)

    def _out_of_range(self, array: np.ndarray, inputs: list[np.ndarray]) -> np.ndarray:
        """Overflowed and underflowed products as the finite or tiny numbers that they round."""
        if array.dtype.kind == "c":
            return array
        info = np.finfo(array.dtype)
        half = self.rng.random(array.shape) < 0.5
        overflowed = np.isinf(array) & half
        for operand in inputs:
            if np.broadcast_shapes(operand.shape, array.shape) == array.shape:
                overflowed &= np.isfinite(operand)
        array = np.where(overflowed, np.copysign(info.max, array), array)
        tiny = np.copysign(info.smallest_subnormal, array)
        some = any(((i != 0) & (np.abs(i) < 1)).any() for i in inputs if i.dtype.kind == "f")
        return np.where((array == 0) & half, tiny, array).astype(array.dtype) if some else array

    def _other_parts(self, array: np.ndarray, inputs: list[np.ndarray], kind: str) -> np.ndarray:
        """Complex numbers with the zeros and infinities that other formulas of them give.

        Products are sums of two products: a part that overflows is an infinity or NaN, by which of
        them is rounded first; in products of many numbers the order decides the signs of zeros.
        """
        pair = np.ascontiguousarray(array).view(array.real.dtype).reshape(*array.shape, 2).copy()
        if kind == "backward":
            sign = self.rng.choice([-1.0, 1.0], pair.shape).astype(pair.dtype)
            pair = np.where(pair == 0, pair * sign, pair)
        limit = np.sqrt(np.finfo(pair.dtype).max) / 2
        large = any((np.abs(i.real) > limit).any() or (np.abs(i.imag) > limit).any()
                    for i in inputs if i.dtype.kind in "fc")
        if large:
            other = self.rng.choice([np.nan, np.inf, -np.inf], pair.shape).astype(pair.dtype)
            pair = np.where(np.isfinite(pair) | (self.rng.random(pair.shape) < 0.5), pair, other)
        return np.ascontiguousarray(pair).view(array.dtype).reshape(array.shape)

    def _move(self, array: np.ndarray, ulp: int) -> np.ndarray:
        """Each finite, nonzero element by up to ``ulp`` units in the last place."""
        if array.dtype.kind == "c":
            part = array.real.dtype
            pair = np.ascontiguousarray(array).view(part).reshape(*array.shape, 2)
            finite = np.where(np.isfinite(pair), pair, 0)
            largest = np.abs(finite).max(-1, keepdims=True)
            unit = np.where(largest == 0, 0, np.spacing(largest))
            steps = self.rng.integers(-ulp, ulp + 1, pair.shape)
            moved = np.where(np.isfinite(pair), pair + unit * steps, pair).astype(part)
            return moved.reshape(*array.shape[:-1], -1).view(array.dtype).reshape(array.shape)
        steps = self.rng.integers(-ulp, ulp + 1, array.shape)
        unit = np.spacing(np.minimum(np.abs(array), np.finfo(array.dtype).max / 2))
        moved = array + unit * steps.astype(array.dtype)  # the unit of the largest is infinite
        keep = ~np.isfinite(array) | (array == 0)
        return np.where(keep, array, moved).astype(array.dtype)


_PRODUCTS = frozenset({"operator *", "np.multiply", "np.square", "np.kron", "np.outer"})
_MAKE_NAN = frozenset({"operator +", "operator -", "operator /", "np.add", "np.subtract",
                       "np.divide", "np.true_divide", "np.sqrt", "operator //", "operator %",
                       "np.floor_divide", "np.remainder", "np.mod", "np.fmod"})
BY_BLAS = frozenset({
    "inner", "dot", "vdot", "matmul", "operator @", "operator @=", "tensordot", "einsum", "vecdot",
    "matvec", "vecmat", "multi_dot", "convolve", "correlate", "polymul",
})


def _keywords(statement: Statement) -> dict[str, ast.expr | None]:
    """The keyword arguments of a statement that is one call with ``out=``; else none."""
    call = ast.parse(statement.text, mode="eval").body if "out=" in statement.text else None
    return {k.arg or "": k.value for k in call.keywords} if isinstance(call, ast.Call) else {}


def _out_name(statement: Statement) -> str:
    """The variable given as ``out=``, or ""."""
    out = _keywords(statement).get("out")
    return out.id if isinstance(out, ast.Name) else ""


def _types(result: Any) -> list[Any]:
    return [getattr(v, "dtype", type(v)) for v in optree.tree_leaves(result)]


def _changed(array: np.ndarray, old: np.ndarray) -> np.ndarray:
    """Where an array has changed."""
    return ~((array == old) | ((array != array) & (old != old)))


def _both_zeros(inputs: list[np.ndarray]) -> bool:
    """Whether zeros of both signs (integers have one) are among the operands."""
    zeros = [np.signbit(i[i == 0]) for i in map(np.atleast_1d, inputs) if i.dtype.kind == "f"]
    return any(z.any() for z in zeros)


def _is_number(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic, bool, int, float, complex))


def _is_rounded(value: Any) -> bool:
    """Whether integers add up to more than a float32 holds exactly."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "iu" and bool(
        np.abs(value.astype(np.float64)).sum() > 1 << 24)


def _may_overflow(value: Any) -> bool:
    """Whether adding up all finite elements may give infinity."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
        return False
    with np.errstate(all="ignore"):
        sizes = np.where(np.isfinite(value), abs(value), 0)
        return bool(np.isinf(sizes.sum(dtype=sizes.dtype)))


def _product_may_overflow(value: Any) -> bool:
    """Whether some of the elements multiply to infinity or to less than normal numbers."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
        return False
    with np.errstate(all="ignore"):
        sizes = abs(value)
        powers = np.log2(sizes[np.isfinite(sizes) & (sizes > 0)].astype(np.float64))
    far = np.finfo(value.dtype).maxexp - 4
    return bool(powers[powers > 0].sum() > far or -powers[powers < 0].sum() > far)


def _is_inexact(value: Any) -> bool:
    return isinstance(value, (float, complex)) or (
        isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "fc")


def _like(value: Any, array: np.ndarray) -> Any:
    """The array in the form of ``value``: an array of its memory order, a scalar, a number."""
    if isinstance(value, np.ndarray):
        return array if array.flags.writeable else array.copy()
    return array[()] if isinstance(value, np.generic) else array.item()


def _mapped(f: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_mapped(f, v) for v in value])
    if isinstance(value, (tuple, list)):
        return type(value)(_mapped(f, v) for v in value)
    return f(value)


# -------------------------------------------------------------------------------- what is spanned


class Span:
    """The results of disturbed runs, and the range that they allow."""

    def __init__(self, program: Program, args: Callable[[], list[Any]], runs: int) -> None:
        self.runs: list[list[Any]] = []
        self.failed = 0
        with np.errstate(all="ignore"):
            for seed in range(runs):
                try:
                    self.runs.append(Disturbed(program, args(), seed).run())
                except Exception:  # an exception that only some roundings raise
                    self.failed += 1

    @property
    def is_unstable(self) -> bool:
        """Whether the shapes of results, Python's ints or exceptions depend on rounding."""
        shapes = {tuple(v if type(v) in (int, bool) else np.shape(v) for v in run)
                  for run in self.runs}
        return len(shapes) > 1 or self.failed > 0

    def outside(self, number: int, got: np.ndarray, want: np.ndarray) -> np.ndarray:
        """Which elements of leaf ``number`` are none of the right answers."""
        found = [np.asarray(run[number]) for run in self.runs]
        if any(f.shape != want.shape for f in found):
            return np.zeros(want.shape, bool)
        stack = np.stack([want, *[f.astype(want.dtype) for f in found]])
        if want.dtype.kind == "c":
            return _outside(got.real, stack.real) | _outside(got.imag, stack.imag)
        return _outside(got, stack)


def _outside(got: np.ndarray, stack: np.ndarray) -> np.ndarray:
    """Elementwise: not within the range of the runs, nor one of their NaNs and infinities."""
    if stack.dtype.kind != "f":
        return (got < stack.min(0)) | (got > stack.max(0))
    nan = np.isnan(stack)
    low = np.where(nan, np.inf, stack).min(0).astype(np.longdouble)
    high = np.where(nan, -np.inf, stack).max(0).astype(np.longdouble)
    moves = ~((stack == stack[0]) & (np.signbit(stack) == np.signbit(stack[0]))).all(0)
    with np.errstate(all="ignore"):
        width = np.where(np.isfinite(high) & np.isfinite(low), high - low, 0)
        unit = np.spacing(np.maximum(np.abs(low), np.abs(high)).astype(stack.dtype))
        margin = np.where(moves & np.isfinite(unit), 2 * width + 2 * np.abs(unit), 0)
        inside = (got >= low - margin) & (got <= high + margin)
    signs_open = (np.signbit(stack) != np.signbit(stack[0])).any(0) | (high - low > 0)
    same_sign = (got != 0) | (stack[0] != 0) | signs_open | (
        np.signbit(got) == np.signbit(stack[0]))
    return ~np.where(np.isnan(got), nan.any(0), inside & same_sign)
