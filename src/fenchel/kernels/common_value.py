"""What most classes of a dual point have in common, row by row."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def common_values(V: np.ndarray, y: np.ndarray, common: np.ndarray) -> int:
    """Set ``common_i`` to the value of most wrong classes in row i; count those with another.

    By the vote of Boyer and Moore, which finds a value that more than half of them have. Where
    there is none, any value will do: the count tells what it is worth.
    """
    others = 0
    for i in range(V.shape[0]):
        value, votes = 0.0, 0
        for l in range(V.shape[1]):
            if l == y[i]:
                continue
            if votes == 0:
                value = V[i, l]
            votes += 1 if V[i, l] == value else -1
        common[i] = value
        for l in range(V.shape[1]):
            if l != y[i] and V[i, l] != value:
                others += 1
    return others
