"""This package, with no argument but the tolerance."""

import numpy as np
from benchmark_utils.ladder import stricter
from benchopt import BaseSolver

import fenchel


class Solver(BaseSolver):
    name = "fenchel"
    sampling_strategy = "tolerance"
    requirements = ["pip::fenchel"]
    time_limit = 60.0
    certified = True  # the tolerance is the certified gap, relative to P(0)

    def set_objective(self, X, y, k, loss, lam):
        self.data = {"X": X, "y": y, "loss": loss, "lam": lam, "classes": np.arange(k)}

    def run(self, tol):
        self.found = fenchel.solve(**self.data, tol=tol, max_time=self.time_limit)

    def get_result(self):
        return {"U": self.found.U, "V": self.found.V}

    @staticmethod
    def get_next(tol):
        return stricter(tol)
