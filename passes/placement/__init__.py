"""The device of each node, and the values sent between devices: before and after fusion."""
