"""Mean multiclass loss + lam * ||U||_1 without intercept, with its certified gap."""

from benchmark_utils.evaluation import Evaluation
from benchopt import BaseObjective


class Objective(BaseObjective):
    """P(U) in benchopt's ``value``; the certificate is computed by fenchel alone."""

    name = "l1 multiclass"
    url = "https://github.com/benchopt/benchopt"
    min_benchopt_version = "1.6"
    requirements = ["pip::fenchel"]
    parameters = {"loss": ["hinge", "softmax"], "lam": [1e-2, 1e-3, 1e-4]}

    def set_data(self, X, y, k):
        self.X, self.y, self.k = X, y, k
        self.evaluation = Evaluation(X, y, k, self.loss, self.lam)

    def get_objective(self):
        return {"X": self.X, "y": self.y, "k": self.k, "loss": self.loss, "lam": self.lam}

    def evaluate_result(self, U, V=None):
        return self.evaluation(U, V)

    def get_one_result(self):
        return {"U": self.evaluation.zero()}
