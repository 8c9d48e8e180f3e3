"""The design matrix X behind one interface, so that no solver asks whether it is sparse."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fenchel.design.base import Design
from fenchel.design.dense import DenseDesign
from fenchel.design.sparse import SparseDesign

__all__ = ["DenseDesign", "Design", "SparseDesign", "make_design"]


def make_design(X: np.ndarray | sp.sparray | sp.spmatrix) -> Design:
    """Wrap a validated matrix."""
    return SparseDesign(X) if sp.issparse(X) else DenseDesign(X)
