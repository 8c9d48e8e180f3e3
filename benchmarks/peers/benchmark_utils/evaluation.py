"""The value of a point and the bound that fenchel certifies for it."""

import numpy as np
import scipy.sparse as sp

from fenchel.certificate import certify
from fenchel.problem import Problem


class Evaluation:
    """Evaluates coefficients U (d, k), and a dual point V (n, k) where a solver has one.

    Without V the point that U itself suggests is certified: the maximiser of the loss at the
    scores XU (softmax: the probabilities), moved into the constraints by the certificate.
    """

    def __init__(self, X, y, k, loss, lam):
        self.problem = Problem.from_data(X, y, loss=loss, lam=lam, classes=np.arange(k))

    def zero(self):
        return np.zeros((self.problem.d, self.problem.k))

    def __call__(self, U, V=None):
        problem = self.problem
        if not np.isfinite(U.sum()):
            U, V = self.zero(), None
        if V is None:
            Z = problem.design.matmul(U.toarray() if sp.issparse(U) else U)
            V = problem.loss.argmax(Z, problem.y)
        found = certify(problem, U, V)
        return {
            "value": found.primal,
            "dual": found.dual,
            "gap": found.gap,
            "at_zero": problem.at_zero,
            "nnz": int(U.nnz if sp.issparse(U) else np.count_nonzero(U)),
        }
