"""Where an array's elements lie, without the dictionary that ``__array_interface__`` makes.

NumPy's arrays begin with the head of every Python object, two words, and then hold the address of
their data (``PyArrayObject.data`` of NumPy's C API, the same in all its versions).
"""

from __future__ import annotations

import ctypes

import numpy as np

_word_at = ctypes.c_int64.from_address
_DATA = object.__basicsize__


def _by_dictionary(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def _by_structure(array: np.ndarray) -> int:
    return _word_at(id(array) + _DATA).value


_sample = np.zeros(3)
# Other interpreters, and builds with a longer head, lay objects out in their own ways.
address_of = _by_structure if _by_structure(_sample) == _by_dictionary(_sample) else _by_dictionary
