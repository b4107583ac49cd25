"""One trace for calls of many sizes."""
