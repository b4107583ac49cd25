"""The arguments of a call: bound, specified and told apart."""
