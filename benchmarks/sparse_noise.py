"""The hinge loss on small sparse data that need many coefficients: the whole against its parts.

    python benchmarks/sparse_noise.py [--limit 40]

CPU seconds of one thread to a certified gap over P(0). X is uniform noise of a given density; the
labels are those of a random sparse model with noise, or random.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import fenchel

#: Samples, features, classes, density, noise of the scores (None: random labels), penalty, tol.
CASES = (
    (1500, 4000, 8, 0.01, None, 3e-4, 1e-3),
    (2000, 8000, 40, 0.004, 0.3, 1e-4, 1e-2),
    (4000, 6000, 12, 0.005, 0.3, 3e-4, 1e-3),
    (1000, 2000, 30, 0.02, 0.3, 3e-4, 1e-3),
    (2000, 3000, 5, 0.01, 0.3, 5e-4, 1e-3),
    (3000, 1000, 4, 0.01, 0.3, 3e-4, 1e-3),
    (4000, 6000, 12, 0.005, 0.3, 1e-3, 1e-3),
)

SOLVERS = ("hybrid-gradient", "proximal-newton", "primal-dual")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=40.0, help="seconds a run")
    limit = parser.parse_args().limit
    for solver in SOLVERS:  # compiles
        fenchel.solve(*sparse_data(200, 300, 5, 0.05, 0.3), lam=1e-3, tol=1e-5, solver=solver)
    print("    n     d   k  density     lam    tol" + "".join(f"{name:>17}" for name in SOLVERS))
    for *made, lam, tol in CASES:
        data = sparse_data(*made)
        print("{:5d} {:5d} {:3d} {:8.3f}".format(*made[:4]), f"{lam:7.0e} {tol:6.0e}", end="")
        for solver in SOLVERS:
            began = time.process_time()
            result = fenchel.solve(*data, lam=lam, tol=tol, solver=solver, max_time=limit)
            spent = time.process_time() - began
            text = f"{spent:.2f}" if result.status == "converged" else f"> {spent:.0f}"
            print(f"{text:>17}", end="", flush=True)
        print()


def sparse_data(
    n: int, d: int, k: int, density: float, noise: float | None
) -> tuple[sp.csr_array, np.ndarray]:
    """X and labels."""
    rng = np.random.default_rng(1)
    X = sp.random_array((n, d), density=density, rng=rng, format="csr")
    B = rng.standard_normal((d, k)) * (rng.random((d, k)) < 0.05)
    if noise is None:
        return X, rng.integers(0, k, n)
    return X, (X @ B + noise * rng.gumbel(size=(n, k))).argmax(axis=1)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
