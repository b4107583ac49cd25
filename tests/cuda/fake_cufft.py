"""The part of cuFFT that the GPU's driver calls, on the emulated device's streams."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fake_streams import Streams

_KINDS = {0x29: ("c8", "c8"), 0x69: ("c16", "c16"), 0x2A: ("f4", "c8"), 0x6A: ("f8", "c16")}
_WORK = 1024
INVALID, NOT_SUPPORTED = 4, 16


class FakeCufft:
    """Functions of cuFFT by their names; ``wrong``: transforms have other numbers; ``status`` is
    the answer of transforms, ``spoils``: they are refused in graphs."""

    def __init__(self, streams: Streams, calls: list[str]) -> None:
        self.streams, self.calls = streams, calls
        self.plans: dict[int, dict[str, Any]] = {}
        self.wrong, self.status, self.spoils = False, 0, False

    def cufftCreate(self, handle: int) -> int:
        number = len(self.plans) + 1
        ctypes.c_int.from_address(handle).value = number
        self.plans[number] = {}
        return 0

    def cufftSetAutoAllocation(self, plan: int, has_own: int) -> int:
        assert not self.plans[plan] and has_own == 0
        return 0

    def cufftMakePlanMany64(
        self, plan: int, rank: int, sizes: int, inside: None, step: int, apart: int,
        result_inside: None, result_step: int, result_apart: int, kind: int, batch: int, work: int,
    ) -> int:
        assert not self.plans[plan] and rank == step == result_step == 1
        assert inside is result_inside is None
        length = ctypes.c_longlong.from_address(sizes).value
        is_real = _KINDS[kind][0][0] == "f"
        assert (apart, result_apart) == (length, length // 2 + 1 if is_real else length)
        ctypes.c_size_t.from_address(work).value = _WORK
        self.calls.append("cufft plan")
        self.plans[plan] = {"kind": _KINDS[kind], "length": length, "batch": batch, "room": 0}
        return 0

    def cufftSetStream(self, plan: int, stream: int) -> int:
        self.plans[plan]["stream"] = stream
        return 0

    def cufftSetWorkArea(self, plan: int, room: int) -> int:
        assert room % 256 == 0
        self.streams.driver._check(room, _WORK)
        self.plans[plan]["room"] = room
        return 0

    def cufftExecC2C(self, plan: int, source: int, target: int, way: int) -> int:
        return self._done("C2C", plan, source, target, way)

    def cufftExecZ2Z(self, plan: int, source: int, target: int, way: int) -> int:
        return self._done("Z2Z", plan, source, target, way)

    def cufftExecR2C(self, plan: int, source: int, target: int) -> int:
        return self._done("R2C", plan, source, target, 0)

    def cufftExecD2Z(self, plan: int, source: int, target: int) -> int:
        return self._done("D2Z", plan, source, target, 0)

    def _done(self, name: str, number: int, source: int, target: int, way: int) -> int:
        plan = self.plans[number]
        of, results = map(np.dtype, plan["kind"])
        assert {"C2C": "c8", "Z2Z": "c16", "R2C": "f4", "D2Z": "f8"}[name] == of.str[1:]
        assert source != target and plan["room"], "without memory to work in it allocates"
        self.calls.append(f"cufft{name}")
        stream = self.streams.of(plan["stream"])
        if self.status or (self.spoils and stream.is_capturing()):
            return self.status or NOT_SUPPORTED
        length, batch = plan["length"], plan["batch"]
        many = length // 2 + 1 if of.kind == "f" else length

        def transform() -> None:
            x = self._at(source, batch, length, of)
            y = np.fft.rfft(x) if of.kind == "f" else (
                np.fft.fft(x) if way < 0 else np.fft.ifft(x, norm="forward"))
            self._at(target, batch, many, results)[...] = y + self.wrong

        stream.does(transform)
        return 0

    def _at(self, address: int, batch: int, length: int, dtype: np.dtype) -> np.ndarray:
        nbytes = batch * length * dtype.itemsize
        self.streams.driver._check(address, nbytes)
        memory = (ctypes.c_uint8 * nbytes).from_address(address)
        return np.frombuffer(memory, dtype).reshape(batch, length)
