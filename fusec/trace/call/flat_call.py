"""From bound arguments to leaves and the key that decides which trace answers a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

from fusec.core.records import dataclass
from fusec.errors import user_error
from fusec.ir import dtype_name
from fusec.ir.types import RUN_TIME_INT
from fusec.ops.calls.host_calls import is_generator

from ..facts.layout import is_c_contiguous
from ..facts.refusals import check_array, check_dtype, is_compiled
from ..facts.static_values import SameObject, has_attributes, key_of
from ..facts.trees import flattened, holds_ordered, in_order, key_types
from .arguments_at_exit import flattened_as_before
from .foreign_arrays import is_foreign, refusal
from .placement_settings import Placing
from .signature import Signature
from .symbolic_arguments import OpenArguments

Leaf = Any
MOST_LAYOUTS = 256


@dataclass(frozen=True)
class FlatCall:
    """A call's leaves with their paths and key parts; equal ``key`` means the same trace.

    ``separate``: the call as it was made, where overlapping arrays were merged (see `overlap`).
    ``form``: how many arguments came by position, and the names of the others.
    ``needed``: the leaves that are Python's ints of which a trace needed the value.
    ``symbolic``: in a trace for more sizes than the call's, the shapes of its arrays.
    ``varying``: the names of attributes whose numbers are inputs of the trace.
    ``placing``: see `fusec.trace.call.placement_settings`.
    ``opens_empty``: arrays without elements have symbols for their other sizes, too.
    """

    leaves: tuple[Leaf, ...]
    paths: tuple[str, ...]
    key: tuple
    treespec: Any
    is_static: tuple[bool, ...]
    separate: FlatCall | None = None
    form: tuple[Any, ...] = ()
    needed: frozenset[int] = frozenset()
    symbolic: OpenArguments | None = None
    varying: frozenset[str] = frozenset()
    placing: Placing | None = None
    opens_empty: bool = False


def leaf_getter(
    signature: Signature, form: tuple[Any, ...], treespec: Any
) -> Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, ...]] | None:
    """A function from ``args`` and ``kwargs`` to the leaves of a call of this form; None where an
    argument is a pytree of several leaves, or a default is one that may change."""
    by_position = tuple(object() for _ in range(form[0]))
    by_name: dict[str, Any] = {name: object() for name in form[1:]}
    bound: Any = signature.bind(by_position, by_name)
    leaves, structure = flattened(bound)
    if structure != treespec or not all(map(_is_lasting, (*bound[0], *bound[1].values()))):
        return None
    sources = {id(x): f"args[{i}]" for i, x in enumerate(by_position)}
    sources |= {id(x): f"kwargs[{name!r}]" for name, x in by_name.items()}
    names = {f"default{i}": leaf for i, leaf in enumerate(leaves) if id(leaf) not in sources}
    items = "".join(f"{sources.get(id(x), f'default{i}')}, " for i, x in enumerate(leaves))
    result = "args" if items == "".join(f"args[{i}], " for i in range(form[0])) else f"({items})"
    getter: Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, ...]] = eval(
        f"lambda args, kwargs: {result}", names)
    return getter


def _is_lasting(x: Any) -> bool:
    """Whether it has the same leaves in all calls: it is one, or a tuple of such."""
    return all(map(_is_lasting, x)) if isinstance(x, tuple) else (
        [id(x)] == list(map(id, flattened(x)[0])))


def flatten(
    signature: Signature, args: tuple, kwargs: dict[str, Any], dynamic_ints: frozenset[str],
    pinned_ints: frozenset[str] = frozenset(),
) -> FlatCall:
    """Flatten bound arguments (pytrees allowed) and compute the trace key.

    ``pinned_ints``: paths of ints that a trace needs, where NumPy's integers are static, too.
    """
    tree: Any = (args, kwargs)
    leaves, treespec = flattened(tree)
    if leaves and leaves[0] is tree:
        leaves, treespec = flattened_as_before(tree, signature.layouts)
    if holds_ordered(treespec):
        leaves, treespec = flattened(in_order(tree))
    leaves = [np.asarray(leaf) if type(leaf) is np.memmap else leaf for leaf in leaves]
    paths, static = leaf_paths(signature, treespec)
    if pinned_ints:
        static = tuple(s or (path in pinned_ints and isinstance(leaf, np.integer))
                       for s, path, leaf in zip(static, paths, leaves, strict=True))
    parts: list[tuple] = []
    pointers: dict[tuple, int] = {}
    for position, (leaf, path) in enumerate(zip(leaves, paths, strict=True)):
        part = _static_part(leaf, path) if static[position] else _key_part(
            leaf, path, path in dynamic_ints)
        if type(leaf) is np.ndarray and leaf.size:
            same = (leaf.__array_interface__["data"][0], part)
            part = (*part, pointers.setdefault(same, position))
        parts.append(part)
    flags = tuple(
        s or _is_python_static(leaf, path in dynamic_ints)
        for s, leaf, path in zip(static, leaves, paths, strict=True)
    )
    types = key_types(treespec)
    structure = (treespec, types) if types else treespec
    needed = frozenset(i for i, part in enumerate(parts) if part[0] is int and len(part) > 1
                       and paths[i] in pinned_ints)
    leaves = _with_copies(leaves, static)
    return FlatCall(tuple(leaves), paths, (structure, *parts), treespec, flags, needed=needed)


def _with_copies(leaves: list[Any], static: tuple[bool, ...]) -> list[Any]:
    """Static arrays as they are now: what is traced with them serves later calls whose arrays equal
    these, whatever the caller writes to these.  One that others of the call overlap stays."""
    arrays = [(isinstance(x, np.ndarray), s) for x, s in zip(leaves, static, strict=True)]
    if (True, True) not in arrays:
        return leaves
    others = [x for x, kind in zip(leaves, arrays, strict=True) if kind == (True, False)]
    return [x.copy() if kind == (True, True) and not any(np.may_share_memory(x, y) for y in others)
            else x for x, kind in zip(leaves, arrays, strict=True)]


def leaf_paths(signature: Signature, treespec: Any) -> tuple[tuple[str, ...], tuple[bool, ...]]:
    """The leaves' names (``params['w']``), and whether each belongs to a static argument."""
    layout = signature.layouts.get(treespec)
    if layout is None:
        paths = tuple(_path(signature, a.path) for a in optree.treespec_accessors(treespec))
        static = tuple(signature.is_static(path) for path in paths)
        if len(signature.layouts) >= MOST_LAYOUTS:
            signature.layouts.clear()
        layout = signature.layouts[treespec] = paths, static
    return layout


def _path(signature: Signature, steps: tuple) -> str:
    """``x``, ``params['w']``, ``state[0]``."""
    where, first, *rest = steps if len(steps) > 1 else (*steps, "")
    name = signature.path_of(first) if where == 0 and isinstance(first, int) else str(first)
    return name + "".join(f"[{step!r}]" for step in rest)


def _is_python_static(leaf: Any, dynamic: bool) -> bool:
    """Whether the function gets the Python value itself while it is traced."""
    if type(leaf) in (float, complex, np.ndarray) or isinstance(leaf, np.generic):
        return False
    return not (type(leaf) is int and dynamic and _is_run_time_int(leaf))


def _is_run_time_int(leaf: int) -> bool:
    return RUN_TIME_INT[0] <= leaf <= RUN_TIME_INT[1]


def _static_part(leaf: Any, path: str) -> tuple:
    if isinstance(leaf, np.ndarray):
        if hasattr(leaf.base, "__cuda_array_interface__"):
            raise user_error(TypeError, f"argument {path} is static and lies on a GPU", None,
                             "pass x.get(), whose values are part of the program")
        return ("static array", leaf.dtype.str, leaf.shape, leaf.tobytes())
    return ("static", type(leaf), _static_key(leaf, path))


def _static_key(value: Any, path: str) -> Any:
    """A hashable key, equal only for values that one trace can serve: 1, True, 1.0 differ."""
    if type(value) in (float, complex):
        return repr(value)
    if type(value) is slice:
        return _slice_key(value, path)
    if is_foreign(value):
        raise refusal(value, f"argument {path}", None)
    try:
        hash(value)
    except TypeError:
        if has_attributes(value):
            return SameObject(value)  # such as a dataclass: guards compare its attributes
        raise user_error(
            TypeError, f"argument {path} is a {type(value).__qualname__}, which is neither an "
            f"array, a number, a pytree of those, nor hashable", None,
            "pass arrays, numbers, or tuples, lists and dicts of them",
        ) from None
    return key_of(value)


def _slice_key(value: slice, path: str) -> str:
    parts = (value.start, value.stop, value.step)
    if not all(part is None or hasattr(type(part), "__index__") for part in parts):
        raise user_error(TypeError, f"argument {path} is a slice whose bounds are no integers",
                         None, "make the slice of integers or None")
    return repr(value)


def _key_part(leaf: Any, path: str, dynamic: bool) -> tuple:
    kind = type(leaf)
    if kind is np.ndarray:
        check_leaf(leaf, path)
        return (leaf.dtype, leaf.shape, leaf.strides, leaf.flags.writeable)
    if kind in (float, complex):
        return (kind,)
    if kind is int:
        return _int_part(leaf, dynamic)
    if isinstance(leaf, np.ndarray):
        check_leaf(leaf, path)
    if isinstance(leaf, np.generic):
        _check_scalar(leaf, path)
        return (kind,)
    if is_generator(leaf):  # the launcher passes the object itself
        return (kind, _generator_kind(leaf))
    return (kind, _static_key(leaf, path))


def _generator_kind(generator: Any) -> str:
    return type(getattr(generator, "bit_generator", generator)).__name__


def _int_part(leaf: int, dynamic: bool) -> tuple:
    return (int,) if dynamic and _is_run_time_int(leaf) else (int, leaf)


def check_leaf(array: np.ndarray, path: str) -> None:
    """Raise the user error for an array fusec cannot hold."""
    if type(array) is not np.ndarray or not is_compiled(array.dtype):
        check_array(array, f"argument {path}")


def _check_scalar(leaf: np.generic, path: str) -> None:
    if not is_compiled(leaf.dtype):
        check_dtype(leaf.dtype, f"argument {path}")


def describe_part(part: tuple) -> str:
    """A key part in messages: ``f64[3,4]``, ``int 3``, ``float``."""
    head = part[0]
    if isinstance(head, np.dtype):
        text = f"{dtype_name(head)}[{','.join(map(str, part[1]))}]"
        if not is_c_contiguous(part[1], part[2], head.itemsize):
            text += f" strides {part[2]}"
        return text + ("" if part[3] else " read-only")
    if head is slice:
        return str(part[1])
    if head in ("static", "static array"):
        return f"static {part[-1]!r}"[:60]
    return head.__name__ + (f" {part[1]!r}" if len(part) > 1 else "")


def differ(a: Any, b: Any) -> bool:
    """Whether parts of two keys differ; keys of dicts in them may be NumPy scalars."""
    try:
        return bool(a != b)
    except ValueError:  # a NumPy scalar compared with a tuple gives an array
        return True


def explain_miss(paths: Sequence[str], old: tuple, new: tuple) -> str:
    """How a call differs from the nearest trace."""
    if differ(old[0], new[0]):
        return "the structure of the arguments differs"
    differences = [
        f"{path}: {describe_part(a)} before, {describe_part(b)} now"
        for path, a, b in zip(paths, old[1:], new[1:], strict=True) if a != b
    ]
    return "; ".join(differences) or "a guarded value has changed"
