"""The data sets of the folder that FENCHEL_DATA names."""

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp


def load(name):
    """X (float64; CSR where the set is sparse), y as codes, and the number of classes."""
    folder = os.environ.get("FENCHEL_DATA")
    if folder is None:
        raise FileNotFoundError(f"{name}: set FENCHEL_DATA to the folder that holds {name}.npz")
    path = Path(folder) / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(f"{name}: no {name}.npz in the folder that FENCHEL_DATA names")
    with np.load(path, allow_pickle=False) as file:
        _, y = np.unique(file["y"], return_inverse=True)
        if "X" in file:
            X = np.ascontiguousarray(file["X"], dtype=float)
        else:
            parts = (file["data"].astype(float), file["indices"], file["indptr"])
            X = sp.csr_array(parts, shape=tuple(file["shape"]))
    return X, y, int(y.max()) + 1
