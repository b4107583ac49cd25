"""The log of a trace when it is made: a line, the passes, the kernels, the dump."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusec import config
from fusec.core import log

if TYPE_CHECKING:
    from fusec.compiled.compiled_trace import CompiledTrace


def report(trace: CompiledTrace, reason: str) -> None:
    """One line per compile, the pass log and the kernels, as the log ladder asks; and the dump."""
    if log.enabled(log.COMPILE):
        times = ", ".join(f"{k} {v:.1f}" for k, v in trace.times.items())
        log.write(log.COMPILE, f"compiled {trace.signature} in {times} ms ({reason}); "
                               f"{len(trace.kernels)} kernels, {len(trace.externs)} library "
                               f"calls")
    if log.enabled(log.PASSES):
        for record in trace.passes:
            log.write(log.PASSES, str(record))
    if log.enabled(log.CODE):
        log.write(log.CODE, f"{trace.optimized_graph}\n" + "\n\n".join(
            k.loops for k in trace.kernels))
    if config.dump_dir:
        _dump(trace, config.dump_dir)


def _dump(trace: CompiledTrace, directory: str) -> None:
    from .dump import dump

    try:
        dump(trace, directory)
    except OSError as error:  # a full disk must not fail the call that is reported on
        log.write(log.WARN, f"nothing of {trace.name} was written to {directory} "
                            f"({error.strerror or error}): set fusec.config.dump_dir or FUSEC_DUMP "
                            f"to a folder that can be written, or to nothing")
