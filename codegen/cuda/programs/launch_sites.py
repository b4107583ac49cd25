"""A place in a program where kernels are launched, with arguments kept by address.

Loops come to the same addresses again and again (those of arrays that change places, of words that
are given back), so a launch is a look at a table and a call of the driver's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fusec.ir.sizes.bindings import Bindings

from ..compiled_nests import STATUS_BYTES, NestCall
from ..joined_call import JoinedCall
from ..kernels.launch_plan import Slot
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

    def __call__(self, call: ProgramCall, *addresses: int) -> None:
        borrowed = call.borrowed(self)
        where = (*addresses, *borrowed, *[call.sizes[name] for name in self._symbols])
        launches = self._known.get(where)
        if launches is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            lent = dict(zip((key for key, _ in self.needs), borrowed, strict=True))
            launches = self._known[where] = [
                *(() if self.joined is None else self.joined.bound(addresses)),
                *(launch for number, nest in enumerate(self.nests)
                  for launch in _bound(number, nest, addresses, lent, call.sizes))]
        call.queue.add(launches)


def _needs(number: int, nest: NestCall) -> Iterator[Need]:
    """Memory of a nest's own, beside its operands; of one of run-time sizes there is none."""
    if nest.has_checks:
        yield (number, STATUS), STATUS_BYTES
    layouts = [layout for layout, _ in nest.plans or ()]
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
    where: dict[Slot, int] = {
        ("operand", n): addresses[operand.buffer] + operand.offset
        for n, operand in enumerate(form.operands)}
    where |= {slot: address for (of, slot), address in lent.items() if of == number}
    for one, (layout, args) in zip(nest.kernels, plans, strict=True):
        values = [where[arg] if isinstance(arg, tuple) else arg for arg in args]
        yield nest.driver.bound(one.loaded, one.kernel, (layout.blocks, 1, 1),
                                (*layout.threads, 1), layout.shared, values)
