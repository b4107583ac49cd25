"""Functions that leave the process: their parameters in C, and the plans behind them."""
