"""Arguments of calls, drawn by the names of parameters: NumPy's signatures are the grammar."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from .values import DTYPES, draw_number, literal

NUMBERS = ["1", "0", "-1", "2", "3", "0.5", "-2.5", "100", "True", "np.float32(1.5)", "np.int8(3)",
           "300", "1e300", "nan", "-0.0", "-inf", "2147483648", "np.uint8(200)", "-129",
           "np.float64(3)"]
INDICES = ["0", "-1", "1", "2", "-2", "5"]
SLICES = ["1:", ":-1", "::-1", "::2", "1:3", ":0", ":", "1::2", "2::-1", "-3:", ":2"]
OUT_OF_BOUNDS = 0.04


class Draw:
    """The source of one statement: the generator, and the values of all variables so far."""

    def __init__(self, rng: Random, scope: dict[str, Any], names: list[str]) -> None:
        self.rng, self.scope, self.names = rng, scope, names
        self.main: Any = np.zeros(3)  # the first operand of the call under way
        self.callee = ""

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    # -- operands

    def variable(self, test: Callable[[Any], bool] = lambda v: True) -> str:
        """A variable, late ones twice as likely; any where none passes the test."""
        fit = [n for n in self.names if test(self.scope[n])] or self.names
        return self.rng.choice([*fit, *fit[-2:]])

    def operand(self) -> str:
        """A variable, which becomes the main operand, or now and then a number."""
        is_linear = ".linalg" in self.callee
        has_matrix = any(_is_matrix(self.scope[n]) for n in self.names)
        if is_linear and not has_matrix and self.chance(0.6):
            self.main = np.eye(2)
            return f"(np.resize({self.variable(_is_array)}, (2, 2)) + 3 * np.eye(2))"
        wanted = _is_matrix if is_linear else _is_array
        name = self.variable(wanted if self.chance(0.9) else _is_any)
        self.main = np.asarray(self.scope[name])
        return name

    def second(self) -> str:
        """Something that goes with the main operand: often of the same shape, or a number."""
        pick = self.rng.random()
        if pick < 0.2:
            return self.number()
        if pick < 0.7:
            return self.variable(lambda v: np.shape(v) == self.main.shape)
        return self.variable()

    def number(self) -> str:
        return self.rng.choice(NUMBERS)

    def small(self, low: int = -1, high: int = 4) -> str:
        return str(self.rng.randint(low, high))

    def mask(self) -> str:
        """Booleans of the main operand's shape: a variable, or a comparison."""
        shape = self.main.shape
        found = [n for n in self.names if np.asarray(self.scope[n]).dtype == bool
                 and np.shape(self.scope[n]) == shape]
        if found and self.chance(0.7):
            return self.rng.choice(found)
        name = self.variable(lambda v: np.shape(v) == shape)
        return f"({name} {self.rng.choice(['>', '!=', '<='])} {self.rng.choice(['0', '1', '0.5'])})"

    def listed(self, of: Callable[[], str], low: int = 1, high: int = 3) -> str:
        left, right = self.rng.choice(["[]", "()"])
        items = [of() for _ in range(self.rng.randint(low, high))]
        return f"{left}{', '.join(items)}{',' if left == '(' else ''}{right}"

    def sequence(self) -> str:
        """Arrays to be joined: the first, and others mostly of its shape."""
        first = self.operand()
        more = [self.variable(lambda v: np.shape(v) == self.main.shape)
                for _ in range(self.rng.randint(0, 2))]
        return f"[{', '.join([first, *more])}]"

    # -- sizes, axes, indices

    def one_axis(self) -> str:
        rank = self.main.ndim
        low, high = (-rank, rank - 1) if rank and not self.chance(OUT_OF_BOUNDS) else (-2, 2)
        return str(self.rng.randint(low, high))

    def axis(self) -> str:
        pick = self.rng.random()
        if pick < 0.15:
            return "None"
        return self.axes() if pick < 0.35 else self.one_axis()

    def axes(self) -> str:
        count = self.rng.randint(1, max(self.main.ndim, 1))
        chosen = self.rng.sample(range(-self.main.ndim, 0), count) if self.main.ndim else [0]
        return f"({', '.join(map(str, chosen))},)"

    def permutation(self) -> str:
        order = self.rng.sample(range(self.main.ndim), self.main.ndim)
        return f"({''.join(f'{d}, ' for d in order)})"

    def shape(self) -> str:
        """A shape with as many elements as the main operand; otherwise a small one."""
        if self.callee.endswith("broadcast_to"):
            lead = self.rng.choice([(), (2,), (1, 3)])
            return str((*lead, *self.main.shape))
        if not self.callee.endswith("reshape"):
            return self.rng.choice(["3", "(2, 3)", "()", "(0,)", "(2, 1, 2)", str(self.main.shape)])
        size, sizes = self.main.size, list[int]()
        for _ in range(self.rng.randint(0, 2)):
            factors = [n for n in range(1, 10) if size % n == 0 and size]
            sizes.append(self.rng.choice(factors or [0]))
            size = size // sizes[-1] if sizes[-1] else 0
        rest = "-1" if size and self.chance(0.5) else str(size)
        return f"({', '.join([*map(str, sizes), rest])},)"

    def indices(self) -> str:
        """Integers below the length of the first axis, as a list, an array or a variable."""
        ints = [n for n in self.names if np.asarray(self.scope[n]).dtype.kind in "iu"
                and isinstance(self.scope[n], np.ndarray)]
        if ints and self.chance(0.3):
            return self.rng.choice(ints)
        limit = max(self.main.size if self.main.ndim < 2 else self.main.shape[0], 1)
        chosen = [self.rng.randint(-limit, limit - 1) for _ in range(self.rng.randint(1, 4))]
        text = str(chosen)
        return text if self.chance(0.4) else f"np.array({text})"

    def index(self, advanced: float = 0.15) -> str:
        """An index for ``x[...]``: an entry for some axes, now and then an array or a mask."""
        if self.chance(advanced):
            return self.rng.choice([self.mask, self.indices])()
        entries = [self._entry() for _ in range(self.rng.randint(0, self.main.ndim))]
        if self.chance(0.2) or not entries:
            entries.insert(self.rng.randint(0, len(entries)), "...")
        if self.chance(0.1):
            entries.insert(self.rng.randint(0, len(entries)), "None")
        if self.chance(advanced / 3):
            entries[self.rng.randrange(len(entries))] = self.indices()
        return ", ".join(entries)

    def _entry(self) -> str:
        if self.chance(0.03):
            return self.variable(lambda v: np.ndim(v) == 0 and np.asarray(v).dtype.kind in "iu")
        return self.rng.choice(INDICES if self.chance(0.3) else SLICES)

    def dtype(self) -> str:
        return f"'{self.rng.choice(DTYPES)}'"

    def choice(self, *texts: str) -> str:
        return self.rng.choice(texts)

    def literal_array(self, dtype: str, length: int) -> str:
        values = [literal(draw_number(self.rng, dtype, True)) for _ in range(length)]
        return f"np.array([{', '.join(values)}], '{dtype}')"

    def increasing(self) -> str:
        """Increasing numbers: bins, sample points."""
        count, start = self.rng.randint(2, 5), self.rng.choice([-3, -1, 0])
        return f"[{', '.join(str(start + 1.5 * i) for i in range(count))}]"

    def subscripts(self) -> str:
        """An einsum over the main operand alone, or with itself."""
        letters = "ijklm"[: self.main.ndim]
        kept = "".join(self.rng.sample(letters, self.rng.randint(0, len(letters))))
        return self.rng.choice([f"{letters}->{kept}", letters, f"...,{letters}->..."])


def _is_any(value: Any) -> bool:
    return True


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _is_matrix(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim >= 2 and value.shape[-1] == value.shape[-2]


Maker = Callable[[Draw], str]
_BOOL: Maker = lambda d: d.choice("True", "False")  # noqa: E731
_FIRST = "a x m arr ar ary x1 A f p array prototype object dst element sample ar1 a1 val src"
_SECOND = ("b x2 y v values vals fill_value weights test_elements ar2 a2 to_end to_begin prepend "
           "append xp fp fweights aweights w initial a_min a_max min max nan posinf neginf left "
           "right default period")
_SMALL = "n k N M num deg count ndmin minlength edge_order ddof correction offset"
_AXIS = "axis1 axis2 axisa axisb axisc source destination start"
_FLAGS = ("keepdims include_initial increasing invert density full_matrices compute_uv hermitian "
          "return_index return_inverse return_counts return_indices assume_unique stable upper "
          "equal_nan copy endpoint retstep sparse wrap returned bias rowvar full overwrite_input "
          "sorted subok lower unit_diagonal check_finite overwrite_a overwrite_b full_output")
MAKERS: dict[str, Maker] = {
    **dict.fromkeys(_FIRST.split(), Draw.operand),
    **dict.fromkeys(_SECOND.split(), Draw.second),
    **dict.fromkeys(_SMALL.split(), Draw.small),
    **dict.fromkeys(_AXIS.split(), Draw.one_axis),
    **dict.fromkeys(_FLAGS.split(), _BOOL),
    "axis": Draw.axis, "axes": lambda d: d.choice(d.permutation(), d.axes(), "None"),
    "dtype": Draw.dtype, "where": Draw.mask, "mask": Draw.mask, "condition": Draw.mask,
    "shape": Draw.shape, "new_shape": Draw.shape, "newshape": Draw.shape,
    "order": lambda d: d.choice("'C'", "'F'", "'K'", "'A'"),
    "norm": lambda d: d.choice("None", "'ortho'", "'forward'", "'backward'"),
    "indices": Draw.indices, "ind": Draw.indices, "obj": Draw.indices, "sorter": Draw.indices,
    "indices_or_sections": lambda d: d.choice("1", "2", "3", "[1]", "[1, 2]"),
    "repeats": lambda d: d.choice("2", "0", "1", "3"), "reps": lambda d: d.choice(
        "2", "(2, 1)", "(1, 2, 1)", "0"),
    "shift": lambda d: d.choice("1", "-2", "3", "0", "(1, 2)"),
    "pad_width": lambda d: d.choice("1", "2", "(1, 2)", "0", "((1, 0),)"),
    "decimals": lambda d: d.choice("0", "1", "2", "-1"),
    "q": lambda d: d.choice("0", "0.5", "0.25", "1", "[0.1, 0.9]", "50", "100"),
    "method": lambda d: d.choice("'linear'", "'lower'", "'higher'", "'nearest'", "'midpoint'",
                                 "'median_unbiased'", "'hazen'", "'weibull'"),
    "mode": lambda d: d.rng.choice(MODES.get(d.callee, MODES[""])),
    "side": lambda d: d.choice("'left'", "'right'"), "casting": lambda d: d.choice(
        "'unsafe'", "'same_kind'", "'safe'"),
    "kind": lambda d: d.choice("None", "'stable'"), "kth": lambda d: d.choice("0", "1", "-1"),
    "bins": lambda d: d.choice("3", "5", d.increasing()),
    "range": lambda d: d.choice("(0, 5)", "(-2.0, 3.0)"),
    "tup": Draw.sequence, "arrays": Draw.sequence, "keys": Draw.sequence, "choices": Draw.sequence,
    "choicelist": lambda d: f"[{d.second()}]", "condlist": lambda d: f"[{_of_main(d)}]",
    "multi_index": lambda d: "([0, 1], [1, 0])", "dims": lambda d: d.choice("(3, 4)", "(2, 2)"),
    "func": lambda d: "np.sum", "func1d": lambda d: d.choice("np.sum", "np.max", "np.sort"),
    "funclist": lambda d: d.choice("[1, 2]", "[-1.0, 0.5]"),
    "ord": lambda d: d.choice("None", "1", "2", "inf", "-inf", "'fro'", "0", "-1", "3", "'nuc'"),
    "UPLO": lambda d: d.choice("'L'", "'U'"), "optimize": _BOOL,
    "stop": lambda d: d.choice("3", "5.5", "-2"), "step": lambda d: d.choice("1", "0.5", "2"),
    "start_or_stop": lambda d: d.choice("0", "4", "-1.5"), "base": lambda d: d.choice("2.0", "10"),
    "rtol": lambda d: d.choice("1e-5", "0.1"), "atol": lambda d: d.choice("1e-8", "0.5"),
    "tol": lambda d: d.choice("1e-3", "100"), "rcond": lambda d: d.choice("1e-10", "None"),
    "s": lambda d: d.choice("(2, 2)", "None"), "indexing": lambda d: d.choice("'ij'", "'xy'"),
    "trim": lambda d: d.choice("'f'", "'b'", "'fb'"), "bitorder": lambda d: d.choice(
        "'big'", "'little'"),
    "dx": lambda d: d.choice("1.0", "0.5"), "discont": lambda d: "None",
    "operands": Draw.operand, "xi": Draw.variable, "args": Draw.variable, "arys": Draw.variable,
    "arrays_and_dtypes": Draw.variable, "varargs": lambda d: d.choice("1", "0.5"),
    "l_and_u": lambda d: d.choice("(1, 1)", "(0, 1)", "(1, 2)"),
    "to": Draw.dtype, "from_": Draw.operand, "filt": Draw.operand, "z": Draw.operand,
    "src_or_value": Draw.second,
}
MODES: dict[str, list[str]] = {
    "": ["'raise'", "'wrap'", "'clip'"], "np.linalg.qr": ["'reduced'", "'complete'", "'r'"],
    "np.convolve": ["'full'", "'same'", "'valid'"], "np.correlate": ["'full'", "'same'", "'valid'"],
    "np.pad": ["'constant'", "'edge'", "'reflect'", "'symmetric'", "'wrap'", "'mean'", "'maximum'",
               "'minimum'", "'linear_ramp'"],
}
# Never drawn: protocols and hints without effect on values, and ``out``, which growth adds itself.
LEFT_OUT = {"out", "like", "device", "subok", "max_work", "overwrite_input"}


def _of_main(d: Draw) -> str:
    d.operand()
    return d.mask()


def argument(d: Draw, name: str, required: bool) -> str | None:
    """Text for the parameter of that name; None for an optional one of an unknown name."""
    maker = MAKERS.get(name)
    if maker is not None:
        return maker(d)
    return d.operand() if required else None
