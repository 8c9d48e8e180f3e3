"""How the knob of a solver moves from one fresh run to the next, the same for all solvers."""

#: Iterations grow, and the stricter of two tolerances is smaller, by these factors.
ITERATIONS, TOLERANCE = 1.6, 10**0.5


def more_iterations(n_iter):
    return max(n_iter + 1, int(n_iter * ITERATIONS))


def stricter(tol):
    return min(tol, 1.0) / TOLERANCE
