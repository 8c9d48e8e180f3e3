"""Tables of results on the pages of docs/, kept in step with the files they come from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def markdown(head: list[str], rows: Iterable[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def fill(page: str, name: str, text: str) -> None:
    """Print a table, and put it between its markers on the page where there are any."""
    print(f"\n{name}\n\n{text}")
    path = DOCS / page
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, found, rest = path.read_text(encoding="utf-8").partition(begin)
    if found:
        after = rest.partition(end)[2]
        path.write_text(f"{before}{begin}{text}\n{end}{after}", encoding="utf-8")
