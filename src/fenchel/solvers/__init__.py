"""Solvers, one file each. A new solver is a new file and a line in ``SOLVERS``."""
