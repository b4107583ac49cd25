"""The device scopes around a node, and the device that they ask for it.

A scope says the name of a device, whole or in part, or is a function that says one for each node.
Parts that an inner scope leaves out are the outer one's; `DeviceName.under` has the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

from fusec import config
from fusec.codegen import backends
from fusec.core import log
from fusec.core.records import dataclass
from fusec.errors import FusecError, PlacementWarning, user_error, users_own
from fusec.ir import Loc, Value
from fusec.ir.device_names import DeviceName
from fusec.runtime.devices.registry import devices, matching
from fusec.state.device_context import parts_of
from fusec.trace.values.trace import Trace, current, untraced

from .devices import DeviceInfo

ANYWHERE = DeviceName()
MOST_KEPT = 256  # scopes within scopes that were made
MOST_CPUS = config.SETTINGS["logical_cpu_devices"].high or 1
_dropped: set[str] = set()  # names that were warned of


class Operand(NamedTuple):
    """An operand of a node; sizes in ``shape`` may be symbols."""

    name: str
    dtype: Any
    shape: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class NodeToPlace:
    """The argument of a device function: a node that is about to be made, or a new Variable, whose
    ``op`` is ``"Variable"``.  ``loc`` is the user's line."""

    op: str
    name: str
    inputs: tuple[Operand, ...]
    loc: Loc | None


@dataclass(frozen=True, slots=True)
class DeviceFunction:
    """A function that says the device of each node, or None of those that it says nothing of."""

    fn: Callable[[NodeToPlace], Any]

    def name_for(
        self, node: NodeToPlace, around: DeviceName, beside: Together | None
    ) -> DeviceName:
        """The name that it gives; an exception in it is the user's own, with the node and line."""
        try:
            with _outside_of_the_trace(current()):
                answer = self.fn(node)
        except FusecError:
            raise
        except Exception as error:
            raise users_own(_failed(self, node, error)) from error
        if answer is None:
            return ANYWHERE
        try:
            return agreed(checked_name(name_of(answer), around, lambda: node.loc), beside,
                          lambda: node.loc)
        except FusecError as error:
            raise _refused(self, node, error) from None

    def __str__(self) -> str:
        return f"function {getattr(self.fn, '__qualname__', type(self.fn).__name__)}"


class Together(NamedTuple):
    """On the device of the node ``anchor``, which is one that ``device`` stands for; without an
    anchor on ``device``, which is whole then.  ``title`` is its name in messages."""

    device: DeviceName
    anchor: str
    title: str

    def constraint(self, device: DeviceName) -> str:
        """That of a node beside it, of which ``device`` is said as well."""
        is_all = not self.anchor or (device == self.device and device.is_whole)
        return str(device) if is_all else f"{device}@{self.anchor}"

    def __str__(self) -> str:
        return f"with {self.title}"


Item = DeviceName | DeviceFunction | Together


@dataclass(frozen=True)
class DeviceScope:
    """The scopes around a node, outermost first; equal where they say the same.

    ``sends``: the format in which values made inside go to other devices, "" as they are.
    """

    items: tuple[Item, ...]
    sends: str = ""

    @property
    def name(self) -> DeviceName | None:
        """The name that it says for every node; None where that depends on the node."""
        if not self.items:
            return ANYWHERE
        first = self.items[0]
        return first if len(self.items) == 1 and isinstance(first, DeviceName) else None

    @property
    def beside(self) -> Together | None:
        """The anchor that all nodes are to be together with."""
        first = self.items[0] if self.items else None
        return first if isinstance(first, Together) else None

    def device_of(self, op: str, name: str, inputs: Sequence[Value], loc: Loc | None) -> str:
        """The constraint of a new node: the name of a device and, after ``@``, of the node that it
        is together with; empty where it may be anywhere.  After ``~``: the format of sends."""
        return self._place_of(op, name, inputs, loc) + (self.sends and f"~{self.sends}")

    def _place_of(self, op: str, name: str, inputs: Sequence[Value], loc: Loc | None) -> str:
        constant = self.name
        if constant is not None:
            return str(constant)
        node = NodeToPlace(
            op, name, tuple(Operand(v.name, v.dtype, v.shape) for v in inputs), loc)
        beside, found = self.beside, ANYWHERE
        for item in self.items:
            if isinstance(item, Together):
                found = item.device
            else:
                said = item if isinstance(item, DeviceName) else item.name_for(node, found, beside)
                found = said.under(found)
        return str(found) if beside is None else beside.constraint(found)

    def check_assigned(self, title: str, device: str, loc: Loc | None) -> None:
        """Raise where a Variable on that device would be assigned on another."""
        name = DeviceName.parse(parts_of(self._place_of("Assign", title, (), loc))[0])
        if not name.admits(DeviceName.parse(device)) and not config.soft_placement:
            raise user_error(
                ValueError, f"{title} is assigned on another device than it lives on", loc,
                "assign it outside of the scope, or in `with fusec.colocate_with(v)`, or set "
                "fusec.config.soft_placement = True",
                values=[("lives on", device), ("scope", name), ("candidates", device)])

    def __str__(self) -> str:
        sends = [f"sends {self.sends}"] if self.sends else []
        return " > ".join([*map(str, self.items), *sends])


@lru_cache(MOST_KEPT)
def inside(
    scope: DeviceScope | None, item: Item, sends: str | None = None
) -> DeviceScope | None:
    """The scope ``item`` within ``scope``, where None is no scope; ``sends`` of None is as there.
    """
    outer = scope or _NOWHERE
    made = DeviceScope(_within(outer, item), outer.sends if sends is None else sends)
    return None if made == _NOWHERE else made


def _within(outer: DeviceScope, item: Item) -> tuple[Item, ...]:
    if isinstance(item, Together):
        return (item,)
    if item == ANYWHERE:
        return outer.items
    if isinstance(item, DeviceName):
        if outer.name is not None:
            return (item.under(outer.name),)
        if item.is_whole and outer.beside is None:
            return (item,)
    return (*outer.items, item)


_NOWHERE = DeviceScope(())


def item_of(spec: Any, loc: Loc | None = None) -> Item:
    """A name of a device, or a function; raises ``ValueError`` for texts that are no name,
    ``TypeError`` for other objects."""
    if not callable(spec):
        return name_of(spec, loc)
    try:
        hash(spec)
    except TypeError:
        raise user_error(
            TypeError, f"the device function is a {type(spec).__name__}, which cannot be hashed",
            loc, cure="give a plain function: traces are kept for each") from None
    return DeviceFunction(spec)


def name_of(spec: Any, loc: Loc | None = None) -> DeviceName:
    """The name of a device as text, or that of one of `fusec.devices`."""
    if isinstance(spec, DeviceInfo):
        spec = spec.name
    if isinstance(spec, DeviceName):
        return spec
    if not isinstance(spec, str):
        kind = type(spec)
        is_traced = kind.__module__.startswith("fusec.trace.")
        raise user_error(
            TypeError, "a device is given by its name or by a function of nodes", loc,
            'fusec.device("/device:CPU:0")', values=[
                ("given", "a value of the run" if is_traced else f"{kind.__name__} {spec!r}")])
    try:
        return DeviceName.parse(spec)
    except ValueError as error:
        title, _, cure = str(error).partition(": ")
        raise user_error(ValueError, title, loc, cure) from None


# ------------------------------------------------------------------------- names that no device has


def checked_name(
    name: DeviceName, around: DeviceName, where: Callable[[], Loc | None]
) -> DeviceName:
    """The name, if it is one of a device, in a scope that says ``around``.

    Otherwise ``ValueError``, or under `config.soft_placement` a warning and no name.
    """
    if matching(name.under(around)):
        return name
    if config.soft_placement:
        return _dropped_name(name, "which no device has", where())
    raise _unknown(name, around, where())


def agreed(
    name: DeviceName, beside: Together | None, where: Callable[[], Loc | None]
) -> DeviceName:
    """The name, if it can be that of the device of the node's anchor; as `checked_name`."""
    if beside is None or name.admits(beside.device.under(name)):
        return name
    if config.soft_placement:
        return _dropped_name(name, f"where nodes are together with {beside.title}", where())
    raise user_error(
        ValueError, f"this scope contradicts fusec.colocate_with({beside.title}) around it",
        where(), "leave out one of the two, or put colocate_with inside",
        values=[("said", name), (beside.title, beside.device)])


def _dropped_name(name: DeviceName, why: str, loc: Loc | None) -> DeviceName:
    text = f"the device {name}, {why}, is left out (config.soft_placement)"
    if text not in _dropped:
        _dropped.add(text)
        log.warn(text, PlacementWarning, loc.file if loc else "<unknown>", loc.line if loc else 1)
    return ANYWHERE


def _unknown(name: DeviceName, around: DeviceName, loc: Loc | None) -> FusecError:
    given = [("given", name)] if around == ANYWHERE else [("given", name), ("inside", around)]
    found = name.under(around)
    kind = backends.kind_of(found.type)
    notes = [] if kind is None else [kind.missing()]
    return user_error(ValueError, f"there is no device {found}", loc, _cure(found), values=[
        *given, ("devices", ", ".join(str(device.name) for device in devices()))],
        notes=filter(None, notes))


def _cure(name: DeviceName) -> str:
    if name.type == "CPU" and name.admits(DeviceName(type="CPU", index=name.index).whole()) and (
            name.index is not None and name.index < MOST_CPUS):
        return f"fusec.config.logical_cpu_devices = {name.index + 1}"
    return "name one of the devices, or set fusec.config.soft_placement to go on without"


# --------------------------------------------------------------------------------- device functions


@contextmanager
def _outside_of_the_trace(trace: Trace | None) -> Iterator[None]:
    """Calls inside run as Python runs them, of compiled functions too.

    A function that is defined in the program is traced with it all the same: nodes that it makes
    are asked of nobody, and its lines are no other node's.
    """
    if trace is None:
        yield
        return
    hooks, scope = trace.hooks, trace.builder.devices
    where = None if hooks is None else hooks.where
    trace.builder.devices = None
    try:
        with untraced():
            yield
    finally:
        trace.builder.devices = scope
        if hooks is not None and where is not None:
            hooks.where = where


def _failed(function: DeviceFunction, node: NodeToPlace, error: Exception) -> FusecError:
    message = f"the device {function} failed for {node.op} {node.name}"
    raised = ("raised", f"{type(error).__name__}: {error}")
    try:
        return user_error(type(error), message, node.loc, values=[raised])
    except TypeError:  # a class whose exceptions need more than a message
        return user_error(RuntimeError, message, node.loc, values=[raised])


def _refused(function: DeviceFunction, node: NodeToPlace, error: FusecError) -> FusecError:
    """The error for a function's answer, with the node that it was given."""
    said = error.diagnostic
    return type(error)(said.title, loc=node.loc, cure=said.cure, values=[
        *said.values, ("for", f"{node.op} {node.name}"), ("said by", f"the device {function}")])
