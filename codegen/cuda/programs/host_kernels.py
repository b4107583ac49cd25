"""Scalar ops of the host's numbers that round in fusec's own way: the CPU's code of their kernels.

NumPy's own functions have other last bits; and a condition that follows from such a number would
wait for the device in each iteration.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.codegen import backends
from fusec.codegen.machine_code.native_backend import NativeBackend
from fusec.codegen.machine_code.native_nest import NEST_SIGNATURE, CompileStats
from fusec.codegen.structured.statements import Let

from .device_numbers import WORD, host_number
from .number_kernels import number_kernel


class HostKernel:
    """``kernel(*numbers)``: the result of the op, from its operands in their order."""

    def __init__(self, x: Let) -> None:
        backend = backends.backend("cpu")
        assert isinstance(backend, NativeBackend)
        made = number_kernel("numbers", [x], {x.result}, None)
        (form,) = backend.specialise(made.kernel, [()] * (len(made.inputs) + 1))
        (code,) = backend.compile([form], CompileStats())
        self._block = backend.block(form, made.kernel.params)
        self._code, self._run = code, NEST_SIGNATURE(code.entry)
        self._inputs = [(x.args.index(r), r.dtype) for r in made.inputs]
        self._result = x.result.dtype

    def __call__(self, *numbers: Any) -> Any:
        words = self._block.words.copy()
        cells = np.zeros(WORD * (len(self._inputs) + 1), np.uint8)
        first = int(cells.ctypes.data)
        for n, (place, dtype) in enumerate(self._inputs):
            cells[WORD * n:WORD * n + dtype.itemsize].view(dtype)[0] = numbers[place]
        for slot, buffer, offset in self._block.pointers:
            words[slot] = first + WORD * buffer + int(offset)
        self._run(int(words.ctypes.data), 0, int(self._block.tasks))
        at = WORD * len(self._inputs)
        return host_number(cells[at:at + self._result.itemsize].view(self._result)[0],
                           self._result)
