"""Running a function once on traced values: from a call to a `Graph`."""

from __future__ import annotations

import functools
import time
from collections import deque
from collections.abc import Callable, ItemsView, Iterable, KeysView, ValuesView
from dataclasses import dataclass, field
from functools import partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import optree

from fusec.errors import (
    ConcreteValueError,
    FusecError,
    unsupported,
    user_error,
    users_own,
)
from fusec.ir import Graph, Loc, TensorType, Value
from fusec.ir.dims import UndecidedSizeError
from fusec.ops.checks import describe_error, has_effects
from fusec.ops.host_calls import HostObject, is_generator

from .call.foreign import check_names
from .call.overlap import view_of
from .call.signature import FlatCall
from .choice.chosen import flat_results
from .choice.optional import Optional, unbound
from .control.before_raise import state_now
from .control.raising import as_checked, is_programs
from .control.sequences import PythonIterator
from .convert.cache import convert
from .facts.code_names import with_inner
from .facts.graph_length import warn_of_length
from .facts.layout import Strides, contiguous, like_order
from .facts.refusals import is_compiled
from .facts.trees import flattened, flattened_in_order
from .guards.asked import builtin_guards, code_guards
from .guards.contents import everything_in, values_inside
from .guards.guard import Guard, OnceGuard, layout_guard
from .guards.measures import VIEWS, Layout
from .guards.side_effects import is_outside
from .guards.static_arguments import note_arguments
from .hooks import numpy_source  # noqa: F401 (answers for arrays: see `values.operations`)
from .hooks.optional import OptionalHooks
from .index import indexing  # noqa: F401 (as above)
from .library.randomness import TracedGenerator
from .numpy import methods  # noqa: F401 (as above)
from .operands.index_uses import lost_checks
from .operands.operands import as_traced
from .operands.sizes import undecided
from .operands.texts import check_text, without_values
from .places.apart import apart_guards
from .places.attributes import Assignment
from .places.shared_results import linked
from .python import functions as python_functions  # noqa: F401 (as above)
from .python import iterators, math_functions, ordering, warned  # noqa: F401 (as above)
from .scipy import functions as scipy_functions  # noqa: F401 (as above)
from .scipy import special  # noqa: F401 (as above)
from .source.errors import SourceUnavailable
from .values.array import TracedArray
from .values.assigned_names import AssignedLater, AssignedNames, until_known
from .values.container_changes import ContainerChanges, may_be_held
from .values.own_arrays import WHAT, OwnArrays
from .values.selected import LibraryView
from .values.states import States
from .values.storage import Storage, ViewStep
from .values.trace import Trace, tracing

_WEAK = {float: np.dtype(np.float64), int: np.dtype(np.int64),
         complex: np.dtype(np.complex128)}


@dataclass(frozen=True)
class Output:
    """One result leaf.

    ``kind``: ``graph`` (an output of the graph), ``input`` (memory of a graph input) or ``const``
    (a Python object); ``steps`` are views to take of it, at the run-time ``indices``, which are
    numbers of outputs of the graph.
    """

    kind: str
    index: int = 0
    steps: tuple[ViewStep, ...] = ()
    value: Any = None
    indices: tuple[int, ...] = ()

    def views(self) -> tuple[Any, ...]:
        """The views, to be taken of a concrete array."""
        numbers = iter(self.indices)
        return tuple(step.on_array(numbers) for step in self.steps)


@dataclass
class Traced:
    """A finished trace."""

    graph: Graph
    outputs: list[Output]
    treespec: Any
    output_strides: list[tuple[int, ...]]
    input_strides: list[tuple[int, ...]]
    captured: list[Any]
    read_only: set[int]  # inputs that are arrays from outside which cannot be written
    positions: list[int]  # input position of each leaf, -1 for static leaves
    guards: list[Any]
    ms: float
    notes: list[str] = field(default_factory=list)
    # Attributes assigned after the call, with the structure of their values, whose leaves follow
    # the result's among the outputs.
    assignments: list[tuple[Assignment, Any]] = field(default_factory=list)
    calls_host: bool = False  # whether it calls objects of the user's: generators, print
    container_changes: ContainerChanges = field(default_factory=ContainerChanges)
    states: States = field(default_factory=States)  # what was assigned where it may raise

    @property
    def updates(self) -> list[int]:
        return [i for i, _ in self.graph.updates]

    @property
    def written_leaves(self) -> frozenset[int]:
        """Positions of the leaves that a call writes to."""
        updates = set(self.updates)
        return frozenset(i for i, number in enumerate(self.positions) if number in updates)


def trace_function(fn: Callable[..., Any], name: str, call: FlatCall) -> Traced:
    """Run ``fn`` on traced arguments; raises the user's errors at the user's lines."""
    start = time.perf_counter()
    traced = until_known(lambda names: _traced(fn, name, call, names))
    traced.ms = 1e3 * (time.perf_counter() - start)
    return traced


def _traced(fn: Callable[..., Any], name: str, call: FlatCall, names: AssignedNames) -> Traced:
    trace = Trace(name)
    trace.own = OwnArrays(trace)
    trace.assigned_names = names
    hooks = OptionalHooks(trace)
    args, kwargs, positions = _traced_arguments(trace, call)
    function: Any = fn
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    trace.entry = (function,) if isinstance(function, FunctionType) else ()
    if isinstance(fn, functools.partial):
        trace.guards[id(fn), ""] = Guard(name, f"what {name} is a partial of", partial(_itself, fn))
    note_arguments(trace, call)
    runnable = _converted(trace, fn, hooks)
    for function in trace.entry:
        check_names(function, trace.entry_loc)
        trace.reachable.enter(function)
    taken: Any = (args, kwargs)
    given = flattened(taken)
    with (trace.container_changes, tracing(trace), trace.outer_names.held(trace.entry),
          trace.containers.during_trace()):
        result = _run(trace, runnable, args, kwargs)
        _check_containers(trace, given, taken)
        once = _check_kept(trace)
        trace.containers.check_new_items()
        once += trace.containers.once()
        effects = [*trace.containers.effects(), *hooks.attributes.effects(),
                   *trace.outer_names.effects()]
        trace.containers.check_unchosen([value for _, value in effects])
        later, result = linked(trace, [value for _, value in effects], result)
        leaves, treespec = flat_results(trace, result)
        assigned = [flat_results(trace, v) for v in later]
        leaves += [leaf for part, _ in assigned for leaf in part]
        outputs, values, strides = _outputs(trace, leaves)
        updates = [
            (s.origin, s.value) for s in trace.storages if s is not None and s.version > 0
        ]
        needed = [*values, *(v for _, v in updates), *(n.out() for n in trace.checks)]
        trace.checks += lost_checks(trace, trace.index_uses, [v.node for v in needed])
        graph = Graph.build(trace.inputs, values, updates, name, trace.checks)  # type: ignore[arg-type]
    warn_of_length(graph)
    functions = [*hooks.functions, *trace.watch.functions, *trace.entry]
    for guard in trace.guards.values():
        guard.refresh()
    taken = [g for _, guards in trace.taken.values() for g in guards]
    guards = [*once, *taken, *(g for g in trace.guards.values() if not trace.reachable.is_read(g)),
              *_layout_guards(trace), *apart_guards(trace, {i for i, _ in graph.updates}),
              *trace.reachable.guards(functions, trace.outer_names.are_inputs()),
              *builtin_guards(functions), *code_guards(functions, trace.entry)]
    trace.reachable.close()
    notes = [*trace.notes, *map(str, once)]
    return Traced(
        graph, outputs, treespec, strides, _input_strides(trace), trace.captured,
        _read_only(trace), positions, guards, 0.0, notes,
        [(assignment, tree) for (assignment, _), (_, tree) in zip(effects, assigned, strict=True)],
        trace.calls_host, trace.container_changes, trace.states,
    )


def _check_containers(trace: Trace, given: Any, now: Any) -> None:
    """Lists and dicts of the arguments are taken apart before a call: their own are not changed."""
    leaves, structure = flattened_in_order(now)
    same = structure == given[1] and all(a is b for a, b in zip(leaves, given[0], strict=True))
    if same:
        return
    inside = set(map(id, everything_in(now)))
    kind, loc = "list or dict", trace.entry_loc
    for container, changed_at in trace.container_changes.changed():
        if id(container) in inside:
            kind, loc = type(container).__name__, changed_at
    raise unsupported(
        f"changing {'an' if kind[0] in 'AEIOUaeiou' else 'a'} {kind} that is an argument", loc=loc,
        cure="make a copy, change that and return it: items = items.copy()",
        notes=("a default value is an argument, too",))


def _run(
    trace: Trace, runnable: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
) -> Any:
    """The function's result; exceptions of its own leave marked as the user's."""
    try:
        with trace.watch.around():
            return runnable(*args, **kwargs)
    except FusecError as error:
        if _raises_in_the_run(trace, error):
            return None
        raise
    except UndecidedSizeError as error:
        raise undecided(trace, error) from None
    except Exception as error:
        cause = error.__cause__ or error.__context__
        if isinstance(cause, ConcreteValueError) and type(error) in (TypeError, ValueError):
            raise cause from None  # NumPy's C code replaced it by a message about sequences
        if "'Traced" in str(error) and type(error) in (TypeError, AttributeError):
            raise _in_numpys_words(trace, error) from None
        if type(error) is NameError and "free variable" in str(error):
            if not _is_free(trace, error):
                error = unbound(error.name or "").with_traceback(error.__traceback__)
            users_own(error)
            raise error from None
        if isinstance(error, RecursionError) and trace.endless is not None:
            raise unsupported(
                "a function that calls itself until data ends it", loc=trace.endless,
                cure="write the recursion as a loop",
                notes=("tracing takes both sides of a branch that data decides",)) from None
        if _raises_in_the_run(trace, error):
            return None
        without_values(error)
        users_own(error)
        raise


def _is_free(trace: Trace, error: NameError) -> bool:
    """Whether the variable without a value is one of an outer function in the program itself: in
    converted code variables of the function are free ones of its parts."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    name = frame.tb_frame.f_code.co_qualname if frame is not None else ""
    owners = [code for fn in (*trace.entry, *getattr(trace.hooks, "functions", ()))
              for code in with_inner(fn.__code__)
              if name == code.co_qualname or name.startswith(f"{code.co_qualname}.<locals>.")]
    inmost = max(owners, key=lambda code: len(code.co_qualname), default=None)
    return inmost is not None and error.name in inmost.co_freevars


def _raises_in_the_run(trace: Trace, error: BaseException) -> bool:
    """Whether the program's own exception becomes a check: others come before it, as data decides,
    or assignments."""
    is_own = not isinstance(error, FusecError) and describe_error(error) is not None
    if not is_programs(error) or not (any(map(has_effects, trace.checks)) or (
            is_own and state_now(trace) is not None)):
        return False
    trace.check(trace.builder.const(np.bool_(False)), as_checked(trace, error))
    return True


def _in_numpys_words(trace: Trace, error: Exception) -> Exception:
    """Python's complaint about an operand's type, with the type the user knows."""
    text = str(error).replace("'TracedArray'", "'numpy.ndarray'").replace(
        "'TracedGenerator'", "'Generator'")
    return trace.error(type(error)(text))


def _converted(trace: Trace, fn: Callable[..., Any], hooks: OptionalHooks) -> Callable[..., Any]:
    if not isinstance(fn, (FunctionType, MethodType)):
        return hooks.resolve(fn)
    try:
        return convert(fn, hooks)
    except SourceUnavailable as error:
        raise error.located(trace.entry_loc) from None


def _traced_arguments(trace: Trace, call: FlatCall) -> tuple[tuple, dict[str, Any], list[int]]:
    leaves, positions = [], []
    shared: dict[int, Storage] = {}
    for position, (leaf, path, static) in enumerate(
            zip(call.leaves, call.paths, call.is_static, strict=True)):
        if static:
            if isinstance(leaf, np.ndarray):  # its contents are part of the key: a constant
                trace.own.exclude(leaf)
                trace.local_arrays[id(leaf)] = leaf
            leaves.append(_generator(trace, position, leaf, path) if is_generator(leaf) else leaf)
            positions.append(-1)
            continue
        positions.append(len(trace.inputs))
        leaves.append(_traced_leaf(trace, call, position, leaf, path, shared))
    tree: Any = optree.tree_unflatten(call.treespec, leaves)
    args, kwargs = tree
    return args, kwargs, positions


def _generator(trace: Trace, position: int, leaf: Any, path: str) -> Any:
    """A random generator that is an argument: each call draws from its own."""
    return TracedGenerator(trace, HostObject.of(path, leaf=position), type(leaf))


def _traced_leaf(
    trace: Trace, call: FlatCall, position: int, leaf: Any, path: str,
    shared: dict[int, Storage],
) -> TracedArray:
    if type(leaf) is np.ndarray:
        storage = trace.add_array(leaf, path)
        first, *layout = call.key[position + 1][4:] if leaf.size else (position,)
        storage = shared.setdefault(first, storage)  # the same memory passed twice
        array = TracedArray(trace, storage)
        return view_of(array, *layout) if layout else array
    if isinstance(leaf, np.generic):
        type_ = TensorType(leaf.dtype, (), "scalar")
    else:
        type_ = TensorType(_WEAK[type(leaf)], (), "weak")
    return TracedArray(trace, None, (), trace.add_scalar(type_, path))


def _input_strides(trace: Trace) -> list[tuple[int, ...]]:
    return [() if s is None else s.strides for s in trace.storages]


def _first_captured(trace: Trace) -> int:
    return len(trace.inputs) - len(trace.captured)


def _read_only(trace: Trace) -> set[int]:
    """Inputs that are arrays from outside which cannot be written."""
    return {i for i, s in enumerate(trace.storages)
            if i >= _first_captured(trace) and s is not None and not s.writeable}


def _layout_guards(trace: Trace) -> list[Guard]:
    """For what is read from outside at each call and has no such guard yet; the launcher compares
    all of these itself."""
    known = {id(g.read): g for g in trace.guards.values() if type(g.measure) is Layout}
    new: list[Guard] = []
    for i, found in enumerate(trace.captured, _first_captured(trace)):
        guard = known.get(id(found))
        if guard is None and trace.outside[i] is not WHAT:
            read = found if callable(found) else partial(_itself, found)
            guard = layout_guard(trace.outside[i], read)
            new.append(guard)
        if guard is not None:
            guard.is_native = True
    return new


def _itself(value: Any) -> Any:
    return value


def _outputs(
    trace: Trace, leaves: list[Any]
) -> tuple[list[Output], list[Value], list[tuple[int, ...]]]:
    outputs: list[Output] = []
    values: list[Value] = []
    strides: list[tuple[int, ...]] = []
    known: dict[int, int] = {}
    for leaf in leaves:
        outputs.append(_output(trace, leaf, values, strides, known))
    returned = [x.storage for x in leaves if type(x) is TracedArray and x.storage is not None]
    for storage in returned:
        if isinstance(storage, LibraryView):
            storage.check_returned(returned)
    return outputs, values, strides


def _check_returned(trace: Trace, leaf: Any) -> None:
    """An object that is returned is the same in every call: it holds nothing of the graph.

    What the program assigns to one from outside is put there after the call.
    """
    names = [name for owner, name in trace.attributes.names if owner == id(leaf)]
    if (names and id(leaf) in trace.local_objects) or _holds_traced(trace, leaf):
        raise unsupported(
            f"returning a {type(leaf).__name__} that holds values of the graph",
            loc=trace.entry_loc,
            cure="return the arrays and numbers in tuples, lists and dicts, or register the class "
            "with optree.register_pytree_node")


def _check_kept(trace: Trace) -> list[Guard]:
    """Refuse values of the graph in containers that outlive the call: they would stay there.

    Gives a guard for each other one that the trace changed, which each call must.
    """
    once: list[Guard] = []
    changed = [(c, loc) for c, loc in trace.container_changes.changed() if is_outside(trace, c)]
    late = [c for c, _ in changed if may_be_held(c)]
    _check_given(trace, late)
    if late:
        raise AssignedLater(containers=list(map(trace.containers.titled, late)),
                            appended=trace.containers.only_appended(late))
    trace.containers.check_only_appended()
    for container, loc in changed:
        once.append(OnceGuard(type(container).__name__, loc))
        if _holds_traced(trace, container):
            raise _kept(container, loc)
    for owner, loc in trace.given.values():
        if _holds_traced(trace, owner):
            raise _kept(owner, loc)
    return once


def _check_given(trace: Trace, late: list[Any]) -> None:
    """What code of a library changes beside its containers is not changed by each call."""
    for owner, loc in trace.given.values():
        if not isinstance(owner, VIEWS):
            inner = set(map(id, everything_in(vars(owner))))
            if any(id(container) in inner for container in late):
                raise _kept(owner, loc)


def _kept(holder: Any, loc: Loc | None) -> FusecError:
    return unsupported(
        f"keeping a value of the graph in a {type(holder).__name__} that outlives the call",
        loc=loc, cure="keep it in an attribute or a global variable, in a list or dict, or return "
        "it")


def _holds_traced(trace: Trace, x: Any) -> bool:
    """Whether values of the graph stay in it; those in containers that are held do not."""
    return any(type(found) in (TracedArray, Optional) or isinstance(
        found, (PythonIterator, KeysView, ValuesView, ItemsView))
        for found in everything_in(x, partial(_kept_in, trace)))


def _kept_in(trace: Trace, x: Any) -> Iterable[Any]:
    """What an object keeps: items, attributes, and of a function the values of the graph alone."""
    if trace.containers.is_held(x) or isinstance(x, (type, ModuleType, np.ndarray)) or (
            str(type(x).__module__).partition(".")[0] in ("fusec", "numpy")):
        return ()
    if isinstance(x, FunctionType):
        cells = [c.cell_contents for c in x.__closure__ or () if c != CellType()]
        return [c for c in cells if type(c) is TracedArray]
    own = x if type(x) is dict else getattr(x, "__dict__", None)  # the one of a module, too
    slots = [getattr(x, n, None) for c in type(x).__mro__ for n in getattr(c, "__slots__", ())]
    return [*values_inside(x), *(own.values() if type(own) is dict else ()), *slots]


def _output(
    trace: Trace, leaf: Any, values: list[Value], strides: list[tuple[int, ...]],
    known: dict[int, int],
) -> Output:
    if type(leaf) is np.ndarray and (trace.own.is_traced(leaf) or (
            is_compiled(leaf.dtype) and trace.reachable.place_of(leaf) is not None)):
        leaf = as_traced(trace, leaf)
    if type(leaf) is not TracedArray:
        if type(leaf) is np.ndarray and id(leaf) in trace.local_arrays:
            return Output("fresh", value=leaf)
        if type(leaf) is TracedGenerator:
            raise user_error(
                TypeError, "the function returns a random generator that it was given or made",
                trace.loc, "make it outside the compiled function")
        _check_returned(trace, leaf)
        check_text(trace, leaf)
        changes = isinstance(leaf, (set, deque, bytearray, dict, list)) or (
            id(leaf) in trace.local_objects and not isinstance(leaf, (str, bytes, int, float)))
        return Output("fresh" if changes else "const", value=leaf)
    if leaf.trace is not trace:
        raise user_error(TypeError, "the function returns a value of another trace", trace.loc,
                         "do not keep traced values outside the function")
    storage = leaf.storage
    indices = [v for step in leaf.steps for v in step.operands]
    numbers = tuple(range(len(values), len(values) + len(indices)))
    values.extend(indices)
    strides.extend([()] * len(indices))
    if storage is not None and storage.origin is not None:
        return Output("input", storage.origin, leaf.steps, None, numbers)
    if storage is None:
        values.append(leaf.value)
        strides.append(())
        return Output("graph", len(values) - 1)
    if id(storage) not in known:
        known[id(storage)] = len(values)
        values.append(storage.read(trace.builder, ()))
        strides.append(_fresh_strides(storage))
    return Output("graph", known[id(storage)], leaf.steps, None, numbers)


def _fresh_strides(storage: Storage) -> Strides:
    """How a result with memory of its own lies in it: what is chosen of two views is a copy."""
    shape, itemsize = storage.value.shape, storage.value.dtype.itemsize
    return contiguous(shape, itemsize, like_order(storage.strides))


__all__ = ["ConcreteValueError", "Output", "Traced", "trace_function"]
