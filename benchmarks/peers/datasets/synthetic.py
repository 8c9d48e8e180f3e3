"""The paper's synthetic problem with n = d = k; about a third of the classes have no sample."""

import numpy as np
from benchopt import BaseDataset

from fenchel.datasets import make_paper


class Dataset(BaseDataset):
    """``empty_classes=False`` leaves out the classes without a sample.

    They count in the objective, but most solvers of the softmax loss cannot be told of them.
    """

    name = "synthetic"
    parameters = {"n": [200, 400, 1000], "empty_classes": [True]}

    def get_data(self):
        made = make_paper(self.n, rng=0)
        y, k = made.y, self.n
        if not self.empty_classes:
            present, y = np.unique(y, return_inverse=True)
            k = present.size
        return {"X": made.X, "y": y, "k": k}
