"""Calls of libraries: those that take stacks, and those that take an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusec.ir import TensorType, Value

from .. import registry
from ..calls.library import LIBRARY
from .products import lane_results
from .protocol import Alone, AloneError, LaneSite, NoLanes, declare

Form = Any


def _operand(number: int) -> Form:
    return ("operand", number)


def _is_plain(form: Form) -> bool:
    """Whether it is data that the trace knows."""
    return type(form) is not tuple or (
        form[0] in ("tuple", "list") and all(map(_is_plain, form[1:])))


class CallForm:
    """The arguments of a call by the names of parameters, as forms."""

    def __init__(self, site: LaneSite, names: str) -> None:
        form, named = site.attrs["form"], site.attrs["named"]
        self.names = names.split()
        if len(form) - 1 > len(self.names):
            raise AloneError("arguments that the rule does not know")
        self.given = dict(zip(self.names, form[1:], strict=False))
        self.given |= {pair[1]: pair[2] for pair in named[1:]}

    def axis(self, name: str = "axis", default: int | None = -1) -> int | None:
        """The axis that is given; raises where data decides it."""
        axis = self.given.get(name, default)
        if axis is not None and not isinstance(axis, int):
            raise AloneError("an axis that is no number")
        return axis

    def emitted(self, site: LaneSite, operands: Sequence[Value], **changed: Form) -> list[Value]:
        """The call of these operands, arguments replaced."""
        given = {**self.given, **changed}
        first, *rest = given.items()
        pairs = tuple(("tuple", name, form) for name, form in rest)
        return site.again(*operands, form=("tuple", first[1]), named=("tuple", *pairs),
                          results=lane_results(site))


def _only_first(site: LaneSite) -> None:
    """Raise unless all operands but the first are the same in each lane."""
    if any(site.has_lanes[1:]) or not site.has_lanes[0]:
        raise AloneError("an argument beside the array differs from lane to lane")


def stacks(site: LaneSite) -> list[Value]:
    """A function of the last axes, of one array: it does stacks by itself."""
    if len(site.given) != 1:
        raise AloneError("more than one array")
    return site.again(*site.given, results=lane_results(site))


def solve(site: LaneSite) -> list[Value]:
    """A right-hand side that is a vector becomes a matrix of one column."""
    form = site.attrs["form"]
    if form != ("tuple", _operand(0), _operand(1)) or len(site.attrs["named"]) > 1:
        raise AloneError("arguments that the rule does not know")
    a, b = site.given
    if site.node.inputs[0].type.rank != 2 or site.node.inputs[1].type.rank > 2:
        raise AloneError("a stack of matrices in each lane")
    is_vector = site.node.inputs[1].type.rank == 1
    if site.has_lanes == (False, True):
        return [_one_matrix(site, a, b, is_vector)]
    b = site.whole(1)
    if not is_vector:
        return site.again(a, b, results=lane_results(site))
    b = site.emit("ExpandDims", b, axes=(2,))
    (own,) = site.attrs["results"]
    found = site.again(a, b, results=(TensorType(own.dtype, b.shape),))
    return [site.emit("Squeeze", found[0], axes=(2,))]


def _one_matrix(site: LaneSite, a: Value, b: Value, is_vector: bool) -> Value:
    """One matrix in all lanes: factored once, for the right-hand sides of all as columns."""
    (own,) = site.attrs["results"]
    lanes, shape = site.lanes, b.shape
    if is_vector:
        flat = site.emit("Transpose", b, perm=(1, 0))
    else:
        turned = site.emit("Transpose", b, perm=(1, 0, 2))
        flat = site.emit("Reshape", turned, shape=(shape[1], lanes * shape[2]))
    (found,) = site.again(a, flat, results=(TensorType(own.dtype, flat.shape),))
    if is_vector:
        return site.emit("Transpose", found, perm=(1, 0))
    found = site.emit("Reshape", found, shape=(shape[1], lanes, shape[2]))
    return site.emit("Transpose", found, perm=(1, 0, 2))


def along(names: str, default: int | None = -1) -> Callable[[LaneSite], list[Value]]:
    """A function of one array along an axis; ``names`` are those of its parameters, and None for
    the axis is all elements in a row."""
    def rule(site: LaneSite) -> list[Value]:
        _only_first(site)
        call = CallForm(site, names)
        first = call.names[0]
        if call.given[first] != _operand(0):
            raise AloneError("an array that is a list")
        axis, value = call.axis(default=default), site.given[0]
        if axis is None:
            value = site.emit("Reshape", value, shape=(site.lanes, site.node.inputs[0].type.size))
            axis = 1
        elif axis >= 0:
            axis += 1
        return call.emitted(site, [value, *site.given[1:]], axis=axis)

    return rule


def over_axes(names: str, default: tuple[int, ...] | None) -> Callable[[LaneSite], list[Value]]:
    """A Fourier transform over several axes."""
    def rule(site: LaneSite) -> list[Value]:
        _only_first(site)
        call = CallForm(site, names)
        if not all(_is_plain(form) for name, form in call.given.items() if name != "a"):
            raise AloneError("data decides the axes")
        axes = call.given.get("axes", None if default is None else ("tuple", *default))
        sizes, rank = call.given.get("s"), site.node.inputs[0].type.rank
        if axes is None:
            count = rank if sizes is None else len(sizes) - 1
            axes = ("tuple", *range(-count, 0))
        moved = ("tuple", *(a + 1 if a >= 0 else a for a in axes[1:]))
        return call.emitted(site, site.given, axes=moved)

    return rule


def of_points(names: str) -> Callable[[LaneSite], list[Value]]:
    """A look-up of each element of one argument in tables that are the same in each lane."""
    point = names.split()[0]

    def rule(site: LaneSite) -> list[Value]:
        call = CallForm(site, names.replace("*", ""))
        number = call.given[point.strip("*")]
        if type(number) is not tuple or number[0] != "operand" or any(
                has for k, has in enumerate(site.has_lanes) if k != number[1]):
            raise AloneError("its table differs from lane to lane")
        return site.again(*site.given, results=lane_results(site))

    return rule


def _searchsorted(site: LaneSite) -> list[Value]:
    if site.attrs["form"][:3] != ("tuple", _operand(0), _operand(1)) or site.has_lanes[0] or any(
            site.has_lanes[2:]):
        raise AloneError("its table differs from lane to lane")
    return site.again(*site.given, results=lane_results(site))


_ENTRIES = "the library has no call for a stack of these: a call for each lane"
_SIZES = "a lane's data decide the size of the result"

declare(stacks, "LinalgInv", "LinalgDet", "LinalgSlogdet", "LinalgCholesky", "LinalgQr",
        "LinalgSvd", "LinalgEigh", "LinalgEigvalsh", "LinalgSvdvals", "LinalgPinv", "Cofactors")
declare(solve, "LinalgSolve")
declare(along("a axis kind order"), "Sort", "Argsort")
declare(along("a kth axis kind order"), "Partition", "Argpartition")
declare(along("a axis dtype out", None), "Cumsum", "Cumprod", "Nancumsum", "Nancumprod")
declare(along("a n axis norm out"), "FftFft", "FftIfft", "FftRfft", "FftIrfft", "FftHfft",
        "FftIhfft")
declare(over_axes("a s axes norm out", (-2, -1)), "FftFft2", "FftIfft2", "FftRfft2", "FftIrfft2")
declare(over_axes("a s axes norm out", None), "FftFftn", "FftIfftn", "FftRfftn", "FftIrfftn")
declare(of_points("x bins right"), "Digitize")
declare(of_points("x xp fp left right period"), "Interp")
declare(of_points("element test_elements assume_unique invert kind"), "Isin")
declare(_searchsorted, "Searchsorted")


def _rest() -> None:
    for name, call in LIBRARY.items():
        if registry.get(name).batching is None:
            declare(Alone(_SIZES if call.sized else _ENTRIES), name)


_rest()
_ELSEWHERE = "it draws random numbers, prints, or calls another object outside of the graph"
declare(NoLanes(_ELSEWHERE, "draw with fusec.random, a key a lane (fusec.random.split); or draw "
                "and print outside, and pass what was drawn"), "HostCall")
