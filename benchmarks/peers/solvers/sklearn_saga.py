"""scikit-learn's LogisticRegression with saga, stopped by iterations."""

import warnings

from benchmark_utils.ladder import more_iterations
from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression


class Solver(BaseSolver):
    name = "sklearn-saga"
    sampling_strategy = "iteration"
    requirements = ["scikit-learn"]

    def skip(self, X, y, k, loss, lam):
        return loss != "softmax", "solves the softmax loss only"

    def set_objective(self, X, y, k, loss, lam):
        self.X, self.y = X, y
        # the penalty is given as a ratio since 1.8, and by name before
        l1 = {"l1_ratio": 1.0} if _ratio_alone() else {"penalty": "l1"}
        self.model = LogisticRegression(
            C=1.0 / (X.shape[0] * lam), solver="saga", fit_intercept=False, tol=1e-12, **l1
        )

    def run(self, n_iter):
        self.model.set_params(max_iter=max(1, n_iter))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.fit(self.X, self.y)

    def get_result(self):
        return {"U": self.model.coef_.T.copy()}

    @staticmethod
    def get_next(n_iter):
        return more_iterations(n_iter)


def _ratio_alone():
    return LogisticRegression().get_params().get("penalty") == "deprecated"
