"""Functions of a library for C, called with NumPy's arrays.

This file is a part of the packages that `fusec.wheel_stub` makes: it needs NumPy and nothing else.
"""

from __future__ import annotations

import builtins
import ctypes
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # DLPack's, of kinds of numbers


class _StubTensor(ctypes.Structure):
    """``DLTensor`` of DLPack 1.0."""

    _fields_ = (("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("number", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64))


class _StubFailure(ctypes.Structure):
    _fields_ = (("text", ctypes.c_char_p), ("file", ctypes.c_char_p), ("line", ctypes.c_int32),
                ("index", ctypes.c_int64), ("size", ctypes.c_int64))


def _empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array whose address is outside of all others', also where it has no elements."""
    return np.empty(shape, dtype) if 0 not in shape else np.empty(1, dtype)[:0].reshape(shape)


def _aligned_bytes(count: int) -> np.ndarray:
    memory = np.empty(count + 64, np.uint8)
    skip = -memory.ctypes.data % 64
    return memory[skip: skip + count]


class StubState:
    """State that calls keep: an array for each field, of the values at the time of the export.

    The arrays lie in the state's memory, so setting a field writes there."""

    _library: StubLibrary
    _memory: np.ndarray
    _fields: dict[str, np.ndarray]

    def __init__(self, library: StubLibrary) -> None:
        description = library.description
        memory, fields = _aligned_bytes(description["state_bytes"]), dict[str, np.ndarray]()
        for field in description["fields"]:
            dtype, shape = np.dtype(field["dtype"]), tuple(field["shape"])
            count = int(np.prod(shape, dtype=np.int64))
            part = memory[field["offset"]: field["offset"] + count * dtype.itemsize]
            fields[field["name"]] = part.view(dtype).reshape(shape)
        vars(self).update(_library=library, _memory=memory, _fields=fields)
        self.reset()

    def __getattr__(self, name: str) -> np.ndarray:
        fields: dict[str, np.ndarray] = vars(self).get("_fields", {})  # none while it is made
        if name not in fields:
            raise AttributeError(f"the state has no field {name!r}, but {', '.join(fields)}")
        return fields[name]

    def __setattr__(self, name: str, value: Any) -> None:
        field = self.__getattr__(name)
        if isinstance(value, np.ndarray) and value.dtype != field.dtype:
            raise TypeError(f"{name} must have the dtype {field.dtype}, not {value.dtype}")
        if np.shape(value) != field.shape:
            raise ValueError(f"{name} must have the shape {field.shape}, not {np.shape(value)}")
        field[...] = _converted(value, name, field.dtype)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name} cannot be deleted: the state has the fields of a struct")

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self._fields]

    def __reduce__(self) -> Any:
        return type(self), (), {name: field.copy() for name, field in self._fields.items()}

    def __setstate__(self, values: dict[str, np.ndarray]) -> None:
        if values.keys() != self._fields.keys():
            raise ValueError(f"the fields were {', '.join(values)}, and those of this package are "
                             + ", ".join(self._fields))
        for name, value in values.items():
            setattr(self, name, value)

    @property
    def address(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._memory.ctypes.data)

    def reset(self) -> None:
        """Set all fields to their first values."""
        self._library.handle[f"{self._library.description['name']}_reset"](self.address)


class StubLibrary:
    """The library in a folder, with ``description.json`` beside it."""

    def __init__(self, folder: Path) -> None:
        self.description = json.loads((folder / "description.json").read_text())
        self.handle = ctypes.CDLL(str(folder / f"lib{self.description['name']}.so"))
        self.functions = {f["name"]: StubFunction(self, f) for f in self.description["functions"]}


class StubFunction:
    """One function; raises what the Python program raises, ValueError for arrays that do not fit,
    TypeError for other dtypes."""

    def __init__(self, library: StubLibrary, description: dict[str, Any]) -> None:
        self.library, self.name = library, description["name"]
        self.arguments, self.results = description["arguments"], description["results"]
        self.axes, self.has_state = description["axes"], description["has_state"]
        self.gives = description["gives"]
        self.dtypes = [np.dtype(p["dtype"]) for p in self.arguments]
        handle = library.handle
        self._call, self._sizes = handle[f"{self.name}_dlpack"], handle[f"{self.name}_sizes"]
        self._ranks = [r["rank"] for r in self.results]
        self._shapes = handle[f"{self.name}_shapes"] if any(self._ranks) else None

    def __call__(self, *given: Any, state: StubState | None = None) -> Any:
        if len(given) != len(self.arguments):
            raise TypeError(f"{self.name} takes {len(self.arguments)} arguments, "
                            f"not {len(given)}")
        arrays = [*map(self._checked, given, self.arguments, self.dtypes)]
        sizes = [ctypes.c_int64(arrays[k].shape[axis]) for k, axis in self.axes]
        results, workspace = self._memory(sizes)
        passed: list[Any] = []
        kept = []  # what tensors point to, until the call has returned
        for x, parameter in zip((*arrays, *results), (*self.arguments, *self.results), strict=True):
            if parameter["is_array"]:
                kept.append(_tensor(x))
                passed.append(ctypes.byref(kept[-1][0]))
            else:
                passed += _number(x)
        if self.has_state:
            if not isinstance(state, StubState):
                raise TypeError(f"state must be a State() of this package, not {state!r}")
            passed.append(state.address)
        memory = ctypes.c_void_p(_address(workspace))
        code = self._call(*passed, memory, ctypes.c_size_t(workspace.nbytes))
        if code:
            raise self._error(code, memory)
        return self._given(arrays, results)

    @staticmethod
    def _checked(given: Any, parameter: dict[str, Any], dtype: Any) -> np.ndarray:
        name = parameter["name"]
        if not parameter["is_array"]:
            if np.ndim(given):
                raise TypeError(f"{name} must be a number, a {dtype}, not {given!r}")
            return _converted(given, name, dtype)
        array = np.asarray(given)
        if array.dtype != dtype:
            raise TypeError(f"{name} must have the dtype {dtype}, not {array.dtype}")
        if array.ndim != parameter["rank"]:
            raise ValueError(f"{name} must have {parameter['rank']} axes, not {array.ndim}")
        flags = array.flags
        if parameter["is_written"]:
            if array is given and not flags.writeable:
                raise ValueError(f"{name} is written: it must not be read-only")
            if array is not given or not (flags.c_contiguous and flags.aligned):
                raise ValueError(f"{name} is written: it must be an array in C order without gaps")
            return array
        return array if flags.c_contiguous and flags.aligned else np.array(array, order="C")

    def _memory(self, sizes: list[ctypes.c_int64]) -> tuple[list[np.ndarray], np.ndarray]:
        ranks = self._ranks
        nbytes, workspace = (ctypes.c_size_t * max(len(ranks), 1))(), ctypes.c_size_t()
        code = self._sizes(*sizes, *([nbytes] if ranks else []), ctypes.byref(workspace))
        if code:
            raise self._error(code, None)
        numbers = (ctypes.c_int64 * max(sum(ranks), 1))()
        if self._shapes is not None:
            self._shapes(*sizes, numbers)
        rest = iter(numbers)
        shapes = [tuple(itertools.islice(rest, rank)) for rank in ranks]
        results = [_empty(s, r["dtype"]) for s, r in zip(shapes, self.results, strict=True)]
        return results, np.empty(max(workspace.value, 1), np.uint8)

    def _given(self, arguments: list[np.ndarray], results: list[np.ndarray]) -> Any:
        """What the Python function gives: arrays of their own, several as a tuple."""
        shown: list[Any] = []
        for given in self.gives:
            if "result" in given:
                shown.append(self._cut(results, given["result"]))
            elif "argument" in given:
                array = arguments[given["argument"]]
                shown.append(array.copy() if array.ndim else array[()])
            else:
                shown.append(given["value"])
        return shown[0] if len(shown) == 1 else tuple(shown)

    def _cut(self, results: list[np.ndarray], number: int) -> Any:
        """A result without what lies beyond the size that the data decided."""
        array, key = results[number], [slice(None)] * results[number].ndim
        for axis, count in self.results[number]["counts"]:
            key[axis] = slice(int(results[count][()]))
        return array[tuple(key)] if array.ndim else array[()]

    def _error(self, code: int, workspace: Any) -> Exception:
        failure = _StubFailure()
        self.library.handle[f"{self.name}_error"](code, workspace, ctypes.byref(failure))
        text = (failure.text or b"an unknown error").decode()
        kind, _, rest = text.partition(": ")
        error: Any = getattr(builtins, kind, None) if code > 0 else None
        is_error = isinstance(error, type) and issubclass(error, Exception)
        message = rest if is_error else text
        if failure.index >= 0 or failure.size >= 0:
            message += f" (index {failure.index}, size {failure.size})"
        if failure.file:
            message += f" at {failure.file.decode()}:{failure.line}"
        return error(message) if is_error else ValueError(f"{self.name}: {message}")


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])  # a third of the time of `array.ctypes`


def _tensor(array: np.ndarray) -> tuple[_StubTensor, Any]:
    """The tensor, and what it points to."""
    shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    tensor = _StubTensor(_address(array), 1, 0, array.ndim, _CODES[array.dtype.kind],
                     8 * array.itemsize, 1, ctypes.addressof(shape), None, 0)
    return tensor, (shape, array)


def _converted(given: Any, name: str, dtype: Any) -> np.ndarray:
    """Numbers as the parameter or field has them; integers of Python's fit all types that can hold
    them."""
    too_large = OverflowError(f"{name} is {_short(given)}, which no {dtype} can hold")
    number, kind = np.asarray(given), dtype.kind
    if type(given) is int and kind in "fc":
        try:
            number = np.asarray(float(given))
        except OverflowError:
            raise too_large from None
    is_integer = type(given) is int and kind in "iu"
    if not (is_integer or np.can_cast(number.dtype, dtype, "same_kind")):
        raise TypeError(f"{name} must be a number, a {dtype}, not {_short(given)}")
    if kind in "iu" and number.size and not (
            np.iinfo(dtype).min <= int(number.min()) and int(number.max()) <= np.iinfo(dtype).max):
        raise too_large
    with np.errstate(over="ignore"):
        made = number.astype(dtype)
    if kind in "fc" and (np.isfinite(number) & ~np.isfinite(made)).any():
        raise too_large
    return made


def _short(value: Any) -> str:
    if type(value) is int and value.bit_length() > 200:  # Python gives no text of very long ones
        return f"an integer of {value.bit_length()} bits"
    return repr(value)


def _number(value: np.ndarray) -> list[Any]:
    dtype = value.dtype
    if dtype.kind == "c":
        part = ctypes.c_double if dtype.itemsize == 16 else ctypes.c_float
        return [part(float(value.real)), part(float(value.imag))]
    if dtype == np.float16:
        return [ctypes.c_uint16(int(value.view(np.uint16)))]
    return [np.ctypeslib.as_ctypes_type(dtype)(value.item())]
