"""What is written about a trace when it is made: a line, the passes, the kernels, the dump."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import config
from . import log

if TYPE_CHECKING:
    from ..concrete import ConcreteFunction


def report(concrete: ConcreteFunction, reason: str) -> None:
    """One line per compile, the pass log and the kernels, as the log ladder asks; and the dump."""
    if log.enabled(log.COMPILE):
        times = ", ".join(f"{k} {v:.1f}" for k, v in concrete.times.items())
        log.write(log.COMPILE, f"compiled {concrete.signature} in {times} ms ({reason}); "
                               f"{len(concrete.kernels)} kernels, {len(concrete.externs)} library "
                               f"calls")
    if log.enabled(log.PASSES):
        for record in concrete.passes:
            log.write(log.PASSES, str(record))
    if log.enabled(log.CODE):
        log.write(log.CODE, f"{concrete.optimized_graph}\n" + "\n\n".join(
            k.loops for k in concrete.kernels))
    if config.dump_dir:
        _dump(concrete, config.dump_dir)


def _dump(concrete: ConcreteFunction, directory: str) -> None:
    from ..explanation import dump

    try:
        dump(concrete, directory)
    except OSError as error:  # a call does not fail for what is written about it
        log.write(log.WARN, f"nothing of {concrete.name} was written to {directory} "
                            f"({error.strerror or error}): set fusec.config.dump_dir or FUSEC_DUMP "
                            f"to a folder that can be written, or to nothing")
