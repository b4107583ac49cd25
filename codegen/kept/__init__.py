"""Plans between processes: what one native call needs, as plain data beside the machine code."""
