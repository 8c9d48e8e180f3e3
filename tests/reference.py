"""The optimum of an instance by solvers that share nothing with the package.

Hinge with an l1 penalty is a linear program for HiGHS. Softmax goes to a conic solver as it stands,
sparsemax (and hinge with a group penalty) as the dual problem in V, whose value is the same.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from instances import Instance

#: How far the reference optimum itself may be off, relative to max(1, optimum).
TOLERANCE = 1e-6

_CACHE: dict[tuple[str, str], float] = {}


def optimum(instance: Instance, loss: str) -> float:
    """The optimal value; every pair is solved once a session."""
    key = (instance.name, loss)
    if key not in _CACHE:
        if loss == "hinge" and instance.penalty == "l1":
            _CACHE[key] = _linear_program(instance)
        else:
            _CACHE[key] = _softmax(instance) if loss == "softmax" else _dual(instance, loss)
    return _CACHE[key]


def _parts(instance: Instance) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    X = instance.X.toarray() if sp.issparse(instance.X) else instance.X
    n, d = X.shape
    w = np.ones(n) if instance.weights is None else instance.weights
    c = np.ones(d) if instance.penalty_factor is None else instance.penalty_factor
    cost = 1.0 - np.eye(instance.k) if instance.cost is None else instance.cost
    return X, w / w.sum(), c, cost


def _linear_program(instance: Instance) -> float:
    """min w^T xi + lam c^T (U+ + U-) 1  s.t.  xi_i >= C(y_i, l) + x_i^T (U_l - U_{y_i})."""
    X, w, c, cost = _parts(instance)
    (n, d), k = X.shape, instance.k
    rows = []
    for i in range(n):
        # row l of this block: e_l - e_{y_i} on the classes, times x_i on the features
        classes = sp.eye_array(k).tolil()
        classes[:, [instance.y[i]]] -= np.ones((k, 1))
        rows.append(sp.kron(sp.csr_array(X[[i]]), classes.tocsr()))
    A = sp.vstack(rows).tocsr()  # U flattened by features, classes fastest
    slack = sp.kron(sp.eye_array(n), sp.csr_array(np.ones((k, 1))))
    negative = 0.0 if instance.positive else None
    A_ub = [sp.hstack([A, -A, -slack])]
    b_ub = [-cost[instance.y].ravel()]
    if instance.radius is not None:
        A_ub.append(sp.csr_array(np.r_[np.ones(2 * d * k), np.zeros(n)][None]))
        b_ub.append(np.array([instance.radius]))
    price = instance.lam * np.repeat(c, k)
    solution = linprog(
        np.concatenate([price, price, w]),
        A_ub=sp.vstack(A_ub),
        b_ub=np.concatenate(b_ub),
        bounds=[(0, None)] * (d * k) + [(0, negative)] * (d * k) + [(0, None)] * n,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert solution.status == 0, solution.message
    return float(solution.fun)


def _softmax(instance: Instance) -> float:
    """The primal problem, for exponential cones."""
    X, w, c, _ = _parts(instance)
    U = cp.Variable((X.shape[1], instance.k), nonneg=instance.positive)
    Z = X @ U
    true = cp.sum(cp.multiply(np.eye(instance.k)[instance.y], Z), axis=1)
    sizes = cp.norm(U, 1 if instance.penalty == "l1" else 2, axis=1)
    ball = [] if instance.radius is None else [cp.sum(sizes) <= instance.radius]
    risk = w @ (cp.log_sum_exp(Z, axis=1) - true)
    return _solve(cp.Problem(cp.Minimize(risk + instance.lam * (c @ sizes)), ball))


def _dual(instance: Instance, loss: str) -> float:
    """The dual problem: maximise -F(V), minus R times the worst excess where there is a ball."""
    X, w, c, cost = _parts(instance)
    n, k = X.shape[0], instance.k
    V = cp.Variable((n, k), nonneg=True)
    G = (w[:, None] * X).T @ (V - np.eye(k)[instance.y])
    if loss == "hinge":
        gain = cp.sum(cp.multiply(w[:, None] * cost[instance.y], V))
    else:
        gain = 0.5 - 0.5 * cp.sum_squares(cp.multiply(np.sqrt(w)[:, None], V))
    excess = 0.0 if instance.radius is None else cp.Variable(nonneg=True)
    G = cp.neg(G) if instance.positive else G
    sizes = cp.norm(G, "inf" if instance.penalty == "l1" else 2, axis=1)
    constraints = [sizes <= instance.lam * c + excess, cp.sum(V, axis=1) == 1]
    return _solve(cp.Problem(cp.Maximize(gain - (instance.radius or 0.0) * excess), constraints))


def _solve(program: cp.Problem) -> float:
    program.solve(solver=cp.CLARABEL)
    assert program.status == "optimal", program.status
    return float(program.value)
