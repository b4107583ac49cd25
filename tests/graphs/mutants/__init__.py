"""Graphs of every op with a few things changed, admitted and run under guard pages:
``python tests/graphs/mutants -n 100000``.  A mutant is made again from its number alone."""
