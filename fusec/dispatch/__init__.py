"""From a call to its plan: jitted functions, and where they look first."""
