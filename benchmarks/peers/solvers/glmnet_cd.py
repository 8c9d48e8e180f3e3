"""glmnet's Fortran coordinate descent through glmnetforpython, stopped by its threshold."""

import numpy as np
import scipy.sparse as sp
from benchmark_utils.ladder import stricter
from benchopt import BaseSolver
from glmnetforpython.glmnet import glmnet

np.sparse = sp  # glmnetforpython 0.3 asks numpy for it


class Solver(BaseSolver):
    """The last of a path of penalties: from a cold start it diverges on most of the problems."""

    name = "glmnet"
    sampling_strategy = "tolerance"
    requirements = ["pip::glmnetforpython"]
    parameters = {"path": [20]}

    def skip(self, X, y, k, loss, lam):
        return loss != "softmax", "solves the softmax loss only"

    def set_objective(self, X, y, k, loss, lam):
        self.X = sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)
        self.Y = np.asfortranarray(np.eye(k)[y])
        start = np.abs(X.T @ (1.0 / k - self.Y)).max() / X.shape[0]
        self.lams = np.geomspace(start, lam, self.path)

    def run(self, tol):
        self.fit = glmnet(
            x=self.X.copy(), y=self.Y.copy(), family="multinomial", alpha=1.0, lambdau=self.lams,
            standardize=False, intr=False, thresh=tol, maxit=1_000_000,
        )  # fmt: skip

    def get_result(self):
        return {"U": np.column_stack([beta[:, -1] for beta in self.fit["beta"]])}

    @staticmethod
    def get_next(tol):
        return stricter(tol)
