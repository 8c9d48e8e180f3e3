"""Fenchel-Young losses, one file each. A new loss is a new file and a line in ``LOSSES``."""

from __future__ import annotations

from fenchel.losses.base import Loss
from fenchel.losses.hinge import Hinge
from fenchel.losses.separable import SeparableLoss
from fenchel.losses.softmax import Softmax
from fenchel.losses.sparsemax import Sparsemax

__all__ = ["LOSSES", "Hinge", "Loss", "SeparableLoss", "Softmax", "Sparsemax", "get_loss"]

LOSSES: dict[str, type[Loss]] = {loss.name: loss for loss in (Hinge, Softmax, Sparsemax)}


def get_loss(loss: str | Loss) -> Loss:
    """Turn a name into a loss; a loss object is returned as it is."""
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str) or loss not in LOSSES:
        raise ValueError(
            f"loss must be one of {sorted(LOSSES)} or a fenchel.losses.Loss object, found {loss!r}."
        )
    return LOSSES[loss]()
