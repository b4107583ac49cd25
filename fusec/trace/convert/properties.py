"""Attributes of classes, and properties whose getters are the user's functions."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from ..facts.policy import stays_plain


def class_attribute(owner: type, name: str) -> Any:
    """The attribute of a class or its bases under a name, descriptors not run; None if nothing."""
    for base in owner.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def getter_of(obj: Any, name: str) -> FunctionType | None:
    """The getter of a property, if it is a user's function that is converted; else None."""
    attribute = class_attribute(type(obj), name)
    is_users = type(attribute) is property and _may_convert(attribute.fget, type(obj))
    return attribute.fget if is_users else None


def _may_convert(fget: Any, owner: type) -> bool:
    """Whether the getter is a user's function and does all that reading the attribute does: where
    it raises AttributeError, Python calls ``__getattr__``."""
    if type(fget) is not FunctionType or stays_plain(fget):
        return False
    usual = class_attribute(owner, "__getattribute__") is object.__getattribute__
    return usual and class_attribute(owner, "__getattr__") is None
