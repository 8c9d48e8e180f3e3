"""``fenchel reproduce``: the paper's table and figure."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from fenchel.cli.terminal import EXIT, note, say
from fenchel.exceptions import MissingExtraError
from fenchel.reproduce import figure1, figure1_plot, table1


def run(options: Namespace) -> int:
    """Run and write what was asked for."""
    output = Path(options.output)
    output.mkdir(parents=True, exist_ok=True)
    return _table1(options, output) if options.what == "table1" else _figure1(options, output)


def _table1(options: Namespace, output: Path) -> int:
    say(table1.HEAD)
    rows = table1.run(
        options.configuration,
        output,
        say,
        quick=options.quick,
        repetitions=options.repetitions,
        sizes=options.sizes,
        seed=options.seed,
        command=command(options),
    )
    say(f"seconds grow as size^{table1.growth(rows):.2f}")
    return EXIT.OK


def _figure1(options: Namespace, output: Path) -> int:
    task = figure1.plan(
        options.configuration,
        quick=options.quick,
        full=options.full,
        repetitions=options.repetitions,
        budget=options.budget,
        seed=options.seed,
        names=options.methods,
    )
    folder = figure1.run(task, output, note, command(options))
    say(str(figure1.summarise(task, folder, output, command(options))))
    try:
        for path in figure1_plot.draw(folder, output, options.configuration, figure1.SIZE):
            say(str(path))
    except MissingExtraError as error:
        note(f"no pictures: {error}")
    return EXIT.OK


def command(options: Namespace) -> str:
    """What to type for the same result; the folder of the output does not matter."""
    words = ["fenchel", "reproduce", options.what, "--configuration", options.configuration]
    words += [f"--{flag}" for flag in ("quick", "full") if getattr(options, flag)]
    for name in ("repetitions", "methods", "budget", "sizes"):
        value = getattr(options, name)
        if value is not None:
            words += [f"--{name}", *map(str, value if isinstance(value, list) else [value])]
    return " ".join([*words, "--seed", str(options.seed)])
