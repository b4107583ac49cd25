"""Plans that run natively: guards, outputs, temporaries and kernel steps in one builtin call.

``NativePlan`` packs a ``PlanSpec`` (``launch_spec``) and makes ``plan.call``, a builtin
function of the call's positional arguments.  It returns the results, or ``MISS`` (an argument does
not fit: nothing happened), ``BUSY`` (another thread is inside this plan: make a second one from the
same kernels with its own argument words) or ``FAILED`` (a kernel left a non-zero code in
``plan.status``; arguments it mutated stay mutated).
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.core import locks, occupancy
from fusec.runtime.native import NativeUnavailableError, launcher, numpy_api, records

from .. import memory
from . import threads
from .launch_spec import PlanSpec
from .outcomes import BUSY, FAILED, MISS
from .packing import Packer, pack_plan, scalar_size

# ---- the launcher ----------------------------------------------------------------------------


class _MethodDef(ctypes.Structure):
    """Python's ``PyMethodDef``."""

    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p),
                ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


_METH_FASTCALL = 0x80


class _Launcher:
    """The compiled launcher and the maker of its builtins; lives until the process ends."""

    def __init__(self) -> None:
        memory.symbol_addresses()
        threads.pool_address()
        _check_scalars()
        code = launcher.code()
        pointer = ctypes.c_void_p
        setup = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, pointer, pointer)(
            code.address("fusec_launcher_setup"))
        setup(id(MISS), id(BUSY), id(FAILED), id(True), id(threads.ensure_workers))
        occupancy.mark_natively(code.address("fusec_take"), code.address("fusec_leave"))
        self.definition = _MethodDef(b"fusec_plan", code.address("fusec_launch"), _METH_FASTCALL,
                                     b"Run a compiled plan on its positional arguments.")
        for immortal in (self.definition, MISS, BUSY, FAILED, threads.ensure_workers):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(immortal))
        self._capsule = numpy_api.python_function(
            "PyCapsule_New", ctypes.py_object, pointer, pointer, pointer)
        self._builtin = numpy_api.python_function(
            "PyCFunction_NewEx", ctypes.py_object, pointer, ctypes.py_object, ctypes.py_object)

    def builtin(self, plan_address: int, owner: object) -> Callable[..., Any]:
        """A builtin that runs a plan.  It holds ``owner`` (as its ``__module__``, which may be any
        object), so the tables live as long as the function does.
        """
        capsule = self._capsule(plan_address, None, None)
        return self._builtin(ctypes.addressof(self.definition), capsule, owner)


def _check_scalars() -> None:
    """Every scalar object must hold its value right after the object header."""
    kinds = [np.dtype(code).type for code in "?bhilqBHILQefdFD"]
    samples = [1.5, 2.5 - 1j, *(kind(1) for kind in kinds)]
    for sample in samples:
        size = scalar_size(type(sample))
        value_bytes = ctypes.string_at(id(sample) + object.__basicsize__, size)
        if value_bytes != np.asarray(sample).tobytes():
            raise NativeUnavailableError(
                f"{type(sample).__name__} objects of NumPy {np.__version__} keep their value in "
                "another place than fusec knows")


_making = locks.Lock()
_launcher: _Launcher | None = None
_tables: weakref.WeakValueDictionary[int, Any] = (
    weakref.WeakValueDictionary())  # the words of every plan, an array
_status: memory.Status | None = None


def _start() -> _Launcher | None:
    """The native launcher, or None (``launcher_status`` says why)."""
    global _launcher, _status
    if _status is None:
        with _making:
            if _status is None:
                _launcher, _status = _make()
    return _launcher


def _make() -> tuple[_Launcher | None, memory.Status]:
    try:
        return _Launcher(), memory.Status(True, "calls are checked and launched natively")
    except NativeUnavailableError as error:
        return None, memory.Status(False, f"the native launcher is not in use: {error}")


def launcher_status() -> memory.Status:
    """Whether plans can be launched natively in this process, and if not, why."""
    _start()
    assert _status is not None
    return _status


class NativePlan:
    """A packed plan.  ``call`` runs it; ``status`` is the code a kernel left when it FAILED."""

    def __init__(self, spec: PlanSpec):
        """Pack ``spec``; raises ``NativeUnavailableError`` when the launcher is not available."""
        native = _start()
        if native is None:
            raise NativeUnavailableError(launcher_status().reason)
        packer = Packer()
        self.spec = spec
        self._words = pack_plan(packer, spec)
        address = ctypes.addressof(self._words)
        self._status_at = address + 8 * records.PLAN.index("status")
        for slot in spec.status_slots:
            ctypes.c_int64.from_address(slot).value = self._status_at
        self.call: Callable[..., Any] = native.builtin(
            address, (self._words, spec, *packer.kept))
        _tables[address] = self._words

    @property
    def status(self) -> int:
        """The status word: 0 after a good run."""
        return ctypes.c_int64.from_address(self._status_at).value


def call_of(
    table: np.ndarray, address: int, at: int, status_slots: Sequence[int], owner: object
) -> Callable[..., Any]:
    """The builtin of a plan whose words, which begin ``at`` a word of the table, lie in it with all
    that they name; the launcher must be there."""
    native = _start()
    assert native is not None
    address += 8 * at
    for slot in status_slots:
        table[slot] = address + 8 * records.PLAN.index("status")
    _tables[address] = words = table[at: at + len(records.PLAN)]
    return native.builtin(address, (words, owner))


def _after_fork() -> None:
    """No thread that was inside of a plan exists in a forked child."""
    for words in list(_tables.values()):
        words[records.PLAN.index("busy")] = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
