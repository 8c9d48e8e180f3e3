"""What the scripts here share: results with their facts, and the look of the pictures.

rows = [{"data": "digits", "seconds": 1.2}, ...]
write_csv(RESULTS / "name.csv", rows, facts(seed=0))
with styled():
    figure, axes = new_figure(2)
    ...
save_figure(figure, RESULTS / "name.png")
"""

from __future__ import annotations

from pathlib import Path

from fenchel.plotting import new_figure
from fenchel.reproduce.records import facts, read_csv, save_figure, styled, write_csv

__all__ = ["RESULTS", "facts", "new_figure", "read_csv", "save_figure", "styled", "write_csv"]

RESULTS = Path(__file__).parent / "results"
