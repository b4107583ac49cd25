"""What a class holds under a name, and the user's functions that compute attributes."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from ..facts.policy import stays_plain


def class_attribute(owner: type, name: str) -> Any:
    """What the class holds under a name, its descriptors not run; None when nothing."""
    for base in owner.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def getter_of(obj: Any, name: str) -> FunctionType | None:
    """The user's function that computes an attribute; None where it is none, or kept plain."""
    found = class_attribute(type(obj), name)
    is_users = type(found) is property and _may_convert(found.fget, type(obj))
    return found.fget if is_users else None


def _may_convert(fget: Any, owner: type) -> bool:
    """Whether a property is a user's function, and all there is to reading the attribute:
    Python calls ``__getattr__`` after a property's AttributeError."""
    if type(fget) is not FunctionType or stays_plain(fget):
        return False
    usual = class_attribute(owner, "__getattribute__") is object.__getattribute__
    return usual and class_attribute(owner, "__getattr__") is None
