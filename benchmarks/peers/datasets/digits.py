"""Handwritten digits of scikit-learn, pixels divided by 16: 1797 x 64, k = 10."""

from benchopt import BaseDataset
from sklearn.datasets import load_digits


class Dataset(BaseDataset):
    name = "digits"

    def get_data(self):
        X, y = load_digits(return_X_y=True)
        return {"X": X / 16.0, "y": y, "k": 10}
