"""Only touched classes are stored: a problem whose doubled U would take 80 GB."""

import json
import subprocess
import sys

import numpy as np
import scipy.sparse as sp

from fenchel.kernels import sublinear_state
from fenchel.problem import Problem
from fenchel.solvers.sublinear import Sublinear

RUN = """
import json, resource
import numpy as np
from fenchel.problem import Problem
from fenchel.solvers.sublinear import Sublinear

n, d, k = 500, 50_000, 100_000
rng = np.random.default_rng(0)
X = rng.standard_normal((n, d))
y = rng.integers(0, k, n)
problem = Problem.from_data(X, y, lam=1e-3, radius=100.0, classes=np.arange(k))
solver = Sublinear(step=1e-4)
run = solver.init(problem, None, rng, 1000)
solver.advance(run, 1000)
point = solver.points(run)[0]
print(json.dumps({
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    "touched": int(run.lazy.count[1]),
    "columns": int((np.diff(point.U.indptr) > 0).sum()),
    "size": float(abs(point.U).sum()),
    "row_sums": float(abs(point.V.sum(axis=1) - 1.0).max()),
    "smallest": float(point.V.data.min()),
}))
"""


def test_fifty_thousand_features_hundred_thousand_classes():
    done = subprocess.run(
        [sys.executable, "-c", RUN], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["peak"] < 3 * 2**30
    assert 300 < found["columns"] <= found["touched"] <= 1000
    assert 0.0 < found["size"] <= 100.0
    assert found["row_sums"] < 1e-9
    assert found["smallest"] >= 0.0


def test_sparse_output_is_the_dense_one(monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random_array((20, 30), density=0.2, rng=rng, format="csr")
    problem = Problem.from_data(X, rng.integers(0, 5, 20), lam=0.01, radius=4.0,
                                classes=np.arange(40))  # fmt: skip
    solver = Sublinear(step=1e-3)
    run = solver.init(problem, None, rng, 100)
    solver.advance(run, 15)
    dense = solver.points(run)[0]
    monkeypatch.setattr(sublinear_state, "DENSE_ENTRIES", 0)
    sparse = solver.points(run)[0]
    np.testing.assert_array_equal(sparse.U.toarray(), dense.U)
    untouched = np.setdiff1d(np.arange(40), np.flatnonzero(run.lazy.slot >= 0))
    assert untouched.size > 0
    assert sparse.U[:, untouched].nnz == 0
    # a feature that no drawn row has stays exactly zero in a touched class
    assert sparse.U.nnz < 30 * (40 - untouched.size)
    # V: the mass of untouched classes is with the true one, all else is as it was
    V = sparse.V.toarray()
    rows, used = np.arange(20), run.lazy.order[: run.lazy.count[2]]
    np.testing.assert_allclose(V.sum(axis=1), 1.0, atol=1e-12)
    expected = np.zeros_like(V)
    expected[:, used] = dense.V[:, used]
    expected[rows, problem.y] = 0.0
    expected[rows, problem.y] = 1.0 - expected.sum(axis=1)
    np.testing.assert_allclose(V, expected, atol=1e-12)
