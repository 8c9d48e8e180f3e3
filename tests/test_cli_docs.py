"""The examples of docs/cli.md run, and print what it says they print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from fenchel.cli import main

PAGE = (Path(__file__).parents[1] / "docs" / "cli.md").read_text()
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def commands() -> list[tuple[list[str], str]]:
    """The commands of all console blocks, and what is printed below each."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for part in block.split("$ ")[1:]:
            line, _, output = part.partition("\n")
            found.append((shlex.split(line), output))
    return found


def test_examples(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1], {})
    assert len(commands()) == 4
    for words, expected in commands():
        if words[0] == "head":
            lines = Path(words[2]).read_text().splitlines(keepends=True)
            output = "".join(lines[: abs(int(words[1]))])
        else:
            assert main(words[1:]) == 0
            output = capsys.readouterr().out
        # seconds depend on the machine, the last digits on BLAS
        output, expected = (re.sub(r", [\d.]+ s$", "", t, flags=re.M) for t in (output, expected))
        assert NUMBER.sub("#", output) == NUMBER.sub("#", expected)
        for found, said in zip(NUMBER.findall(output), NUMBER.findall(expected), strict=True):
            assert float(found) == pytest.approx(float(said), rel=0.1)
