"""Gene expression, many more features than samples; columns are standardised."""

from benchmark_utils.shared_data import load
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "genes"
    parameters = {"genes": ["nci60", "nakayama"]}

    def get_data(self):
        X, y, k = load(self.genes)
        X -= X.mean(axis=0)
        spread = X.std(axis=0)
        return {"X": X / spread.clip(min=1e-12), "y": y, "k": k}
