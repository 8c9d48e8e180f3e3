"""Sampling schemes (sec:sampling): unbiased estimates of the two matrix products, one file each.

A new scheme is a new file and a line in ``SAMPLERS``.
"""

from __future__ import annotations

from fenchel.sampling.base import Sampler
from fenchel.sampling.full import FullSampler
from fenchel.sampling.partial import PartialSampler

__all__ = ["SAMPLERS", "FullSampler", "PartialSampler", "Sampler"]

SAMPLERS: dict[str, type[Sampler]] = {
    sampler.name: sampler for sampler in (PartialSampler, FullSampler)
}
