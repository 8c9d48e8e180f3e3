"""Algorithm alg:main on dense matrices, plainly, from the corrected formulas.

The doubled U is a (2d, k) matrix, V is (n, k); every iterate is formed in full, and the sums of
iterates by adding them up. They are kept as logarithms, which no step drives out of range. Only
the order in which a uniform number becomes a draw is taken from the fast solver: the class before
the feature, the row before the class, stored classes first.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp


class Uniforms:
    """The solver's generator (splitmix64 of a counter), in Python integers."""

    def __init__(self, key):
        self.key, self.counter = int(key), 0

    def __call__(self):
        mask = 2**64 - 1
        self.counter += 1
        z = (self.key + self.counter * 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z = z ^ (z >> 31)
        return (z >> 11) * 2.0**-53


def invert(weights, u):
    """The index at which the running sum of the weights passes u times their sum."""
    sums = np.cumsum(weights)
    return min(int(np.searchsorted(sums, u * sums[-1], side="right")), len(weights) - 1)


class Twin:
    def __init__(self, X, y, k, weights, lam, radius, key):
        self.X, self.y, self.w, self.lam, self.R = X, y, weights, lam, radius
        n, d = X.shape
        self.n, self.d, self.k = n, d, k
        self.Xhat = np.hstack([X, -X])
        self.Y = np.eye(k)[y]
        self.log_U = np.full((2 * d, k), np.log(radius / (2 * d * k)))
        self.log_V = np.full((n, k), -np.log(k))
        self.U_sum, self.V_sum = np.zeros_like(self.U), np.zeros_like(self.V)
        self.noisy_sum = np.zeros((d, k))
        self.sigma = np.sqrt(weights @ self.Xhat**2)
        self.tau = np.abs(X).max(axis=1)
        self.uniform = Uniforms(key)
        self.order, self.touched = list(range(k)), 0
        self.draws = []

    @property
    def U(self):
        return np.exp(self.log_U)

    @property
    def V(self):
        return np.exp(self.log_V)

    @property
    def pi(self):
        return self.U.sum(axis=1)

    @property
    def rho(self):
        return np.abs(self.V - self.Y).sum(axis=1)

    def draw_row_and_class(self):
        j = invert(self.w * self.tau * self.rho, self.uniform())
        u = self.uniform()
        if u < 0.5:  # half of |V - Y| in a row is in the true class
            return j, self.y[j]
        order = [l for l in self.order if l != self.y[j]]
        return j, order[invert(self.V[j, order], 2 * u - 1)]

    def draw_feature_and_class(self):
        """(i, l) ~ sigma_i U(i, l): the class, then the feature, then the half."""
        d = self.d
        law = self.sigma[:, None] * self.U
        l = invert(law.sum(axis=0), self.uniform())
        both = np.column_stack([law[:d, l], law[d:, l]]).ravel()  # +0, -0, +1, -1, ...
        i, half = divmod(invert(both, self.uniform()), 2)
        return i + half * d, l

    def touch(self, l):
        p = self.order.index(l)
        if p >= self.touched:
            self.order[p], self.order[self.touched] = self.order[self.touched], l
            self.touched += 1

    def step(self, gamma):
        L, log_k = np.log(2 * self.d * self.k), np.log(self.k)
        self.U_sum += self.U
        self.V_sum += self.V

        j, l = self.draw_row_and_class()
        eta = np.zeros_like(self.U)
        V, rho = self.V, self.rho
        q = self.w * self.tau * rho / (self.w * self.tau * rho).sum()
        Q = np.abs(V[j] - self.Y[j]) / rho[j]
        # w_j x_j (V - Y)(j,l) / (q_j Q_jl): the estimate of Xhat^T diag(w) (V - Y)
        eta[:, l] = self.Xhat[j] * self.w[j] * (V[j, l] - self.Y[j, l]) / (q[j] * Q[l])
        grown = self.log_U - 2 * gamma * self.R * L * eta
        log_nu = min(-2 * gamma * self.R * L * self.lam, np.log(self.R) - logsumexp(grown))
        self.log_U = grown + log_nu

        i, ell = self.draw_feature_and_class()
        p = self.sigma * self.pi / (self.sigma * self.pi).sum()
        U = self.U
        P = U[i] / self.pi[i]
        estimate = U[i, ell] / (p[i] * P[ell])
        xi = np.zeros_like(self.V)
        xi[:, ell] = self.Xhat[:, i] * estimate
        grown = self.log_V + 2 * gamma * log_k * (xi - self.Y)
        self.log_V = grown - logsumexp(grown, axis=1, keepdims=True)
        self.touch(ell)

        self.noisy_sum[i % self.d, ell] += estimate if i < self.d else -estimate
        self.draws.append((j, l, i, ell))

    def averages(self):
        t = len(self.draws) + 1
        U, V = (self.U_sum + self.U) / t, (self.V_sum + self.V) / t
        return U[: self.d] - U[self.d :], V
