"""The files that hold rules: importing them fills the rows' columns."""

from . import arithmetic, choices, elementary, parts, powers, special, views

__all__ = ["arithmetic", "choices", "elementary", "parts", "powers", "special", "views"]
