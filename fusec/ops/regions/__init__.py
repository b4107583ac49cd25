"""Which elements an op reads: index maps and cones."""
