"""Checkpoints of a training: its state, the step, the place in its inputs, and generators.

They are those of `fusec.Checkpoint`, with a few more entries: arrays of the bytes of JSON texts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fusec.errors import user_error
from fusec.state import checkpoint_files as files

from .positions import Position, position_of
from .states import TrainedState

_STEP, _INPUTS, _GENERATORS = "training.step", "training.inputs", "training.generators"


class TrainingCheckpoints:
    """The checkpoints at ``path``, of which the latest ``keep`` stay."""

    def __init__(self, path: str | os.PathLike[str], keep: int | None) -> None:
        self.prefix, self.keep = Path(path).absolute(), keep
        files.library()
        if not self.prefix.name or self.prefix.is_dir():
            raise user_error(ValueError, f"{path} names a folder, and no checkpoint in it",
                             cure="checkpoint=folder / 'run'")

    def save(self, state: TrainedState, step: int, position: Position) -> str:
        """Write one; it is on the disk, read back and compared, when this returns."""
        values = dict(state.values())
        if taken := values.keys() & {_STEP, _INPUTS, _GENERATORS}:
            raise user_error(ValueError, f"a checkpoint has an entry {min(taken)!r} of its own",
                             None, "give that part of the state another name")
        values[_STEP] = np.array(step, np.int64)
        values[_INPUTS] = _bytes(position.to_json())
        values[_GENERATORS] = _bytes(json.dumps(
            {name: g.bit_generator.state for name, g in state.generators().items()},
            default=_plain))
        return str(files.write(self.prefix, values, self.keep))

    def restore(self, state: TrainedState) -> tuple[str, int, Position] | None:
        """The newest one's path, step and position, its values given to the state; None: there is
        none.  Raises ``ValueError`` for one that is damaged, or of another state."""
        if not self.prefix.parent.is_dir() or not files.numbers(self.prefix):
            return None
        with files.locked(self.prefix.parent, writes=False):
            base = files.found_at(self.prefix)
            index, data = (files.with_ending(base, e) for e in (".json", ".safetensors"))
            values = dict(files.read_values(
                data, files.read_index(index, data.name), files.refused))
        try:
            step = int(values.pop(_STEP))
            position = position_of(_text(values.pop(_INPUTS)))
            generators = generator_state(json.loads(_text(values.pop(_GENERATORS))))
        except (KeyError, ValueError, TypeError) as error:
            raise files.refused(index, f"it is no checkpoint of a training: {error}") from None
        state.restore(values, generators, str(base))
        return str(base), step, position


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8).copy()


def _text(array: np.ndarray) -> str:
    return array.tobytes().decode()


def _plain(x: Any) -> Any:
    """Numbers and arrays in the states of generators, for JSON."""
    if isinstance(x, np.ndarray):
        return {"array": x.tolist(), "dtype": x.dtype.str}
    if isinstance(x, np.integer):
        return int(x)
    raise TypeError(f"a {type(x).__name__} in the state of a generator")


def generator_state(read: Any) -> Any:
    """The state of a generator that `_plain` has made JSON of."""
    if isinstance(read, Mapping):
        if read.keys() == {"array", "dtype"}:
            return np.array(read["array"], read["dtype"])
        return {key: generator_state(x) for key, x in read.items()}
    return read
