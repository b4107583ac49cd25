"""Jitted functions that a program calls often: one graph for all calls, the values of inlined ones.

The tests lower the bounds (`always`), so that short programs have such calls; their results are
compared, bit for bit, with the same program where every call is inlined.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
import fusec.compiled.repeated_calls as repeated
import fusec.passes.calls.repeated_calls as placing
from fusec.passes.prune import prune

X = np.random.default_rng(5).standard_normal(9)
Y = np.random.default_rng(6).standard_normal(9)
TEXT = "to be gone over in Python: no loop of the graph has letters as its items" * 2


@pytest.fixture
def always(monkeypatch) -> None:
    """Calls share a graph from the third on, however short it is, and none is put in its place."""
    monkeypatch.setattr(repeated, "FEW", 2)
    monkeypatch.setattr(repeated, "LIGHT", 0)
    monkeypatch.setattr(placing, "MOST", 0)


def calls(jitted: Any, *args: Any) -> tuple[int, int]:
    """How many `Call` nodes the traced graph has, and how many of them run as such."""
    concrete = jitted.concrete(*args)
    steps = [s.node.op for s in concrete.build.call_plan.externs if s.run is not None]
    return sum(n.op == "Call" for n in concrete.graph.nodes), steps.count("Call")


def same_bits(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple | list):
        assert type(found) is type(expected) and len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            same_bits(a, b)
        return
    assert type(found) is type(expected)
    a, b = np.asarray(found), np.asarray(expected)
    assert (a.dtype, a.shape, a.strides) == (b.dtype, b.shape, b.strides)
    assert a.tobytes() == b.tobytes()


def compared(make: Callable[[], Any], *args: Any) -> tuple[int, int]:
    """A program with and without such calls; how many it has (`calls`)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeated, "FEW", 10**9)
        inlined = make()
        expected = inlined(*(a.copy() for a in args))
        assert calls(inlined, *args) == (0, 0)
    jitted = make()
    for _ in range(2):
        same_bits(jitted(*(a.copy() for a in args)), expected)
    return calls(jitted, *args)


# ---------------------------------------------------------------------------------------- the rule


def wave(x: Any, w: Any) -> Any:
    y = np.sin(x * w) + 0.5
    z = np.where(y > 0.2, y * x, y - w)
    z = z - z.mean()
    z = z / np.sqrt((z * z).mean() + 1e-6)
    q = np.maximum(np.tanh(z) * 0.5 + x * 0.5, 0.1 * z)
    q = q + np.exp(-np.abs(q)) * 0.3 + np.cos(q * w) * 0.2 - np.abs(w - q)
    q = np.minimum(q, 4.0) * np.sqrt(np.abs(w) + 1.0) + np.arctan(q - w)
    return q - q.max() * 0.01


def waves(count: int) -> Any:
    helper = fusec.jit(wave)

    @fusec.jit
    def program(x, w):
        for _ in TEXT[:count]:
            x = helper(x, w)
        return x

    return program


def test_a_function_of_many_nodes_is_traced_once_from_the_ninth_call_on() -> None:
    program = waves(12)
    program(X, Y)
    assert calls(program, X, Y) == (12 - repeated.FEW, 0), "a short graph has them in their places"
    assert "share one graph" in str(fusec.explain(program, X, Y))
    assert compared(lambda: waves(12), X, Y) == (4, 0)


def test_a_long_graph_keeps_its_calls() -> None:
    count = 2 + placing.MOST // 30
    traced, run = compared(lambda: waves(count), X, Y)
    assert traced == run == count - repeated.FEW
    program = waves(count)
    program(X, Y)
    bodies = {id(n.attrs["body"]) for n in program.traces[0].graph.nodes if n.op == "Call"}
    assert len(bodies) == 1


def test_a_short_function_is_traced_with_the_program() -> None:
    @fusec.jit
    def helper(x):
        return np.sin(x) * 2

    @fusec.jit
    def program(x):
        for _ in TEXT[:20]:
            x = helper(x)
        return x

    assert calls(program, X) == (0, 0)


# ------------------------------------------------------------------------------------ what rounds


def test_products_that_two_calls_share_are_rounded_as_in_one_graph(always) -> None:
    """Two readers of ``a * b`` see it rounded; by itself each body would contract it."""
    def make():
        @fusec.jit
        def helper(a, b, c):
            return np.sin(a * b + c)

        @fusec.jit
        def program(x, y):
            return tuple([helper(x, y, np.cos(x * k)) for k in (1.5, 2.5, 3.5, 4.5, 5.5)])

        return program

    assert compared(make, X, Y) == (3, 0)


def test_calls_that_share_nothing_stay(always) -> None:
    def make():
        @fusec.jit
        def helper(a, b):
            return np.sin(a * b + np.cos(b))

        @fusec.jit
        def program(x, y):
            for _ in TEXT[:6]:
                x = helper(x, y)
            return x

        return program

    assert compared(make, X, Y) == (4, 4)


@pytest.mark.parametrize("result", [
    "a * b", "-(a * b)", "(a * b, a * b + 1.0)", "(a * b).reshape(3, 3)", "np.abs(a), a * b",
    "np.where(a > b, a, a)", "a + 0.5, a - b * b", "a / 2.0", "(a * b).sum(), a",
])
def test_products_across_the_border_of_a_call(always, result) -> None:
    def make():
        namespace: dict[str, Any] = {"np": np}
        exec(f"def helper(a, b):\n    return {result}", namespace)
        helper = fusec.jit(namespace["helper"], fallback="error")

        @fusec.jit
        def program(x, y):
            total = x * y
            for k in (1.0, 2.0, 3.0, 4.0, 5.0):
                r = helper(x + k, y * x)
                first = r[0] if type(r) is tuple else r
                total = total + np.sum(first) + x * k
            return total

        return program

    compared(make, X, Y)


OPERATIONS = (
    "{a} * {b}", "{a} + {b}", "{a} - {b}", "{a} * {b} + {c}", "-{a}", "{a} * 0.5", "{a} ** 2",
    "np.sin({a})", "{a} / 2.0", "{a} - {b} * {c}", "np.where({a} > {b}, {a}, {c})",
    "np.maximum({a}, {b})", "{a}.sum() * 0.01 + {b}", "{a} * {a}",
)


def random_lines(
    choose: random.Random, names: list[str], count: int, functions: list[tuple[str, int, int]],
) -> list[str]:
    """Statements over these names, to which theirs are added."""
    lines = []
    for k in range(count):
        if functions and choose.random() < 0.5:
            function, parameters, results = choose.choice(functions)
            made = [f"v{k}_{i}" for i in range(results)]
            given = ", ".join(choose.choice(names) for _ in range(parameters))
            lines.append(f"    {', '.join(made)} = {function}({given})\n")
        else:
            made, (a, b, c) = [f"v{k}"], (choose.choice(names) for _ in "abc")
            operation = choose.choice(OPERATIONS).format(a=a, b=b, c=c)
            lines.append(f"    v{k} = {operation}\n")
        names += made
    return lines


def random_program(seed: int) -> str:
    choose, functions, text = random.Random(seed), [], ""
    for number in range(choose.randint(1, 2)):
        names = [f"p{i}" for i in range(choose.randint(1, 3))]
        head = f"@fusec.jit\ndef h{number}({', '.join(names)}):\n"
        count = len(names)
        lines = random_lines(choose, names, choose.randint(1, 6), functions[:choose.randint(0, 1)])
        results = choose.sample(names[count:], min(choose.randint(1, 2), len(names) - count))
        text += head + "".join(lines) + f"    return {', '.join(results)}\n"
        functions.append((f"h{number}", count, len(results)))
    names = ["x", "y"]
    lines = random_lines(choose, names, choose.randint(6, 16), functions)
    results = ", ".join(choose.sample(names[2:], 3))
    return f"{text}@fusec.jit\ndef program(x, y):\n{''.join(lines)}    return {results}\n"


DIFFERED = (661, 700, 1878, 2678, 3358, 7258)  # of the first 12,000, once


def test_random_programs_round_alike(always, tmp_path) -> None:
    kept = 0
    for seed in (*range(60), *DIFFERED):
        path = tmp_path / f"program{seed}.py"
        path.write_text(random_program(seed))

        def make(path=path):
            namespace: dict[str, Any] = {"np": np, "fusec": fusec}
            exec(compile(path.read_text(), str(path), "exec"), namespace)
            return namespace["program"]

        kept += compared(make, X, Y)[1]
    assert kept > 20

def test_what_a_body_does_not_read_is_not_computed_for_it(always) -> None:
    """Inlined, ``y**2`` would be dead code; as an operand it was the second reader of ``y * y``."""
    def make():
        @fusec.jit
        def helper(a, b):
            return np.sin(a) - a * a

        @fusec.jit
        def program(x, y):
            square = y**2
            first = helper(x, square)
            second = helper(first, square)
            return helper(y, first**2), helper(second, square)

        return program

    assert compared(make, X, Y)[0] == 2
    pruned = prune(make().trace(X, Y).graph)
    assert [len(n.inputs) for n in pruned.nodes if n.op == "Call"] == [1, 1]
    assert "Square" not in pruned.ops


def test_equal_results_are_one_reader_of_a_product(always) -> None:
    """Of random programs, shrunk: by itself each of them has memory of its own, and reads the
    product; as results of two calls they looked otherwise."""
    def make():
        @fusec.jit
        def helper(a):
            b = a - a * a
            return np.where(a > a, a, b), b

        @fusec.jit
        def program(x):
            first, second = helper(x)
            third, fourth = helper(second)
            return helper(first)[0], helper(third)[1], helper(fourth)[0], helper(second)[1]

        return program

    compared(make, X)


def test_equal_sums_that_are_both_results_are_contracted() -> None:
    program = fusec.jit(lambda x, y: (x * y + 1.0, np.where(x > x, y, x * y + 1.0)))
    one, other = program(X, Y)
    assert one.tobytes() == other.tobytes() and not np.shares_memory(one, other)
    assert one.tobytes() == fusec.jit(lambda x, y: x * y + 1.0)(X, Y).tobytes()


# ---------------------------------------------------------------------- what a call stands for


RATE = 2.0


class Settings:
    def __init__(self) -> None:
        self.gain = 1.0


def steps(x: Any, helper: Any, between: Callable[[int], None]) -> list[Any]:
    found = []
    for k in range(6):
        x = helper(x)
        between(k)
        found.append(x)
    return found


def test_names_and_attributes_that_are_assigned_between_calls(always) -> None:
    settings = Settings()

    @fusec.jit
    def helper(x):
        return np.sin(x) * RATE + settings.gain

    @fusec.jit
    def program(x):
        global RATE
        results = []
        for _ in TEXT[:6]:
            x = helper(x)
            RATE = RATE + 1.0
            settings.gain = settings.gain * 2.0
            results.append(x)
        return results

    def as_python(x):
        rate, gain, results = 2.0, 1.0, []
        for _ in range(6):
            x = np.sin(x) * rate + gain
            rate, gain = rate + 1.0, gain * 2.0
            results.append(x)
        return results

    global RATE
    RATE = 2.0
    for found, expected in zip(program(X), as_python(X), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert RATE == 8.0 and settings.gain == 64.0
    RATE = 2.0


def test_arrays_from_outside_that_are_written_between_calls(always) -> None:
    weights = np.ones(9)

    @fusec.jit
    def helper(x):
        return np.sin(x) + weights

    @fusec.jit
    def program(x):
        for _ in TEXT[:6]:
            x = helper(x)
            weights[2] += 1.0
        return x

    expected, other = X, np.ones(9)
    for _ in range(6):
        expected = np.sin(expected) + other
        other[2] += 1.0
    np.testing.assert_allclose(program(X), expected, rtol=1e-12)
    np.testing.assert_array_equal(weights, other)


def test_variables_that_are_assigned_between_calls(always) -> None:
    state = fusec.Variable(np.ones(9))

    @fusec.jit
    def helper(x):
        return np.sin(x) + state

    @fusec.jit
    def program(x):
        for _ in TEXT[:6]:
            x = helper(x)
            state.assign_add(x)
        return x

    expected, other = X, np.ones(9)
    for _ in range(6):
        expected = np.sin(expected) + other
        other = other + expected
    np.testing.assert_allclose(program(X), expected, rtol=1e-12)
    np.testing.assert_allclose(state.numpy(), other, rtol=1e-12)


def test_lists_that_grow_between_calls(always) -> None:
    def make():
        terms = [1.0]

        def factor():
            return sum(terms)

        @fusec.jit
        def helper(x):
            return np.sin(x) * factor()

        @fusec.jit
        def program(x):
            del terms[1:]
            for k in range(6):
                x = helper(x)
                terms.append(float(k))
            return x

        return program

    expected, total = X, 1.0
    for k in range(6):
        expected, total = np.sin(expected) * total, total + k
    np.testing.assert_allclose(make()(X), expected, rtol=1e-12)


def test_functions_that_do_more_than_return_are_traced_with_the_program(always, capfd) -> None:
    log = np.zeros(9)

    @fusec.jit
    def writes(x):
        log[...] += x
        return np.sin(x)

    @fusec.jit
    def changes(x):
        x *= 2.0
        return np.sin(x)

    @fusec.jit
    def prints(x):
        fusec.print("x", x[0])
        return np.sin(x)

    @fusec.jit
    def gives_its_argument(x):
        return x

    for helper in (writes, changes, prints, gives_its_argument):
        @fusec.jit
        def program(x, helper=helper):
            for _ in TEXT[:4]:
                x = helper(x)
            return x

        program(X.copy())
        assert calls(program, X) == (0, 0), helper
    assert capfd.readouterr().out.count("x ") == 4
    assert log.any()


def test_results_are_memory_of_their_own(always) -> None:
    def make():
        @fusec.jit
        def twice(x):
            y = np.sin(x)
            return y, y

        @fusec.jit
        def part(x):
            y = np.sin(x)
            return y, y[::2]

        @fusec.jit
        def single(x):
            return np.sin(x)[::2]

        @fusec.jit
        def program(x):
            kept = []
            for helper in (twice, part):
                for _ in TEXT[:4]:
                    a, b = helper(x)
                    a[0] = 7.0
                    kept.append(b)
            for _ in TEXT[:4]:
                c = single(x)
                c[1] = 3.0
                kept.append(c)
            return kept

        return program

    assert compared(make, X) == (0, 0)


def test_arguments_that_lie_otherwise(always) -> None:
    """Kernels compute the same however operands lie; BLAS's rounding depends on it."""
    def make():
        @fusec.jit
        def product(a, b):
            return np.tanh(a @ b)

        @fusec.jit
        def sums(a):
            return np.sin(a) + a.sum(axis=0)

        @fusec.jit
        def program(a, b):
            found = []
            for k in range(5):
                found += [product(a.T, b + k), sums(b.T), sums(a[:, ::-1])]
            return found

        return program

    square = np.random.default_rng(7).standard_normal((5, 5))
    assert compared(make, square, square.T.copy())[0] == 6


def test_errors_are_those_of_the_line(always) -> None:
    @fusec.jit
    def solve(a, b):
        return np.linalg.solve(a, b) * 2.0

    @fusec.jit
    def program(a, b):
        for _ in TEXT[:5]:
            b = solve(a, b)
        return b

    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        program(np.ones((3, 3)), np.ones(3))
    matrix = np.eye(3) + 0.1
    expected = np.ones(3)
    for _ in range(5):
        expected = np.linalg.solve(matrix, expected) * 2.0
    np.testing.assert_allclose(program(matrix, np.ones(3)), expected, rtol=1e-12)


def test_indices_are_checked(always) -> None:
    @fusec.jit
    def pick(x, k):
        return x * x[k]

    @fusec.jit
    def program(x, k):
        for _ in TEXT[:5]:
            x = pick(x, k)
        return x

    program(np.ones(3), np.int64(1))
    with pytest.raises(IndexError):
        program(np.ones(3), np.int64(3))


def test_keywords_defaults_numbers_and_static_arguments(always) -> None:
    def make():
        @fusec.jit(static=("mode",))
        def helper(x, scale=2.0, *, mode="sin"):
            return getattr(np, mode)(x) * scale

        @fusec.jit
        def program(x):
            for scale in (2.0, 3.0, 2.0, 3.0, 2.0, 3.0, 2.0, 3.0, 0.0, -0.0):
                x = helper(x, scale=scale, mode="sin") + helper(x, mode="cos")
            return x

        return program

    traced, _ = compared(make, X)
    assert traced == 2 * 2 + 8


# --------------------------------------------------------------------------------- calls in calls


@fusec.jit
def transformed(x):
    """The recursive Fourier transform (J. VanderPlas, 2013)."""
    n = x.shape[0]
    if n <= 4:
        k = np.arange(n)
        return np.exp(-2j * np.pi * k * k[:, None] / n) @ x
    even, odd = transformed(x[::2]), transformed(x[1::2])
    factor = np.exp(-2j * np.pi * np.arange(n) / n)
    return np.concatenate([even + factor[: n // 2] * odd, even + factor[n // 2 :] * odd])


def test_a_recursion_that_halves_its_array_has_a_graph_for_each_length() -> None:
    signal = np.random.default_rng(1).standard_normal(4096)
    np.testing.assert_allclose(transformed(signal), np.fft.fft(signal), atol=1e-10)
    traced, run = calls(transformed, signal)
    assert traced == run > 0
    assert len(transformed.traces[0].graph.nodes) < 1000, "6,000 if every call is inlined"


def test_calls_in_the_bodies_of_calls(always) -> None:
    def make():
        @fusec.jit
        def inner(x, w):
            return np.sin(x + w) - np.cos(x)

        @fusec.jit
        def outer(x, w):
            for _ in TEXT[:4]:
                x = inner(x, w)
            return x.sum() + x

        @fusec.jit
        def program(x, w):
            for _ in TEXT[:5]:
                x = outer(x, w)
            return x

        return program

    traced, run = compared(make, X, Y)
    assert traced == run > 0


def test_in_branches_and_loops_of_the_graph_calls_are_traced_where_they_stand(always) -> None:
    def make():
        @fusec.jit
        def helper(x):
            return np.sin(x) + 1.0

        @fusec.jit
        def program(x):
            for _ in TEXT[:4]:
                x = helper(x)
            while x.sum() < 50.0:
                x = x + helper(helper(helper(x)))
            return x if x[0] > 0 else helper(x)

        return program

    assert compared(make, X)[0] == 2


# ---------------------------------------------------------------------------- sizes, text, threads


def test_one_trace_for_all_sizes(always) -> None:
    @fusec.jit
    def helper(x):
        return np.sin(x) - x.mean()

    @fusec.jit
    def program(x):
        for _ in TEXT[:5]:
            x = helper(x)
        return x

    for n in (9, 10, 11, 40):
        x = np.linspace(0.0, 1.0, n)
        expected = x
        for _ in range(5):
            expected = np.sin(expected) - expected.mean()
        np.testing.assert_allclose(program(x), expected, rtol=1e-12, atol=1e-14)
        assert calls(program, x) == (3, 3)
    assert program.trace_count == 1
    plan = program.concrete(np.ones(12))
    assert len({id(n.attrs["body"]) for n in plan.graph.nodes if n.op == "Call"}) == 1


def test_graphs_as_text_run_elsewhere(always) -> None:
    program = waves(4)
    expected = program(X, Y)
    graph = program.traces[0].graph
    for again in (fusec.admit(str(graph)), fusec.admit(graph.to_json())):
        np.testing.assert_array_equal(again.function()(X, Y), expected)


def test_threads(always) -> None:
    program, found = waves(6), []
    expected = waves(6)(X, Y)
    threads = [threading.Thread(target=lambda: found.append(program(X, Y))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and all(x.tobytes() == expected.tobytes() for x in found)
    assert program.trace_count == 1


# ------------------------------------------------------------------------------------------ scopes


@pytest.fixture
def two_devices(always: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """As `always`, but the bodies are put in the places of their calls."""
    monkeypatch.setattr(placing, "MOST", 10**9)
    with fusec.config.override(logical_cpu_devices=2):
        yield


def in_its_place(program: Any) -> list[Any]:
    """The nodes of the graph that has the bodies of the calls, which must be some, in it."""
    graph = program.trace(X).graph
    assert any(n.op == "Call" for n in graph.nodes)
    return [*placing.place_bodies(graph).nodes]


def test_a_body_stays_on_the_device_of_the_scope_around_its_call(two_devices: Any) -> None:
    helper = fusec.jit(lambda x: np.sin(x) + np.cos(x))

    @fusec.jit
    def program(x):
        for number in range(2):
            with fusec.device(f"cpu:{number}"):
                for _ in range(4):
                    x = helper(x)
        return x

    nodes = in_its_place(program)
    assert [n.device for n in nodes if n.op == "Sin"] == 4 * ["/device:CPU:0"] + 4 * [
        "/device:CPU:1"]


def test_a_body_keeps_its_own_devices_and_order(two_devices: Any) -> None:
    @fusec.jit
    def helper(x):
        with fusec.device("cpu:1"):
            y = np.sin(x)
        with fusec.colocate_with(y):
            z = np.cos(x)
        with fusec.control_dependencies([z]):
            return np.exp(x) + y + z

    @fusec.jit
    def program(x):
        for _ in range(4):
            x = helper(x)
        return x

    nodes = {n.name: n for n in in_its_place(program)}
    sines, cosines, exponentials = ([n for n in nodes.values() if n.op == op]
                                    for op in ("Sin", "Cos", "Exp"))
    assert [n.device for n in sines] == 4 * ["/device:CPU:1"]
    assert [n.device.partition("@")[2] for n in cosines] == [n.name for n in sines]
    assert [n.control_inputs for n in exponentials] == [(n,) for n in cosines]


def test_prepared_calls_keep_what_is_said_of_the_calls(two_devices: Any) -> None:
    helper = fusec.jit(lambda x: np.sin(x) + np.cos(x))

    @fusec.jit
    def program(x):
        with fusec.device("cpu:1"):
            for _ in range(4):
                x = helper(x)
        return x

    graph = program.trace(X).graph
    before, after = (
        [(n.device, n.control_inputs) for n in placing.repeated_calls(g)]
        for g in (graph, placing.with_prepared(graph, prune)))
    assert before == after and before[0][0] == "/device:CPU:1"


def test_calls_in_a_scope_that_asks_for_each_node_share_no_body(two_devices: Any) -> None:
    helper = fusec.jit(lambda x: np.sin(x) + np.cos(x))

    @fusec.jit
    def program(x):
        with fusec.device(lambda node: f"cpu:{node.op == 'Sin':d}"):
            for _ in range(4):
                x = helper(x)
        return x

    assert all(n.op != "Call" for n in program.trace(X).graph.nodes)
