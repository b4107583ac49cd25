"""From fused groups of graph nodes to loop IR, and from loop IR to machine code."""
