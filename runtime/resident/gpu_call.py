"""How the calls of a plan with CuPy's arrays run: the function, or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..launching.outcomes import MISS
from .resident_arrays import PreparedKernels


class GpuCall:
    """``function`` takes a call's leaves as the program gives them; None: there is none, as
    ``reason`` says."""

    def __init__(
        self, function: Callable[..., Any] | None, kernels: PreparedKernels | None, reason: str,
        without_products: WithoutProducts | None = None,
    ) -> None:
        self.function, self.reason, self._kernels = function, reason, kernels
        self._without_products = without_products

    def __str__(self) -> str:
        if self._without_products is not None and self._without_products.made is not None:
            return str(self._without_products.made)
        return f"step by step from Python, as {self.reason}" if self._kernels is None else (
            self._kernels.text)


class WithoutProducts:
    """The same calls after a library that is called directly has refused a product: it gets none
    from then on, so the text is made anew, once."""

    def __init__(self, make: Callable[[], GpuCall]) -> None:
        self._make = make
        self.made: GpuCall | None = None

    def __call__(self, *leaves: Any) -> Any:
        if self.made is None:
            self.made = self._make()
        function = self.made.function
        return MISS if function is None else function(*leaves)
