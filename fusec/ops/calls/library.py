"""Ops that call NumPy: one row per function whose work is a library's, or whose result is.

A node of such an op holds the whole call as plain data: ``form`` the positional arguments,
``named`` the keyword arguments, both as `decode` reads them, and ``results`` the types of its
results, which NumPy itself said when the call was traced.  `LIBRARY` is the table; the front ends
are in ``fusec/trace/library/calls.py``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from fusec.core.records import dataclass
from fusec.ir import Node, TensorType
from fusec.ir.sizes.dims import Dim, Size

from ..admission.admission import ANYTHING, TYPES, Admission
from ..admission.library_admission import check_call
from ..cofactors import cofactors
from ..registry import REAL, Op, register
from .named_functions import find_scipy, find_ufunc

Form = Any  # plain data: literals, and tuples that start with a tag


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """One function: ``varying`` names its parameters that may be numbers known only at run time.

    All other parameters of rank 0 decide shapes or the algorithm and must be known while tracing.
    A function that ``writes`` changes its first argument; the op's result is the changed copy.
    Of a ``sized`` one the sizes of results depend on data; one that ``selects`` gives no more
    elements than its first array has.  ``is_public``: the function that users call stands for it,
    under ``called`` where that is no name.  ``tried_on``: contents of NumPy's operands while
    tracing, where zeros, or identity matrices for linear algebra, would not do.  ``gpu``: whether
    CuPy's function of that name does the same.
    """

    op: str
    function: Callable[..., Any]
    varying: tuple[str, ...] = ()
    writes: bool = False
    sized: bool = False
    selects: bool = False
    is_public: bool = False
    raises: Literal["", "never", "often"] = ""
    tried_on: Literal["", "ones", "points", "square tensors"] = ""
    called: str = ""
    takes: str | tuple[str, ...] = REAL + "c"
    gpu: str = ""

    @property
    def is_named(self) -> bool:
        """Whether its first argument says which of many functions is called."""
        return self.varying == ("args",)


def decode(form: Form, arrays: Sequence[Any]) -> Any:
    """The Python value that a form stands for, its operands taken from ``arrays``.

    Every tuple of a form starts with a tag: ``("operand", number)``, ``("tuple", ...)``,
    ``("list", ...)``, ``("slice", start, stop, step)`` or ``("ellipsis",)``.
    """
    if type(form) is not tuple:
        return form
    tag, *rest = form
    if tag == "operand":
        return arrays[rest[0]]
    if tag == "ellipsis":
        return Ellipsis
    return _MAKERS[tag]([decode(item, arrays) for item in rest])


_MAKERS: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple, "list": list, "slice": lambda parts: slice(*parts),
}


def run_call(
    call: LibraryCall, arrays: Sequence[Any], form: Form, named: Form
) -> Any:
    """NumPy's answer: the call's own result, or the changed copy of its first operand."""
    operands = list(arrays)
    if call.writes:
        operands[0] = np.array(operands[0], order="K")
    keywords = {pair[1]: decode(pair[2], operands) for pair in named[1:]}
    result = call.function(*decode(form, operands), **keywords)
    return operands[0] if call.writes else result


Bind = Callable[[str, Any], str]
Constant = Callable[[Form], str]


def call_text(
    call: LibraryCall, form: Form, named: Form, operands: Sequence[str], bind: Bind,
    constant: Constant | None = None,
) -> str:
    """`run_call` of these forms as a Python expression, for a function that does not write.

    ``operands`` are expressions; ``bind(stem, value)`` gives a name for an object, ``constant`` one
    for `decode`'s result for a form without operands.
    """
    named_by = constant or (lambda form: bind("constant", decode(form, ())))
    return f"{bind('call', call.function)}({arguments_text(form, named, operands, named_by)})"


def arguments_text(form: Form, named: Form, operands: Sequence[str], constant: Constant) -> str:
    """The arguments of a call in the text of it."""
    parts = [_text(item, operands, constant) for item in form[1:]]
    parts += [f"{pair[1]}={_text(pair[2], operands, constant)}" for pair in named[1:]]
    return ", ".join(parts)


def _text(form: Form, operands: Sequence[str], constant: Constant) -> str:
    """`decode` of one form; one without operands is made once."""
    if not has_operands(form):
        return constant(form)
    tag, *rest = form
    if tag == "operand":
        return operands[rest[0]]
    parts = ", ".join(_text(item, operands, constant) for item in rest)
    return {"tuple": f"({parts},)", "list": f"[{parts}]", "slice": f"slice({parts})"}[tag]


def has_operands(form: Form) -> bool:
    """Whether it stands for an array of the call, or for something that holds one."""
    return type(form) is tuple and (form[0] == "operand" or any(map(has_operands, form[1:])))


def leaves_of(result: Any) -> tuple[Any, ...]:
    """The results of a call as one flat tuple."""
    if not isinstance(result, (tuple, list)):
        return (result,)
    for item in result:
        if isinstance(item, (tuple, list)):
            break
    else:
        return tuple(result)
    return tuple(leaf for item in result for leaf in leaves_of(item))


def _infer(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> tuple[TensorType, ...]:
    return tuple(attrs["results"])


def _reference(call: LibraryCall) -> Callable[..., Any]:
    def reference(*arrays: Any, form: Form, named: Form, results: Any) -> Any:
        leaves = leaves_of(run_call(call, arrays, form, named))
        return leaves if len(leaves) > 1 else leaves[0]

    return reference


# ------------------------------------------------------------------------------- item and ufuncs


def _set_item(array: np.ndarray, key: Any, value: Any) -> None:
    array[key] = value


def _ufunc_method(name: str, method: str, *args: Any, **kwargs: Any) -> Any:
    return getattr(find_ufunc(name), method)(*args, **kwargs)


def _ufunc_at(array: np.ndarray, name: str, *args: Any) -> None:
    find_ufunc(name).at(array, *args)


def _scipy_function(name: str, *args: Any, **kwargs: Any) -> Any:
    return find_scipy(name)(*args, **kwargs)


# ----------------------------------------------------------------------------------------- table


def _op_name(function: Callable[..., Any]) -> str:
    """``np.linalg.matrix_rank`` is ``LinalgMatrixRank``."""
    module = (getattr(function, "__module__", None) or "numpy").split(".")[1:]
    words = [*module, *function.__name__.split("_")]
    return "".join(w[:1].upper() + w[1:] for w in words if w)


def _row(
    function: Callable[..., Any], *varying: str, writes: bool = False, sized: bool = False,
    selects: bool = False, **columns: Any,
) -> LibraryCall:
    op = _op_name(function)
    if op.startswith("Linalg"):
        columns["raises"] = "often"
    return LibraryCall(op, function, varying, writes, sized, selects, is_public=True, **columns)


def call_by_name(name: str, *args: Any, **kwargs: Any) -> Any:
    """Any function of NumPy by its name (``linalg.norm``)."""
    function: Any = np
    for part in name.split("."):
        function = getattr(function, part)
    return function(*args, **kwargs)


def call_method(name: str, array: Any, *args: Any, **kwargs: Any) -> Any:
    """Any method of an array by its name."""
    return getattr(array, name)(*args, **kwargs)


def call_into(target: np.ndarray, op: str, args: Any, named: Any) -> None:
    """The call of another row with ``out=target``: NumPy casts, checks and writes as it does."""
    LIBRARY[op].function(*args, out=target, **dict(named))


_LINALG, _FFT = np.linalg, np.fft
_OF_ANY_SIZE = ("a", "x", "ar", "ar1", "ar2", "condition", "weights", "arr", "obj")
_TABLE: tuple[LibraryCall, ...] = (
    # products
    _row(np.einsum, "operands", gpu="fc"), _row(np.dot, "a", "b", gpu="fc"),
    # linear algebra
    *(_row(f, gpu="fc") for f in (
        _LINALG.solve, _LINALG.inv, _LINALG.det, _LINALG.slogdet, _LINALG.cholesky, _LINALG.qr,
        _LINALG.svd, _LINALG.eigh, _LINALG.eigvalsh)),
    _row(_LINALG.svdvals), _row(_LINALG.lstsq, "rcond", gpu="fc"),
    _row(_LINALG.pinv, "rcond", "rtol", gpu="fc"),
    _row(_LINALG.matrix_rank, "tol", "rtol", gpu="fc"), _row(_LINALG.norm, "x"),
    _row(_LINALG.cond),
    _row(_LINALG.tensorsolve, tried_on="square tensors"),
    _row(_LINALG.tensorinv, tried_on="square tensors"),
    LibraryCall("Cofactors", cofactors, raises="often", called="the cofactors of np.linalg.det",
                takes=("f4", "f8", "c8", "c16")),
    # order
    _row(np.sort, raises="never", gpu="iuf"), _row(np.argsort, raises="never", gpu="iuf"),
    _row(np.lexsort, gpu="iuf"), _row(np.partition, "kth", gpu="iuf"),
    _row(np.argpartition, "kth", gpu="iuf"),
    _row(np.searchsorted, "v", gpu="iuf"),
    LibraryCall("SortInPlace", np.ndarray.sort, (), True, called="ndarray.sort"),
    LibraryCall("PartitionInPlace", np.ndarray.partition, ("kth",), True,
                called="ndarray.partition"),
    # scans
    _row(np.cumsum, "a", raises="never"), _row(np.cumprod, "a", raises="never"),
    _row(np.nancumsum, "a"), _row(np.nancumprod, "a"),
    _row(np.cumulative_sum), _row(np.cumulative_prod),
    # statistics
    _row(np.median, "a", gpu="iuf"),
    *(_row(f, "a", "q", gpu="iuf") for f in (np.percentile, np.quantile)),
    _row(np.nanmedian, "a", gpu="iuf"), _row(np.nanpercentile, "a", "q"),
    _row(np.nanquantile, "a", "q"),
    _row(np.histogram, "range"), _row(np.histogram2d, "range", takes=("f4", "f8")),
    _row(np.digitize, "x", gpu="iuf"),
    _row(np.histogram_bin_edges, "range", sized=True, gpu="iuf"),
    _row(np.interp, "x", "xp", "fp", "left", "right", "period", tried_on="ones", gpu="f"),
    # signals and polynomials
    _row(np.convolve, "a", "v"), _row(np.correlate, "a", "v"), _row(np.polyfit, tried_on="points"),
    _row(np.poly, takes=REAL),
    _row(np.sort_complex, takes=("c8", "c16")),
    # Fourier transforms
    *(_row(f, gpu="fc") for f in (
        _FFT.fft, _FFT.ifft, _FFT.fft2, _FFT.ifft2, _FFT.fftn, _FFT.ifftn, _FFT.rfft, _FFT.irfft,
        _FFT.rfft2, _FFT.irfft2, _FFT.rfftn, _FFT.irfftn, _FFT.hfft, _FFT.ihfft)),
    # indices
    _row(np.take, "indices"), _row(np.choose, "a", "choices"),
    _row(np.put_along_axis, "values", writes=True), _row(np.put, "ind", "v", writes=True),
    _row(np.place, "vals", writes=True), _row(np.copyto, "src", "where", writes=True),
    _row(np.unravel_index, "indices"), _row(np.ravel_multi_index, "multi_index"),
    _row(np.isin, "element", "test_elements", gpu="iuf"), _row(np.nanargmin), _row(np.nanargmax),
    # the rest
    _row(np.vander), _row(np.geomspace, "start", "stop", tried_on="ones"),
    _row(np.histogramdd, "range"), _row(np.packbits), _row(np.unpackbits),
    # results of data-dependent size
    *(_row(f, *_OF_ANY_SIZE, sized=True, selects=True, raises="never", gpu="biufc") for f in (
        np.nonzero, np.flatnonzero)),
    *(_row(f, *_OF_ANY_SIZE, sized=True, selects=True, raises="never") for f in (
        np.extract, np.compress)),
    _row(np.unique, *_OF_ANY_SIZE, sized=True, selects=True, raises="never", gpu="iuf"),
    _row(np.argwhere, *_OF_ANY_SIZE, sized=True, selects=True, gpu="biufc"),
    _row(np.setdiff1d, *_OF_ANY_SIZE, sized=True, selects=True, gpu="iu"),
    *(_row(f, *_OF_ANY_SIZE, sized=True, gpu="iu") for f in (
        np.union1d, np.intersect1d, np.setxor1d)),
    *(_row(f, *_OF_ANY_SIZE, sized=True) for f in (
        np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values, np.polymul)),
    _row(np.bincount, *_OF_ANY_SIZE, sized=True, gpu="iu"),
    LibraryCall("Numpy", call_by_name, ("args",), False, True, raises="often"),
    LibraryCall("Method", call_method, ("args",), False, True),
    LibraryCall("CallInto", call_into, (), True),
    LibraryCall("GetItem", operator.getitem, ("a", "b"), False, True, True, called="x[...]",
                gpu="biufc"),
    LibraryCall("SetItem", _set_item, ("key", "value"), True, called="x[...] = ..."),
    # ufuncs without a row of their own, and methods of any
    LibraryCall("Ufunc", _ufunc_method, ("args",)),
    LibraryCall("UfuncAt", _ufunc_at, ("args",), True),
    # functions of SciPy, by name
    LibraryCall("Scipy", _scipy_function, raises="often"),
)
LIBRARY: dict[str, LibraryCall] = {call.op: call for call in _TABLE}
_ADMITTED = Admission({"form": ANYTHING, "named": ANYTHING, "results": TYPES},
                      rule=partial(check_call, LIBRARY))
for _call in _TABLE:
    register(Op(
        name=_call.op, kind="extern", infer=_infer, reference=_reference(_call),
        numpy=(_call.function,), cost=1000.0, may_raise=True, takes=_call.takes,
        raises=_call.raises, admits=_ADMITTED,
        doc=f"A call of {_call.function.__qualname__} while running. attrs: form, named, results.",
    ))


def selects(node: Node) -> bool:
    """Whether it is a call whose results have no more elements than its first array."""
    call = LIBRARY.get(node.op)
    return call is not None and call.selects


def size_limits(node: Node) -> Iterator[tuple[str, Size]]:
    """The symbols that a slice or selection defines, with the upper bound of each."""
    if node.op == "Extent":
        yield node.attrs["length"], node.attrs["limit"]
    arrays = [v.type.size for v in node.inputs if v.type.kind == "array"]
    if selects(node) and arrays:
        for dim in (d for t in node.types for d in t.shape):
            if isinstance(dim, Dim) and dim.name:
                yield dim.name, arrays[0]


def _ufunc_name(name: str) -> str:
    return f"scipy.{name}" if name.startswith("special.") else f"np.{name}"


def called_name(op: str, form: Form) -> str:
    """The name that the user called: ``np.linalg.inv``, ``np.add.accumulate``, ``x[...]``."""
    call = LIBRARY[op]
    if call.called:
        return call.called
    if op == "Scipy":
        return f"scipy.{form[1]}"
    if op == "Numpy":
        return f"np.{form[1]}"
    if op == "Method":
        return f"ndarray.{form[1]}"
    if op == "CallInto":
        return called_name(form[2], form[3])
    if op == "Ufunc":
        return _ufunc_name(form[1]) + ("" if form[2] == "__call__" else f".{form[2]}")
    if op == "UfuncAt":
        return f"{_ufunc_name(form[2])}.at"
    module = (call.function.__module__ or "numpy").replace("numpy", "np")
    return f"{module}.{call.function.__name__}"
