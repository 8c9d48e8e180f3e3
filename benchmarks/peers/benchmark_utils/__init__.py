"""What the solvers and data sets of this benchmark share (benchopt puts it on the path)."""
