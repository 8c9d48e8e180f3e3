"""The problems of the comparison, the targets that were set for them, and the solvers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: Relative suboptimality, (P(U) - P*) / P(0), at which times are compared.
LEVELS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)

#: (file in peers/solvers, its loss or None for both, parameters) in the order of the table;
#: fenchel first: its dual values bound P*, which tells the others when they are there.
SOLVERS: tuple[tuple[str, str | None, dict[str, Any]], ...] = (
    ("fenchel_auto", None, {}),
    ("sklearn_saga", "softmax", {}),
    ("cyanure_auto", "softmax", {}),
    ("glmnet_cd", "softmax", {}),
    ("spams_fista", "softmax", {}),
    ("ortools_pdlp", "hinge", {}),
    ("highs_lp", "hinge", {"method": "ipx"}),
    ("highs_lp", "hinge", {"method": "hipo"}),
    ("highs_lp", "hinge", {"method": "simplex"}),
    ("highs_lp", "hinge", {"method": "pdlp"}),
)

#: Peers that were asked for and are not in the table.
EXCLUDED = {
    "snapml": "for more than two classes it fits one-vs-rest, which is another objective",
    "adelie": "its multinomial model penalises all classes of a feature as one group, which is "
    "another objective",
    "sklearn newton-cd": "LogisticRegression of scikit-learn 1.9 has no such solver",
}


@dataclass(frozen=True)
class Target:
    """``times``: that many times faster than the best peer to ``level``; ``seconds``: within that
    many; ``products``: within that many dense products X @ U. ``certified`` is about the gap."""

    level: float
    times: float | None = None
    seconds: float | None = None
    products: float | None = None
    certified: bool = False


@dataclass(frozen=True)
class Row:
    """One problem: a data set with its parameters, a loss and a penalty."""

    title: str
    dataset: str
    loss: str
    lam: float
    parameters: dict[str, Any] = field(default_factory=dict)
    targets: tuple[Target, ...] = ()
    quick: bool = False

    @property
    def name(self) -> str:
        return f"{self.loss} {self.title} {self.lam:.0e}".replace("e-0", "e-")


def _faster(times: float, *levels: float) -> tuple[Target, ...]:
    return tuple(Target(level, times=times) for level in levels)


def _rows() -> list[Row]:
    digits = {"title": "digits", "dataset": "digits"}
    lams = (1e-2, 1e-3, 1e-4)
    rows = [
        Row(**digits, loss="hinge", lam=lam, targets=_faster(10, 1e-3, 1e-6), quick=lam == 1e-2)
        for lam in lams
    ]
    for n in (200, 400, 1000):
        targets = _faster(10, 1e-3)
        if n == 1000:
            targets = (Target(1e-2, products=100, certified=True),)
        rows.append(Row(f"synthetic-{n}", "synthetic", "hinge", 1e-3, {"n": n}, targets, n == 200))
    for lam, rough, certified in ((1e-3, 2, 5), (1e-4, 5, 20)):
        targets = (
            Target(1e-2, seconds=rough),
            Target(1e-2, seconds=certified, certified=True),
            Target(1e-3, seconds=60, certified=True),
        )
        rows.append(Row("news20", "text", "hinge", lam, {"text": "news20"}, targets))
    rows += _more("hinge")
    rows += [
        Row(
            **digits,
            loss="softmax",
            lam=lam,
            targets=_faster(1, 1e-3, 1e-6),
            quick=lam == 1e-3,
        )
        for lam in lams
    ]
    for n in (200, 1000):
        size = {"n": n, "empty_classes": False}
        faster = _faster(5, 1e-3)
        rows.append(Row(f"synthetic-{n}", "synthetic", "softmax", 1e-3, size, faster, n == 200))
    for lam in (1e-3, 1e-4):
        news20 = {"text": "news20"}
        rows.append(Row("news20", "text", "softmax", lam, news20, _faster(3, 1e-3)))
    return rows + _more("softmax")


def _more(loss: str) -> list[Row]:
    """Real data without a target in figures: text with many classes, and d much larger than n."""
    text = [
        Row(name, "text", loss, 1e-4, {"text": name})
        for name in ("debian_section", "clinc150", "debian_maint")
    ]
    return text + [
        Row(name, "genes", loss, 1e-2, {"genes": name}) for name in ("nci60", "nakayama")
    ]


ROWS = _rows()
