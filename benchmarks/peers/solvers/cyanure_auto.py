"""cyanure's multinomial logistic regression with its default solver, stopped by iterations."""

import numpy as np
import scipy.sparse as sp
from benchmark_utils.ladder import more_iterations
from benchopt import BaseSolver
from cyanure.estimators import Classifier


class Solver(BaseSolver):
    name = "cyanure"
    sampling_strategy = "iteration"
    requirements = ["pip::cyanure"]
    threads = 1

    def skip(self, X, y, k, loss, lam):
        if loss != "softmax":
            return True, "solves the softmax loss only (its hinge is another one)"
        return np.unique(y).size < k, "cannot be told of classes without a sample"

    def set_objective(self, X, y, k, loss, lam):
        self.X = sp.csr_matrix(X) if sp.issparse(X) else np.asfortranarray(X)
        self.y, self.lam = y, lam

    def run(self, n_iter):
        self.model = Classifier(
            loss="multiclass-logistic", penalty="l1", lambda_1=self.lam, fit_intercept=False,
            tol=1e-14, max_iter=max(1, n_iter), duality_gap_interval=max(1, n_iter),
            n_threads=self.threads, verbose=False,
        )  # fmt: skip
        self.model.fit(self.X, self.y)

    def get_result(self):
        return {"U": np.array(self.model.get_weights(), dtype=float)}

    @staticmethod
    def get_next(n_iter):
        return more_iterations(n_iter)
