"""How tables and reports are shown, and how far a compile is: on terminals and in notebooks."""
