"""A call's arguments, bound to the key that decides which trace answers it."""
