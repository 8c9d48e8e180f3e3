"""Losses as users would write them: phi and its derivative, of many shapes."""

from __future__ import annotations

import numpy as np

from fenchel.losses import SeparableLoss

SMALLEST = 1e-300


def softmax() -> SeparableLoss:
    return SeparableLoss(
        lambda v, _: v * np.log(np.maximum(v, SMALLEST)),
        lambda v, _: np.log(np.maximum(v, SMALLEST)) + 1.0,
    )


def hinge() -> SeparableLoss:
    return SeparableLoss(lambda v, true: true * v, lambda v, true: true + 0 * v, affine=True)


def sparsemax() -> SeparableLoss:
    return SeparableLoss(lambda v, _: 0.5 * v**2, lambda v, _: v)


def smoothed_hinge() -> SeparableLoss:
    return SeparableLoss(lambda v, true: true * v + 0.05 * v**2, lambda v, true: true + 0.1 * v)


def tsallis() -> SeparableLoss:
    """Between softmax and sparsemax: entries leave the support, and without a kink."""
    return SeparableLoss(
        lambda v, _: (v**1.5 - v) / 0.75, lambda v, _: (1.5 * np.sqrt(v) - 1.0) / 0.75
    )


def quartic() -> SeparableLoss:
    """Convex, strongly so but at zero."""
    return SeparableLoss(lambda v, true: true * v + 0.1 * v**4, lambda v, true: true + 0.4 * v**3)


def kinked() -> SeparableLoss:
    """The derivative is flat, and jumps."""
    return SeparableLoss(
        lambda v, true: true * v + np.maximum(v - 0.4, 0.0),
        lambda v, true: true + np.where(v > 0.4, 1.0, 0.0),
    )


#: Those with a closed form of the same name, and those without.
CLOSED = {"softmax": softmax, "hinge": hinge, "sparsemax": sparsemax}
OPEN = {
    "smoothed-hinge": smoothed_hinge, "tsallis": tsallis, "quartic": quartic, "kinked": kinked,
}  # fmt: skip

#: Whether a loss is smooth, and whether its maximiser is differentiable.
KINDS = {
    "softmax": (True, True),
    "hinge": (False, False),
    "sparsemax": (True, False),
    "smoothed-hinge": (True, False),
    "tsallis": (True, True),
    "quartic": (False, False),
    "kinked": (False, False),
}
