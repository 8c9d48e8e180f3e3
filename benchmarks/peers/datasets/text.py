"""Sparse tf-idf text with 20 to 576 classes."""

from benchmark_utils.shared_data import load
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "text"
    parameters = {"text": ["news20", "debian_section", "clinc150", "debian_maint"]}

    def get_data(self):
        X, y, k = load(self.text)
        return {"X": X, "y": y, "k": k}
