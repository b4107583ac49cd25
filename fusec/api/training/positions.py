"""Where a training is in its inputs, so that another process can go on with the next example."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Generator, Iterable, Iterator
from typing import Any, NamedTuple

from fusec.errors import user_error


class Position(NamedTuple):
    """After ``taken`` examples of pass number ``epoch``.

    ``state`` is that of the iterator, if it has one (``get_state`` and ``set_state``, as those of
    Grain): it goes on from there at once.  Of others the first examples are read again, and
    dropped.
    """

    epoch: int = 0
    taken: int = 0
    state: Any = None

    def to_json(self) -> str:
        """As text; raises ``TypeError`` for a state that JSON has no form for."""
        state = self.state
        if isinstance(state, bytes):
            state = {"bytes": base64.b64encode(state).decode()}
        try:
            return json.dumps({"epoch": self.epoch, "taken": self.taken, "state": state})
        except (TypeError, ValueError) as error:
            raise user_error(
                TypeError, f"the state of the inputs cannot be saved: {error}", None,
                "get_state() is to give bytes, or numbers, texts, lists and dicts of these",
                values=[("state", type(self.state).__name__)]) from None


def position_of(text: str) -> Position:
    """The position that `Position.to_json` wrote; raises ``ValueError`` for any other text."""
    read = json.loads(text)
    if not isinstance(read, dict) or read.keys() != {"epoch", "taken", "state"} or not all(
            type(read[name]) is int and read[name] >= 0 for name in ("epoch", "taken")):
        raise ValueError("it is no position in inputs")
    state = read["state"]
    if isinstance(state, dict) and state.keys() == {"bytes"}:
        state = base64.b64decode(state["bytes"])
    return Position(read["epoch"], read["taken"], state)


def first_position(inputs: Any) -> Position:
    """That before the first example: the state of an iterator that can be brought back to it."""
    if isinstance(inputs, Iterator) and hasattr(inputs, "get_state") and (
            hasattr(inputs, "set_state")):
        return Position(state=inputs.get_state())
    return Position()


class TrainingInputs:
    """Examples, pass after pass, each with the `Position` after it."""

    def __init__(self, inputs: Iterable[Any], epochs: int | None, start: Position) -> None:
        """``epochs``: how many passes; None: as many as somebody takes."""
        if not hasattr(inputs, "__iter__"):
            raise user_error(
                TypeError, "inputs are something to iterate over: a list of batches, a generator, "
                "a loader", values=[("given", type(inputs).__name__)])
        self.inputs, self.epochs, self.start = inputs, epochs, start

    @property
    def steps(self) -> int | None:
        """How many examples all passes have; None: nobody knows."""
        inputs: Any = self.inputs
        try:
            return None if self.epochs is None else self.epochs * len(inputs)
        except TypeError:
            return None

    def __iter__(self) -> Iterator[tuple[Any, Position]]:
        epochs = itertools.count(self.start.epoch) if self.epochs is None else range(
            self.start.epoch, self.epochs)
        for epoch in epochs:
            taken = yield from self._one_pass(epoch)
            if not taken and epoch > self.start.epoch:
                raise user_error(
                    ValueError, f"pass {epoch + 1} over the inputs has no example", None,
                    "a generator can be passed once: give a list, or an object whose __iter__ "
                    "begins anew; or no more steps than one pass has")
            if isinstance(self.inputs, Iterator) and self.epochs == 1:
                return

    def _one_pass(self, epoch: int) -> Generator[tuple[Any, Position], None, int]:
        """The rest of a pass; returns how many examples it has."""
        iterator: Any = iter(self.inputs)
        can_resume = hasattr(iterator, "get_state") and hasattr(iterator, "set_state")
        first = self.start.taken if epoch == self.start.epoch else 0
        is_start = epoch == self.start.epoch
        if is_start and can_resume and self.start.state is not None:
            iterator.set_state(self.start.state)
        else:
            self._skip(iterator, first)
        for taken, example in enumerate(iterator, first + 1):
            yield example, Position(epoch, taken, iterator.get_state() if can_resume else None)
            first = taken
        return first

    def _skip(self, iterator: Iterator[Any], count: int) -> None:
        """Drop the examples that were taken before."""
        skipped = sum(1 for _ in itertools.islice(iterator, count))
        if skipped < count:
            raise user_error(
                ValueError, "the inputs have fewer examples than were taken before", None,
                "give the inputs of the training that the checkpoint is of",
                values=[("taken before", count), ("there are", skipped)])
