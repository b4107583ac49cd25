"""One lane, and all of them: `fusec.vmap`."""

from .vmap import vmap

vars(vmap).update(takes_variables=True, converts_functions=True)

__all__ = ["vmap"]
