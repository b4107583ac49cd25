"""Back ends whose code is machine code: the launcher calls it by address."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..backend import Backend

if TYPE_CHECKING:
    from ..kernels.loop_ir import Param
    from ..plan.block_templates import OpenBlock
    from .native_nest import CompileStats, NativeNest, NestBlock


class NativeBackend(Backend):
    """A back end whose code of a form is a `NativeNest`, called with the argument block that
    `block` makes."""

    is_native = True

    @abstractmethod
    def compile(self, forms: Sequence[Any], stats: CompileStats) -> list[NativeNest]: ...

    @abstractmethod
    def block(self, form: Any, params: tuple[Param, ...]) -> NestBlock:
        """A form's argument block, with the constants of its kernel."""

    @abstractmethod
    def open_block(self, form: Any, params: tuple[Param, ...]) -> OpenBlock:
        """The same of a form that has symbols of a trace for sizes."""

    def nest_on_disk(self, key: str, symbol: str, has_finish: bool) -> NativeNest | None:
        """A nest of machine code that an earlier process has kept under the ``key`` of its
        `NativeCode`; None where there is none."""
        return None
