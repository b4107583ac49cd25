"""Derivatives of functions: the public part; the rules are in `fusec.ops.derivatives`."""

from .api import grad, jvp, stop_gradient, value_and_grad, vjp
from .checks import check_grads
from .custom_rules import custom_jvp, custom_vjp
from .jacobians import hessian, hvp, jacobian

# In a trace they are given Variables themselves, and not what these hold; a function that they are
# given is converted where it is called, so no code has to be listened to.
for _function in (grad, value_and_grad, vjp, jvp, jacobian, hessian, hvp):
    vars(_function).update(takes_variables=True, converts_functions=True)

__all__ = ["check_grads", "custom_jvp", "custom_vjp", "grad", "hessian", "hvp", "jacobian", "jvp",
           "stop_gradient", "value_and_grad", "vjp"]
