"""Fenchel-Young losses, one file each. A new loss is a new file and a line in ``LOSSES``."""

from __future__ import annotations

from fenchel.losses.base import Loss
from fenchel.losses.hinge import Hinge
from fenchel.losses.separable import SeparableLoss
from fenchel.losses.softmax import Softmax
from fenchel.losses.sparsemax import Sparsemax

__all__ = ["LOSSES", "Hinge", "Loss", "SeparableLoss", "Softmax", "Sparsemax", "get_loss"]

#: What other packages call a loss, and we do not.
ALSO_CALLED = {
    "log_loss": "softmax",
    "log": "softmax",
    "logistic": "softmax",
    "multinomial": "softmax",
    "cross_entropy": "softmax",
    "svm": "hinge",
    "crammer_singer": "hinge",
}

LOSSES: dict[str, type[Loss]] = {loss.name: loss for loss in (Hinge, Softmax, Sparsemax)}


def get_loss(loss: str | Loss) -> Loss:
    """Turn a name into a loss; a loss object is returned as it is."""
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str) or loss not in LOSSES:
        ours = ALSO_CALLED.get(loss) if isinstance(loss, str) else None
        hint = f" It is called {ours!r} here." if ours else ""
        raise ValueError(
            f"loss must be one of {sorted(LOSSES)} or a fenchel.losses.Loss object, found "
            f"{loss!r}.{hint}"
        )
    return LOSSES[loss]()
