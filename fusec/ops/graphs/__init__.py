"""Whole graphs, through the rows of their ops: admitted, evaluated, carved, verified."""
