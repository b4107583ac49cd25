"""Matrix products by cuBLAS, called directly."""
