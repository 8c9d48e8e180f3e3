"""glmnet's Fortran coordinate descent through glmnetforpython, stopped by its threshold."""

import numpy as np
import scipy.sparse as sp
from benchmark_utils.ladder import stricter
from benchopt import BaseSolver
from glmnetforpython.glmnet import glmnet

np.sparse = sp  # glmnetforpython 0.3 asks numpy for it


class Solver(BaseSolver):
    """The last of a path of penalties, since it diverges from a cold start.

    The shortest path that did not diverge: 5 penalties for sparse data, 20 for dense.
    """

    name = "glmnet"
    sampling_strategy = "tolerance"
    requirements = ["pip::glmnetforpython"]
    parameters = {"path": ["auto"]}

    def skip(self, X, y, k, loss, lam):
        return loss != "softmax", "solves the softmax loss only"

    def set_objective(self, X, y, k, loss, lam):
        self.X = sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)
        self.Y = np.asfortranarray(np.eye(k)[y])
        steps = (5 if sp.issparse(X) else 20) if self.path == "auto" else self.path
        largest = np.abs(X.T @ (1.0 / k - self.Y)).max() / X.shape[0]
        self.lams = np.geomspace(largest, lam, steps + 1)[1:]

    def run(self, tol):
        self.beta = [np.zeros((self.X.shape[1], 1))] * self.Y.shape[1]
        try:
            fit = glmnet(
                x=self.X.copy(), y=self.Y.copy(), family="multinomial", alpha=1.0,
                lambdau=self.lams, standardize=False, intr=False, thresh=tol, maxit=100_000,
            )  # fmt: skip
            self.beta = fit["beta"]
        except ValueError:  # no penalty of the path was solved: it diverged
            pass

    def get_result(self):
        return {"U": np.column_stack([beta[:, -1] for beta in self.beta])}

    @staticmethod
    def get_next(tol):
        return stricter(min(tol, 1e-2))  # looser thresholds change nothing
