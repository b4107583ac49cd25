"""300 small functions, with the state they change, as one script: NumPy's runs beside fusec's.

`script` is the text of a program that runs them all and prints one line for each that is not the
same, and a summary.  It is run from a file and where there is no source (`test_without_source`).
Each text is there twice, ``@`` standing for its suffix, so that both have a state of their own.
"""

from __future__ import annotations

EXPRESSIONS = (
    "x * 2 + 1", "np.sin(x) - x[0]", "np.where(x > 2, x, -x)", "x[::-1] / (x + 3)",
    "(x - x.mean()) ** 2", "np.maximum(x, 2.5).cumsum()", "np.array([x[0], x.sum(), -x[1], 4.0])",
)

# What `f` does to the state outside of it; `state` is compared after each call.
EFFECTS = {
    "an attribute": """
class Model@:
    n, last = 0, None
    def step(self, x):
        self.n += 1
        self.last = {e}
        return self.last * self.n
model@ = Model@()
f@, state@ = model@.step, lambda: vars(model@)
""",
    "a global": """
total@ = np.zeros(4)
def f@(x):
    global total@
    total@ = total@ + ({e})
    return total@ * 2
state@ = lambda: total@
""",
    "an array's elements": """
G@ = np.arange(4.0)
def f@(x):
    G@[0] += 1
    G@[1:3] = ({e})[:2]
    return G@ + x
state@ = lambda: G@
""",
    "a list": """
seen@ = []
def f@(x):
    y = {e}
    seen@.append(y)
    return y + len(seen@)
state@ = lambda: seen@
""",
    "a dict": """
memo@ = dict(count=0)
def f@(x):
    memo@["count"] += 1
    memo@["last"] = {e}
    return memo@["last"] - memo@["count"]
state@ = lambda: memo@
""",
    "a closure": """
def make@():
    n, history = 0, [0.0]
    def f(x):
        nonlocal n
        n = n + 1
        history[0] = ({e})[0]
        return x * n + history[0]
    return f, lambda: (n, history)
f@, state@ = make@()
""",
    "an argument": """
def f@(x):
    y = {e}
    x[1:] -= y[1:]
    x *= 0.5
    return y
state@ = lambda: None
""",
    "by helpers": """
box@ = [np.zeros(4), 0]
def put@(where, value):
    box@[where] = value
def helper@(x):
    put@(0, box@[0] + x)
    put@(1, box@[1] + 1)
    return {e}
def f@(x):
    y = helper@(x)
    return y + box@[1]
state@ = lambda: box@
""",
    "an array of an object": """
class Grid@:
    def __init__(self):
        self.u, self.steps = np.ones(4), [0]
    def advance(self, x):
        self.u[1:-1] += 0.5 * ({e})[1:-1]
        self.steps[0] += 1
        return self.u.sum() + self.steps[0]
grid@ = Grid@()
f@, state@ = grid@.advance, lambda: vars(grid@)
""",
    "in a loop that data ends": """
count@ = 0
def f@(x):
    global count@
    y = {e}
    while y[0] < 3:
        y = y + 1
        count@ += 1
    return y
state@ = lambda: count@
""",
    "in a branch that data decides": """
flags@ = dict(hot=0, cold=0)
def f@(x):
    y = {e}
    if y.sum() > 5:
        flags@["hot"] += 1
        y = y - 1
    else:
        flags@["cold"] += 1
    return y
state@ = lambda: flags@
""",
    "deleted and popped": """
stack@ = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
def f@(x):
    y = {e}
    first = stack@.pop()
    return y * first + len(stack@)
state@ = lambda: stack@
""",
    "a class's attribute": """
class Count@:
    calls = 0
    scale = 2.0
def f@(x):
    Count@.calls += 1
    return ({e}) * Count@.scale + Count@.calls
state@ = lambda: Count@.calls
""",
    "printed and passed on": """
log@ = []
def note@(*values, **named):
    log@.extend(values)
    return named
def f@(x):
    y = {e}
    named = note@(y.sum(), x[0], kind=y)
    return named["kind"] + x
state@ = lambda: log@
""",
}

# Functions without effects.
PURE = {
    "a lambda": "f@ = lambda x: {e}\n",
    "two lambdas of a line": "f@, g@ = lambda x: {e}, lambda x: ({e}) + 1\n",
    "unrolled": """
def f@(x, n=3):
    y = {e}
    for i in range(n):
        if i % 2 == 0:
            continue
        y = y + i * x
    return y
""",
    "tuples": """
def f@(x):
    a, (b, *c) = x, ({e})
    a, b = b, a
    return [a, (b, c), dict(k=a)]
""",
    "a choice": """
def f@(x, *, kind=None):
    scale = 1.0 if kind is None else kind
    y = {e}
    return (y if y[0] > 0 else -y) * scale
""",
    "a chain of comparisons": """
def f@(x):
    y = {e}
    for i in range(len(y)):
        if 0 < y[i] <= 3 and i != 2 or i == 0:
            y[i] = i
    return y
""",
    "comprehensions": """
def f@(x):
    y = {e}
    rows = [y * k for k in (1, 2, 3) if k != 2]
    return sum(r.sum() for r in rows), {{k: v for k, v in zip("ab", rows)}}, np.stack(rows)
""",
    "a break": """
def f@(x):
    total = np.float64(0.0)
    for v in {e}:
        if v > 4:
            break
        total += v
    else:
        total = -total
    return total
""",
    "a while": """
def f@(x):
    y, k = {e}, 0
    while k < 4 and y[k % 4] < 5:
        y, k = y + 0.5, k + 1
    return y, k
""",
    "an early return": """
def f@(x):
    y = {e}
    for i in range(4):
        if y[i] > 2:
            return y[i], i
    return None
""",
    "an inner function": """
def f@(x):
    def inner(v, power=2, *rest):
        return v ** power + len(rest)
    y = {e}
    return inner(y) + inner(x, 3) - (lambda v: v * 2)(y)
""",
    "outer arrays": """
W@, cfg@ = np.linspace(0, 1, 4), dict(gain=3.0, on=True)
def f@(x):
    y = {e}
    return np.dot(y, W@) * cfg@["gain"] if cfg@["on"] else y
""",
    "an assertion": """
def f@(x):
    y = {e}
    assert y.shape == (4,), f"four are needed, not {{y.shape}}"
    if y.ndim != 1 or not x.size:
        raise ValueError("never")
    return np.clip(y, a_min=-1, a_max=2)
""",
    "a state of errors": """
def f@(x):
    with np.errstate(all="ignore"):
        y = ({e}) / 0.0
    try:
        return np.nan_to_num(y, posinf=9.0)
    except ZeroDivisionError:
        return None
""",
    "a walrus": """
def f@(x):
    if (s := ({e}).sum()) > 3:
        return s
    return s * 2 if s else 0.0
""",
    "arrays made here": """
def f@(x):
    y = np.zeros(4)
    z = y
    y += {e}
    y[0], y[1] = y[1], 7.0
    return y, z, np.arange(3)
""",
    "text and kinds": """
def f@(x):
    y = {e}
    kind = f"{{y.dtype}}:{{y.ndim:>3}}"
    return kind, type(y) is np.ndarray, isinstance(y, (list, np.ndarray)), -y
""",
    "many branches": """
def f@(x, mode="b"):
    if mode == "a":
        return x
    elif mode == "b":
        y = {e}
    elif mode in ("c", "d"):
        y = x
    else:
        raise KeyError(mode)
    return y[:, None] * y[None]
""",
    "recursion": """
def down@(x, n):
    return x if n <= 1 else down@(x * 0.5, n - 1) + n
def f@(x):
    return down@({e}, 4)
""",
    "keywords and stars": """
def g@(a, b, *rest, c=1, **named):
    return a + b * c + sum(rest) + len(named)
def f@(x):
    some = (x, 2.0)
    return g@({e}, *some, **dict(c=3, d=4))
""",
    "an import": """
def f@(x):
    import math
    return ({e}) * math.pi
""",
    "a generator and sums": """
def f@(x):
    y = {e}
    return sum(v * k for k, v in enumerate(y)), max(y), min(y[0], y[-1]), any(v > 3 for v in y)
""",
    "deleted names": """
def f@(x):
    y, d = {e}, dict(a=1, b=2)
    z = y * d["a"]
    del y, d["a"]
    return z, sorted(d)
""",
    "loops in loops": """
def f@(x):
    y = {e}
    for i in range(3):
        for j in range(i):
            if j == 1:
                break
            y[i] += y[j] * 0.5
    return y
""",
    "slices of slices": """
def f@(x):
    y = {e}
    y[1:3][0] = 9.0
    y[:2] += y[2:]
    return y[..., None].T, y[[0, 2]]
""",
    "a matrix": """
def f@(x):
    m = np.outer({e}, x)
    m[np.diag_indices(4)] = 0
    return m.dot(x), m.T.sum(axis=1, keepdims=True)
""",
    "methods": """
def f@(x):
    y = ({e}).reshape(2, -1)
    y.sort(axis=0)
    return y.T.copy().astype(np.float32), y.argmax(), y.std(ddof=1), x.max()
""",
    "constants": """
def f@(x):
    return ({e}) * -1.5e-3 + 0.0, (1, "two", None, ..., 3j), -0.0
""",
    "not, and, or": """
def f@(x, on=True, off=()):
    if not (on and not off) or x is None:
        return x
    return ({e}) * (on or 5) + (off and 1 or 2)
""",
}

RUNNER = '''
import pickle, sys, warnings
warnings.simplefilter("ignore")

def call(f, x):
    try:
        return f(x), x
    except fusec.FusecError as error:
        if isinstance(error, REFUSALS):
            raise
        return type(error).__mro__[2].__name__, x
    except Exception as error:
        return type(error).__name__, x

def shown(value):
    """The value with types, bits and structure."""
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [shown(v) for v in value]
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return str(value.dtype), value.shape, repr((value + 0.0).round(9).tolist())
    return type(value).__name__, repr(value)

same = refused = 0
REFUSALS = (fusec.UnsupportedError, fusec.ConcreteValueError, fusec.TraceError,
            fusec.trace.source.errors.SourceUnavailable)
for k, name in enumerate(NAMES):
    plain, jitted = globals()[f"f{k}p"], fusec.jit(globals()[f"f{k}j"])
    states = [globals().get(f"state{k}{way}", lambda: None) for way in "pj"]
    try:
        for shift in (0.0, 1.0, 0.0, -4.0):
            want = shown(call(plain, np.arange(1.0, 5.0) + shift))
            found = shown(call(jitted, np.arange(1.0, 5.0) + shift))
            now = [shown(state()) for state in states]
            if want != found or now[0] != now[1]:
                print("WRONG", k, name, want, found, *now)
                break
        else:
            same += 1
    except REFUSALS as error:
        refused += 1
        if SHOWN:
            print("refused", k, name, str(error).splitlines()[0])
print(same, refused, len(NAMES))
'''


def programs() -> list[tuple[str, str]]:
    """(name, text) of each."""
    kinds = {**EFFECTS, **PURE}
    return [(f"{name}: {e}", text.replace("{e}", e).replace("{{", "{").replace("}}", "}"))
            for name, text in kinds.items() for e in EXPRESSIONS]


def script(shown: bool = False) -> str:
    """The whole program; ``shown``: refusals are printed, too."""
    parts = ["import numpy as np", "import fusec, fusec.trace.source.errors"]
    every = programs()
    for k, (_, text) in enumerate(every):
        parts += [text.replace("@", f"{k}{way}") for way in "pj"]
    parts += [f"NAMES, SHOWN = {[name for name, _ in every]!r}, {shown}", RUNNER]
    return "\n".join(parts)


if __name__ == "__main__":
    print(script(True))
