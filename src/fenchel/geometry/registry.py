"""The geometries by name, for U and for V."""

from __future__ import annotations

from fenchel.geometry.base import DualGeometry, PrimalGeometry
from fenchel.geometry.entropy import SimplexEntropy, SolidSimplexEntropy
from fenchel.geometry.euclidean import EuclideanBall, SimplexEuclidean
from fenchel.geometry.mixed import GroupPower
from fenchel.problem import Problem

PRIMAL: dict[str, type[PrimalGeometry]] = {
    geometry.name: geometry for geometry in (SolidSimplexEntropy, GroupPower, EuclideanBall)
}
DUAL: dict[str, type[DualGeometry]] = {
    geometry.name: geometry for geometry in (SimplexEntropy, SimplexEuclidean)
}


def make_geometries(
    problem: Problem, radius: float, primal: str | None = None, dual: str = "2x1"
) -> tuple[PrimalGeometry, DualGeometry]:
    """The geometries of U and V; U's norm defaults to that of the penalty."""
    if primal is None:
        primal = str(problem.norm)
    for name, table, argument in ((primal, PRIMAL, "primal"), (dual, DUAL, "dual")):
        if name not in table:
            raise ValueError(f"{argument} geometry must be one of {sorted(table)}, found {name!r}.")
    if (primal == "1x2") != (str(problem.norm) == "1x2"):
        raise ValueError(
            f"the primal geometry {primal} does not fit the penalty with norm {problem.norm}: the "
            "step has no closed form. Use geometry 1x2 with penalty='group', others with 'l1'."
        )
    return PRIMAL[primal](problem, radius), DUAL[dual](problem)
