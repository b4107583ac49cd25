"""A place in a program where kernels are launched, with arguments kept by address.

Loops come to the same addresses again and again (those of arrays that change places, of words that
are given back), so a launch is a look at a table and a call of the driver's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fusec.ir.sizes.bindings import Bindings

from ..compiled_nests import STATUS_BYTES, CudaForm, NestCall, stores
from ..joined_call import JoinedCall
from ..kernels.launch_plan import Layout, Slot
from .launch_queue import Launch

if TYPE_CHECKING:
    from .program_call import ProgramCall

_REMEMBERED = 32  # combinations of addresses
STATUS: Slot = ("status",)
Need = tuple[tuple[int, Slot], int]  # the nest's number and the slot, bytes


class LaunchSite:
    """``site(call, *addresses)`` asks for the kernels of nests, in order: ``addresses`` are where
    the buffers of the kernel are that the nests are of."""

    def __init__(self, nests: Sequence[NestCall], joined: JoinedCall | None = None) -> None:
        """``joined``: one launch in the place of those of nests."""
        self.nests, self.joined = nests, joined
        self.needs: list[Need] = [
            need for number, nest in enumerate(nests) for need in _needs(number, nest)]
        self._symbols = sorted({name for nest in nests for name in nest.symbols})
        self._known: dict[tuple[int, ...], list[Launch]] = {}
        self._open_needs: dict[tuple[int, ...], list[Need]] = {}  # by sizes of the run

    def __call__(self, call: ProgramCall, *addresses: int) -> None:
        sizes = tuple([call.sizes[name] for name in self._symbols])
        open_needs = self._needs_at(sizes, call.sizes) if sizes else []
        borrowed = (*call.borrowed(self), *call.borrowed_for(self, open_needs))
        where = (*addresses, *borrowed, *sizes)
        launches = self._known.get(where)
        if launches is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            keys = (key for key, _ in (*self.needs, *open_needs))
            lent = dict(zip(keys, borrowed, strict=True))
            launches = self._known[where] = [
                *(() if self.joined is None else self.joined.bound(addresses)),
                *(launch for number, nest in enumerate(self.nests)
                  for launch in _bound(number, nest, addresses, lent, call.sizes))]
        call.queue.add(launches)


    def _needs_at(self, key: tuple[int, ...], sizes: Bindings) -> list[Need]:
        """What nests of sizes that the run decides need at these."""
        found = self._open_needs.get(key)
        if found is None:
            if len(self._open_needs) >= _REMEMBERED:
                self._open_needs.clear()
            found = self._open_needs[key] = [
                need for number, nest in enumerate(self.nests) if nest.plans is None
                for need in _own_needs(number, nest, nest.at_sizes(sizes)[1])]
        return found


def _needs(number: int, nest: NestCall) -> Iterator[Need]:
    """Memory of a nest's own, beside its operands; of one of run-time sizes that of its checks."""
    if nest.has_checks:
        yield (number, STATUS), STATUS_BYTES
    yield from _own_needs(number, nest, nest.plans or ())


def _own_needs(
    number: int, nest: NestCall, plans: Sequence[tuple[Layout, Sequence[int | Slot]]]
) -> Iterator[Need]:
    layouts = [layout for layout, _ in plans]
    partials = max((layout.partials for layout in layouts), default=0)
    if partials:
        yield (number, ("partials",)), partials
    scratch = max((layout.scratch for layout in layouts), default=0)
    for row, dtype in enumerate(nest.form.loops.nest.scratch if scratch else ()):
        yield (number, ("scratch", row)), scratch * dtype.itemsize


def _bound(
    number: int, nest: NestCall, addresses: Sequence[int], lent: dict[tuple[int, Slot], int],
    sizes: Bindings,
) -> Iterator[Launch]:
    """The launches of a nest at these addresses."""
    form, plans = nest.at_sizes(sizes)
    if nest.plans is None and not stores(CudaForm(form, nest.form.kernel)):
        return
    where: dict[Slot, int] = {
        ("operand", n): addresses[operand.buffer] + operand.offset
        for n, operand in enumerate(form.operands)}
    where |= {slot: address for (of, slot), address in lent.items() if of == number}
    for one, (layout, args) in zip(nest.kernels, plans, strict=True):
        values = [where[arg] if isinstance(arg, tuple) else arg for arg in args]
        yield nest.driver.bound(one.loaded, one.kernel, (layout.blocks, 1, 1),
                                (*layout.threads, 1), layout.shared, values)
