"""The hooks that converted code calls while it is traced."""
