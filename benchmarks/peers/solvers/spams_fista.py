"""SPAMS: FISTA on the multinomial logistic loss, stopped by iterations."""

import numpy as np
import scipy.sparse as sp
import spams
from benchmark_utils.ladder import more_iterations
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "spams"
    sampling_strategy = "iteration"
    requirements = ["pip::spams-bin"]
    threads = 1

    def skip(self, X, y, k, loss, lam):
        if loss != "softmax":
            return True, "solves the softmax loss only"
        return np.unique(y).size < k, "cannot be told of classes without a sample"

    def set_objective(self, X, y, k, loss, lam):
        self.X = sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)
        self.y = np.asfortranarray(y[:, None], dtype=float)
        self.start = np.zeros((X.shape[1], k), order="F")
        self.lam = lam

    def run(self, n_iter):
        n_iter = max(1, n_iter)
        self.U = spams.fistaFlat(
            self.y, self.X, self.start, loss="multi-logistic", regul="l1", lambda1=self.lam,
            max_it=n_iter, it0=n_iter + 1, tol=1e-14, L0=0.1, intercept=False,
            numThreads=self.threads, verbose=False,
        )  # fmt: skip

    def get_result(self):
        return {"U": np.ascontiguousarray(self.U)}

    @staticmethod
    def get_next(n_iter):
        return more_iterations(n_iter)
