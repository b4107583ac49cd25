"""Which library calls are admitted in a graph that is read in, and with which arguments.

The tables are closed: a function is called if it stands here by name, whatever else its module has.
None of these functions reads memory that it is not given or writes but to its result; parameters
that make one write elsewhere (``out``) are refused, and so are SciPy's wrappers of LAPACK and BLAS,
which take sizes and offsets as they are told.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from keyword import iskeyword
from typing import Any

import numpy as np

from fusec.ir import Node, TensorType
from fusec.ir.sizes.dims import symbols_of

from ..calls.named_functions import LIBRARY_CALLS, find_scipy, find_ufunc, ufunc_behind
from .admission import MOST_SIZE, require

_NUMPY = """
    all allclose amax amin angle any append arange argmax argmin argpartition argsort argwhere
    around array array_equal array_equiv ascontiguousarray asfortranarray astype atleast_1d
    atleast_2d atleast_3d average bartlett bincount blackman block broadcast_to choose clip
    column_stack compress concatenate convolve copy corrcoef correlate count_nonzero cov cross
    cumprod cumsum cumulative_prod cumulative_sum delete diag diagflat diagonal diff digitize
    dot dsplit dstack ediff1d einsum expand_dims extract eye fix flatnonzero flip fliplr flipud
    full full_like geomspace gradient hamming hanning histogram histogram2d histogram_bin_edges
    histogramdd hsplit hstack i0 identity imag inner insert interp intersect1d isclose iscomplex
    isin isneginf isposinf isreal kaiser kron lexsort linspace logspace matrix_transpose max
    mean median min moveaxis nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean
    nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar nonzero ones
    ones_like outer packbits pad partition percentile permute_dims poly polyadd polyder polydiv
    polyfit polyint polymul polysub polyval prod ptp quantile ravel ravel_multi_index real
    repeat reshape resize roll rollaxis rot90 round row_stack searchsorted select setdiff1d
    setxor1d sinc sort sort_complex split squeeze stack std sum swapaxes take take_along_axis
    tensordot tile trace transpose trapezoid tri tril triu union1d unique unique_all
    unique_counts unique_inverse unique_values unpackbits unravel_index unstack unwrap vander
    var vdot vsplit vstack where zeros zeros_like linalg.cholesky linalg.cond linalg.cross
    linalg.det linalg.diagonal linalg.eigh linalg.eigvalsh linalg.inv linalg.lstsq linalg.matmul
    linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose
    linalg.multi_dot linalg.norm linalg.outer linalg.pinv linalg.qr linalg.slogdet linalg.solve
    linalg.svd linalg.svdvals linalg.tensordot linalg.tensorinv linalg.tensorsolve linalg.trace
    linalg.vecdot linalg.vector_norm fft.fft fft.fft2 fft.fftfreq fft.fftn fft.fftshift fft.hfft
    fft.ifft fft.ifft2 fft.ifftn fft.ifftshift fft.ihfft fft.irfft fft.irfft2 fft.irfftn
    fft.rfft fft.rfft2 fft.rfftfreq fft.rfftn lib.stride_tricks.sliding_window_view"""
NUMPY = frozenset(_NUMPY.split())
_METHODS = """
    all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy
    cumprod cumsum diagonal dot flatten max mean min nonzero prod ravel repeat reshape round
    searchsorted squeeze std sum swapaxes take trace transpose var"""
METHODS = frozenset(_METHODS.split())
SCIPY = frozenset(f"{module}.{name}" for module, names in LIBRARY_CALLS.items()
                  if module not in ("linalg.lapack", "linalg.blas") for name in names.split())
UFUNC_METHODS = ("__call__", "reduce", "accumulate", "reduceat", "outer")
# Parameters that name memory to write to, code to call, or processes to start.
_WRITING = ("out", "output", "overwrite", "like", "callback", "workers", "distances", "indices_out",
            "function", "extra_arguments", "extra_keywords", "subok")
_MOST_DEPTH = 16
Table = Mapping[str, Any]  # LibraryCalls by op


def check_call(table: Table, node: Node) -> None:
    """The function is one of the tables, and its arguments are plain data and operands."""
    form, named, results = (node.attrs[k] for k in ("form", "named", "results"))
    check_form(form, len(node.inputs), _MOST_DEPTH)
    check_form(named, len(node.inputs), _MOST_DEPTH)
    require(form[:1] == named[:1] == ("tuple",), "its arguments are not written as tuples")
    require(bool(results), "it has no results")
    keywords = list(_keywords(named))
    require(len(dict(keywords)) == len(keywords), "it has a keyword argument twice")
    _check_arguments(table, node.op, form[1:], dict(keywords))
    call = table[node.op]
    if call.writes:
        target = node.inputs[0].type if node.inputs else None
        require(form[1:2] == (("operand", 0),) and target is not None and results == (
            TensorType(target.dtype, target.shape),), "it does not write to its first operand")
    if call.selects:
        _check_selection(node)


def check_form(form: Any, operands: int, depth: int) -> None:
    """Literals, and tuples that start with a tag."""
    require(depth > 0, "its arguments are nested too deeply")
    if type(form) is not tuple:
        require(form is None or isinstance(form, (np.generic, np.dtype)) or (
            type(form) in (bool, int, float, complex, str)), f"{form!r} is no plain argument")
        require(type(form) is not int or abs(form) <= MOST_SIZE, f"{form} is too large")
        return
    tag, *rest = form or ("",)
    if tag == "operand":
        require(len(rest) == 1 and type(rest[0]) is int and 0 <= rest[0] < operands,
                f"it has no operand {rest}")
        return
    counts = {"ellipsis": (0,), "slice": (3,), "tuple": None, "list": None}
    require(type(tag) is str and tag in counts, f"{tag!r} begins no argument")
    require(counts[tag] is None or len(rest) in (counts[tag] or ()), f"a {tag} of {len(rest)}")
    for item in rest:
        check_form(item, operands, depth - 1)


def _keywords(named: Any) -> Iterator[tuple[str, Any]]:
    for pair in named[1:]:
        require(type(pair) is tuple and len(pair) == 3 and pair[0] == "tuple" and (
            type(pair[1]) is str and pair[1].isidentifier() and not iskeyword(pair[1])),
            f"{pair!r} is no keyword argument")
        yield pair[1], pair[2]


def _check_arguments(
    table: Table, op: str, args: Sequence[Any], named: Mapping[str, Any]
) -> None:
    function, args = _function(table, op, args, named)
    if function is None:
        return
    _check_fit(function, args, named)
    for name, value in (*_by_position(function, args), *named.items()):
        require(not name.startswith(_WRITING) or value is None or value is False,
                f"the argument {name!r} is not admitted")


def _check_fit(
    function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """Every argument has a parameter, and every parameter without a default its argument."""
    signature = _signature(function)
    if signature is None:
        return
    try:
        signature.bind(*args, **named)
    except TypeError as error:
        require(False, f"the arguments of {function.__name__}: {error}")


def _function(
    table: Table, op: str, args: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Callable[..., Any] | None, Sequence[Any]]:
    """The function called, with which of the arguments; None: it has no names for them."""
    if op == "Numpy":
        return _numpy(_name(args, NUMPY, "np."), tuple(args[1:]))
    if op == "Scipy":
        name = _name(args, SCIPY, "scipy.")
        return find_scipy(name), args[1:]
    if op == "Method":
        name = _name(args, METHODS, "ndarray.")
        require(args[1:2] != () and args[1][:1] == ("operand",), "its array is no operand")
        return getattr(np.ndarray, name), args[1:]
    if op == "Ufunc":
        return _ufunc(args, named)
    if op == "UfuncAt":
        ufunc = _ufunc_called(args[1] if len(args) > 1 else None)
        require(len(args) == 2 + ufunc.nin and not named, "ufunc.at takes an array, indices and "
                "what else the ufunc takes")
        return None, ()
    if op == "CallInto":
        _check_into(table, args)
        return None, ()
    return table[op].function, args


def _name(args: Sequence[Any], names: frozenset[str], prefix: str) -> str:
    name = args[0] if args else None
    require(type(name) is str and name in names,
            f"{prefix}{name} is not among the functions that a graph may call")
    return str(name)


def _numpy(name: str, args: Sequence[Any]) -> tuple[Callable[..., Any], Sequence[Any]]:
    function: Any = np
    for part in name.split("."):
        function = getattr(function, part, None)
    require(callable(function), f"this NumPy has no {name}")
    return function, args


def _ufunc_called(name: Any) -> np.ufunc:
    """NumPy's ufuncs, and those of ``scipy.special``."""
    plain = type(name) is str and name.removeprefix("special.").isidentifier()
    ufunc = find_ufunc(name) if plain and _has_ufunc(name) else None
    require(isinstance(ufunc, np.ufunc), f"{name!r} is no ufunc")
    return ufunc  # type: ignore[return-value]


@cache
def _has_ufunc(name: str) -> bool:
    if not name.startswith("special."):
        return isinstance(getattr(np, name, None), np.ufunc)
    import scipy.special

    held = getattr(scipy.special, name.removeprefix("special."), None)
    return isinstance(ufunc_behind(held), np.ufunc)


def _ufunc(args: Sequence[Any], named: Mapping[str, Any]) -> tuple[None, Sequence[Any]]:
    """Outputs that are given by position come after the operands."""
    require(len(args) >= 2 and args[1] in UFUNC_METHODS, f"{args[1:2]} is no method of a ufunc")
    ufunc, method, rest = _ufunc_called(args[0]), args[1], args[2:]
    least, most = _COUNTS.get(method, (ufunc.nin, ufunc.nin))
    given = len(rest) + sum(name in named for name in ("array", "indices"))
    require(least <= given and len(rest) <= most, f"{ufunc.__name__}.{method} has {len(rest)} "
            f"arguments, at least {least} and at most {most} of which it reads")
    unknown = [name for name in named if name not in _UFUNC_PARAMETERS]
    require(not unknown, f"{ufunc.__name__}.{method} has no argument {', '.join(unknown)}")
    return None, ()


_COUNTS = {"outer": (2, 2), "reduceat": (2, 4), "reduce": (1, 3), "accumulate": (1, 3)}
_UFUNC_PARAMETERS = frozenset(("where", "axes", "axis", "keepdims", "casting", "order", "dtype",
                               "initial", "indices", "array"))


def _check_into(table: Table, args: Sequence[Any]) -> None:
    require(len(args) == 4 and args[1] in table and args[1] != "CallInto" and (
        not table[args[1]].writes), "it names no call whose result it writes")
    require(all(type(a) is tuple and a[:1] == ("tuple",) for a in args[2:]),
            "its arguments are not written as tuples")
    _check_arguments(table, args[1], args[2][1:], dict(_keywords(args[3])) | {"out": None})


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """None where the function does not say."""
    try:
        return inspect.signature(function)
    except ValueError:
        return None


@cache
def _parameters(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """Names of the positional parameters; None where the function does not say."""
    signature = _signature(function)
    if signature is None:
        return None
    return tuple(p.name for p in signature.parameters.values() if p.kind not in (
        p.KEYWORD_ONLY, p.VAR_KEYWORD, p.VAR_POSITIONAL))


def _by_position(function: Callable[..., Any], args: Sequence[Any]) -> list[tuple[str, Any]]:
    names = _parameters(function)
    if names is not None:
        return list(zip(names, args, strict=False))
    require(len(args) <= 2, f"{getattr(function, '__name__', function)} does not say what more "
            f"than two arguments are")
    return []


def _check_selection(node: Node) -> None:
    """Its results have no more elements than its first array: native loops take that for granted.
    """
    if all(not symbols_of(t.shape) - symbols_of(tuple(v.shape for v in node.inputs))
           for t in node.types):
        return
    form = node.attrs["form"]
    require(form[1:2] == (("operand", 0),) and node.inputs[0].type.kind == "array",
            "its first argument is not its first operand")
    if node.op == "GetItem":
        require(len(form) == 3 and _is_mask(node, form[2]),
                "the size of what it selects is known only of a mask")


def _is_mask(node: Node, key: Any) -> bool:
    if type(key) is tuple and key[0] == "tuple":
        return all(_is_mask(node, part) or part == ("ellipsis",) or _is_slice(part)
                   or _is_one(node, part) for part in key[1:])
    return type(key) is tuple and key[0] == "operand" and node.inputs[key[1]].dtype == np.bool_


def _is_one(node: Node, part: Any) -> bool:
    """Whether it is one index: an axis less, and no element more."""
    if type(part) is int:
        return True
    if type(part) is not tuple or part[0] != "operand":
        return False
    type_ = node.inputs[part[1]].type
    return type_.dtype.kind in "iu" and not type_.shape


def _is_slice(part: Any) -> bool:
    return type(part) is tuple and part[0] == "slice"


__all__ = ["check_call", "check_form"]
