"""The Hessian on the non-zeros of a Newton step, which get fewer from one solve to the next."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from fenchel.kernels import l1_newton as kernels

#: The factor is changed where at most this part of its rows leaves, else made anew.
FEW = 1 / 16


class FaceMatrix:
    """A symmetric matrix and its Cholesky factor in one array.

    The matrix is what lies below the diagonal, and the diagonal apart; from the diagonal on is its
    factor, or the matrix once more before it is factored. K can be the largest array of a fit, and
    a second one would cost more time as well.
    """

    def __init__(self, H: np.ndarray, face: np.ndarray, room: np.ndarray | None = None) -> None:
        room = np.empty(face.size**2) if room is None else room[: face.size**2]
        self.K = room.reshape(face.size, face.size)
        kernels.submatrix(H, face, self.K)
        self.diagonal = self.K.diagonal().copy()
        self._factored = False

    def solve(self, b: np.ndarray) -> np.ndarray:
        """``K^-1 b`` by Cholesky, or by elimination where rounding took K's definiteness."""
        if not self._factored:  # LAPACK reads the transpose, and leaves what is below as it is
            _, info = dpotrf(self.K.T, lower=1, clean=0, overwrite_a=1)
            if info != 0:
                kernels.put_back(self.K, self.diagonal)
                return np.linalg.solve(self.K, b)
            self._factored = True
        return dpotrs(self.K.T, b, lower=1)[0]

    def keep(self, kept: np.ndarray) -> None:
        """Leave out all rows and columns but these, which ascend; a few leave the factor, too."""
        if self._factored:
            self._factored = self.diagonal.size - kept.size <= FEW * self.diagonal.size
            if self._factored:
                kernels.leave_out(self.K, kept)
            else:
                kernels.put_back(self.K, self.diagonal)
        smaller = self.K.ravel()[: kept.size**2].reshape(kept.size, kept.size)  # no second matrix
        kernels.submatrix(self.K, kept, smaller)
        self.K, self.diagonal = smaller, self.diagonal[kept]

    def move(
        self, slope: np.ndarray, now: np.ndarray, d: np.ndarray, free: np.ndarray, shorter: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The part of the step d that is made (``kernels.move_on_face``), and K times it."""
        moved, product = np.empty(d.size), np.empty(d.size)
        kernels.move_on_face(self.K, self.diagonal, slope, now, d, free, shorter, moved, product)
        return moved, product
