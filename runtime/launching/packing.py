"""Packing of a ``PlanSpec`` into the tables of words that the native launcher reads."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.ir.regions import byte_extent
from fusec.runtime.native import records

from .launch_spec import (
    AddressArg,
    Arg,
    ArgOut,
    ArrayArg,
    ArrayOut,
    BoolArg,
    Disjoint,
    IntArg,
    ObjectArg,
    ObjectOut,
    Out,
    PlanSpec,
    SameMemory,
    ScalarArg,
    ScalarOut,
    TypeArg,
    ViewOut,
    WordStore,
)

_ALIGNED, _WRITEABLE = 0x100, 0x400
_PYTHON_OUT = {float: records.OUT_FLOAT, int: records.OUT_INT, bool: records.OUT_BOOL,
               complex: records.OUT_COMPLEX}


_FIELDS = {name: frozenset(fields) for name, fields in records.RECORDS.items()}
_NOTHING = array("q", (0,))  # nobody reads or writes what a table of no records has


class Packer:
    """Turns records into tables of words and keeps the tables, and the objects they name, alive."""

    def __init__(self) -> None:
        self.kept: list[object] = []

    def words(self, values: Sequence[int]) -> int:
        """The address of a new table of 64-bit words; of one for all where there are none."""
        if not values:
            return _NOTHING.buffer_info()[0]
        table = array("q", values)
        self.kept.append(table)
        return table.buffer_info()[0]

    def object(self, value: object) -> int:
        self.kept.append(value)
        return id(value)

    def record(self, of: str, /, **values: int) -> list[int]:
        """The words of one record, zero where nothing is said."""
        known = _FIELDS[of]
        assert values.keys() <= known, f"internal error: {of} records have no {values.keys()-known}"
        return [values.get(name, 0) for name in records.RECORDS[of]]

    def table(self, records: Sequence[list[int]]) -> int:
        return self.words([word for record in records for word in record])

    def stores(self, stores: Sequence[WordStore]) -> dict[str, int]:
        """The two fields that describe a record's stores."""
        rows = [self.record("store", slot=s.slot, mode=s.mode, offset=s.offset) for s in stores]
        return {"nstores": len(rows), "stores": self.table(rows)}

    def layout(self, shape: Sequence[int], strides: Sequence[int | None]) -> dict[str, int]:
        steps = [records.ANY_STRIDE if step is None else step for step in strides]
        return {"ndim": len(shape), "dims": self.words(shape), "strides": self.words(steps)}


def scalar_size(kind: type) -> int:
    """Bytes of the value inside a scalar object; it follows the object's header."""
    if kind in (float, complex):
        return 8 if kind is float else 16
    if issubclass(kind, np.number | np.bool_):
        return np.dtype(kind).itemsize
    raise TypeError(f"internal error: {kind.__name__} objects are not raw scalars")


def _pack_arg(packer: Packer, arg: Arg) -> list[int]:
    """The record of one argument."""
    match arg:
        case ObjectArg(value):
            return packer.record("arg", kind=records.ARG_OBJECT, type=packer.object(value))
        case TypeArg(kind):
            return packer.record("arg", kind=records.ARG_RAW, type=packer.object(kind))
        case AddressArg(address):
            return packer.record("arg", kind=records.ARG_OBJECT, type=address)
        case IntArg(stores, low, high):
            return packer.record("arg", kind=records.ARG_INT, type=id(int), low=low, high=high,
                                 **packer.stores(stores))
        case BoolArg(stores):
            return packer.record("arg", kind=records.ARG_BOOL, type=id(bool), low=0, high=1,
                                 **packer.stores(stores))
        case ScalarArg(kind, stores):
            return packer.record("arg", kind=records.ARG_RAW, type=packer.object(kind),
                                 low=scalar_size(kind), high=object.__basicsize__,
                                 **packer.stores(stores))
        case ArrayArg():
            flags = _ALIGNED | (_WRITEABLE if arg.writeable else 0)
            mask = flags | (_WRITEABLE if arg.read_only else 0)
            return packer.record(
                "arg", kind=records.ARG_ARRAY, type=packer.object(arg.type), mask=mask,
                wanted=flags, descr=packer.object(arg.dtype),
                **packer.layout(arg.shape, arg.strides),
                **packer.stores(arg.stores))


def _pack_array_out(packer: Packer, out: ArrayOut) -> list[int]:
    if out.dtype.hasobject:
        raise TypeError("internal error: native outputs cannot hold Python objects")
    nbytes = out.nbytes
    if nbytes is None:
        nbytes = int(np.prod(out.shape, dtype=object)) * out.dtype.itemsize
    return packer.record(
        "out", kind=records.OUT_ARRAY, object=packer.object(out.dtype), nbytes=nbytes,
        **packer.layout(out.shape, out.strides), **packer.stores(out.stores))


def _pack_out(packer: Packer, out: Out) -> list[int]:
    """The record of one output."""
    match out:
        case ArrayOut():
            return _pack_array_out(packer, out)
        case ScalarOut(kind, storage) if isinstance(kind, np.dtype):
            return packer.record("out", kind=records.OUT_SCALAR, object=packer.object(kind),
                                 source=storage)
        case ScalarOut(kind, storage):
            return packer.record("out", kind=_PYTHON_OUT[kind], source=storage)  # type: ignore[index]
        case ArgOut(index):
            return packer.record("out", kind=records.OUT_ARGUMENT, source=index)
        case ObjectOut(value):
            return packer.record("out", kind=records.OUT_OBJECT, object=packer.object(value))
        case ViewOut():
            return packer.record(
                "out", kind=records.OUT_VIEW, object=packer.object(out.dtype), source=out.index,
                offset=out.offset, **packer.layout(out.shape, out.strides))


def _pack_relation(
    packer: Packer, args: Sequence[Arg], relation: Disjoint | SameMemory
) -> list[int]:
    first, second = args[relation.first], args[relation.second]
    assert isinstance(first, ArrayArg) and isinstance(second, ArrayArg), \
        "internal error: relations are between arrays"
    if isinstance(relation, SameMemory):
        return packer.record("relation", kind=records.RELATION_SAME, first=relation.first,
                             second=relation.second, low1=relation.offset)
    low1, high1, low2, high2 = relation.bounds or (
        *byte_extent(first.shape, first.strides, first.dtype.itemsize),
        *byte_extent(second.shape, second.strides, second.dtype.itemsize))
    return packer.record(
        "relation", kind=records.RELATION_DISJOINT, first=relation.first,
        second=relation.second, low1=low1, high1=high1, low2=low2, high2=high2)


def pack_plan(packer: Packer, spec: PlanSpec) -> Any:
    """The plan's own words, with every table behind them."""
    record = plan_record(packer, spec)
    return (ctypes.c_int64 * len(record))(*record)


def plan_record(packer: Packer, spec: PlanSpec) -> list[int]:
    """The plan's own words; the tables that they name are in the packer."""
    steps = [packer.record("step", function=s.function, arguments=s.arguments, ntasks=s.ntasks,
                           grain=s.grain, parallel=s.parallel) for s in spec.steps]
    temps = [packer.record("temp", nbytes=t.nbytes, **packer.stores(t.stores)) for t in spec.temps]
    flags = ((records.FLAG_RELEASE_GIL if spec.release_gil else 0)
             | (records.FLAG_TUPLE if spec.as_tuple else 0)
             | (records.FLAG_PARALLEL if any(s.parallel for s in spec.steps) else 0))
    words = [packer.record("word", address=packer.object(w.owner) + w.offset,
                           expected=packer.object(w.expected)) for w in spec.words]
    relations = [_pack_relation(packer, spec.args, relation) for relation in spec.relations]
    holds = [packer.record("hold", words=use.address, writes=writes) for use, writes in spec.holds]
    return packer.record(
        "plan", nargs=len(spec.args), flags=flags,
        args=packer.table([_pack_arg(packer, arg) for arg in spec.args]),
        nrelations=len(relations), relations=packer.table(relations),
        nouts=len(spec.outs), outs=packer.table([_pack_out(packer, out) for out in spec.outs]),
        ntemps=len(temps), temps=packer.table(temps), nsteps=len(steps), steps=packer.table(steps),
        nwords=len(words), words=packer.table(words), nholds=len(holds), holds=packer.table(holds),
        results=packer.words([0] * len(spec.outs)), scratch=packer.words([0] * len(temps)))
