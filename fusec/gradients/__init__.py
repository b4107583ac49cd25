"""Derivatives of functions: the public part; the rules are in `fusec.ops.derivatives`."""

from .api import grad, jvp, value_and_grad, vjp

__all__ = ["grad", "jvp", "value_and_grad", "vjp"]
