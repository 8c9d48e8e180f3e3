"""PDLP of or-tools on the linear program of the hinge problem."""

from benchmark_utils.dual_lp import DualLP, too_large
from benchmark_utils.ladder import stricter
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "ortools-pdlp"
    sampling_strategy = "tolerance"
    requirements = ["pip::ortools"]
    threads = 1
    time_limit = 60.0

    def skip(self, X, y, k, loss, lam):
        if loss != "hinge":
            return True, "solves linear programs only (the hinge loss)"
        reason = too_large(X, k)
        return reason is not None, reason

    @staticmethod
    def _pdlp():
        # imported late: or-tools brings a HiGHS of its own, after which highspy cannot be imported
        from ortools.pdlp import solvers_pb2
        from ortools.pdlp.python import pdlp

        return pdlp, solvers_pb2.PrimalDualHybridGradientParams

    def set_objective(self, X, y, k, loss, lam):
        self.lp = DualLP.build(X, y, k, lam)
        self.pdlp, self.params = self._pdlp()
        program = self.pdlp.QuadraticProgram()
        program.resize_and_initialize(self.lp.cost.size, self.lp.lower.size)
        program.objective_vector = self.lp.cost
        program.constraint_matrix = self.lp.A
        program.constraint_lower_bounds = self.lp.lower
        program.constraint_upper_bounds = self.lp.upper
        program.variable_lower_bounds = 0.0 * self.lp.cost
        program.variable_upper_bounds = 1.0 + 0.0 * self.lp.cost
        self.program = program

    def run(self, tol):
        params = self.params(num_threads=self.threads)
        criteria = params.termination_criteria
        criteria.time_sec_limit = self.time_limit
        criteria.simple_optimality_criteria.eps_optimal_relative = min(tol, 1.0)
        criteria.simple_optimality_criteria.eps_optimal_absolute = min(tol, 1.0) * 1e-3
        self.found = self.pdlp.primal_dual_hybrid_gradient(self.program, params)

    def get_result(self):
        return self.lp.point(self.found.primal_solution, self.found.dual_solution)

    @staticmethod
    def get_next(tol):
        return stricter(tol)
