"""HiGHS on the linear program of the hinge problem: four methods, run to their tolerance."""

import highspy
import numpy as np
from benchmark_utils.dual_lp import DualLP, too_large
from benchopt import BaseSolver

#: The factorisations of HiGHS fill in: a program of this size is out of reach for minutes.
MOST_NONZEROS = 30_000_000

TOLERANCES = (
    "primal_feasibility_tolerance",
    "dual_feasibility_tolerance",
    "ipm_optimality_tolerance",
    "pdlp_optimality_tolerance",
)


class Solver(BaseSolver):
    name = "highs"
    sampling_strategy = "tolerance"
    requirements = ["pip::highspy[extras]"]
    parameters = {"method": ["ipx", "hipo", "simplex", "pdlp"]}
    threads = 1
    time_limit = 60.0

    def skip(self, X, y, k, loss, lam):
        if loss != "hinge":
            return True, "solves linear programs only (the hinge loss)"
        reason = too_large(X, k, MOST_NONZEROS)
        if reason is None and not self._known(highspy.Highs()):
            reason = f"this build of HiGHS has no {self.method}"
        return reason is not None, reason

    def _known(self, solver):
        solver.setOptionValue("output_flag", False)
        return solver.setOptionValue("solver", self.method) == highspy.HighsStatus.kOk

    def set_objective(self, X, y, k, loss, lam):
        self.lp = lp = DualLP.build(X, y, k, lam)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = lp.cost.size, lp.lower.size
        model.col_cost_ = lp.cost
        model.col_lower_, model.col_upper_ = np.zeros(lp.cost.size), np.ones(lp.cost.size)
        model.row_lower_, model.row_upper_ = lp.lower, lp.upper
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = lp.A.indptr
        model.a_matrix_.index_, model.a_matrix_.value_ = lp.A.indices, lp.A.data
        self.model = model

    def run(self, tol):
        solver = highspy.Highs()
        self._known(solver)
        solver.setOptionValue("threads", self.threads)
        solver.setOptionValue("time_limit", self.time_limit)
        solver.setOptionValue("run_crossover", "off")
        for option in TOLERANCES:
            solver.setOptionValue(option, min(max(tol, 1e-10), 1e-1))
        solver.passModel(self.model)
        solver.run()
        self.found = solver.getSolution()

    def get_result(self):
        lp, found = self.lp, self.found
        v = found.col_value if len(found.col_value) else np.zeros(lp.cost.size)
        duals = found.row_dual if len(found.row_dual) else np.zeros(lp.lower.size)
        return lp.point(v, duals)

    @staticmethod
    def get_next(tol):
        return min(tol, 1.0) / 100.0
