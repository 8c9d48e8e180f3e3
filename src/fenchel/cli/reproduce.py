"""``fenchel reproduce``: the paper's table and figure."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from fenchel.cli.terminal import EXIT, note, say
from fenchel.exceptions import MissingExtraError
from fenchel.reproduce import figure1, figure1_plot, results, table1
from fenchel.reproduce.records import facts

#: Options that only one of the two has a use for.
OWN = {"table1": ("sizes",), "figure1": ("size", "methods", "budget", "full", "draw")}

#: Options that exclude each other.
CONTRADICTIONS = (("full", "quick"), ("full", "budget"), ("quick", "size"))


def run(options: Namespace) -> int:
    """Run and write what was asked for."""
    _check_options(options)
    output = Path(options.output)
    if output.exists() and not output.is_dir():
        raise NotADirectoryError(f"--output {output} is a file: give the name of a folder")
    output.mkdir(parents=True, exist_ok=True)
    return _table1(options, output) if options.what == "table1" else _figure1(options, output)


def _check_options(options: Namespace) -> None:
    """Refuse what would be ignored."""
    for what, names in OWN.items():
        for name in names:
            if what != options.what and getattr(options, name):
                raise ValueError(f"--{name} is an option of {what} only: leave it out")
    for one, other in CONTRADICTIONS:
        if getattr(options, one) and getattr(options, other):
            raise ValueError(f"--{one} and --{other} contradict each other: leave one out")


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
        size=options.size,
        repetitions=options.repetitions,
        budget=options.budget,
        seed=options.seed,
        names=options.methods,
    )
    if not options.draw:
        figure1.run(task, output, note, command(options))
    files = output / task.title
    curves = results.read_curves(files, task.size)
    if not curves:
        raise ValueError(f"{files} holds no results: run without --draw first")
    about = facts(task.seed, command(options), configuration=options.configuration, size=task.size)
    say(str(results.summarise(curves, output / f"{task.title}.csv", about)))
    # the authors' numbers belong to their settings, and to their size
    comparable = options.configuration == "authors" and task.size == figure1.SIZE
    theirs = results.authors_curves() if comparable else {}
    try:
        for path in figure1_plot.draw(curves, theirs, files, options.configuration, task.size):
            say(str(path))
    except MissingExtraError as error:
        note(f"no pictures: {error}")
    theirs = {f"{name}, authors' numbers": curve for name, curve in theirs.items()}
    tables = (results.reached, results.after, results.slopes)
    say("\n\n".join("\n".join(table(curves | theirs)) for table in tables))
    return EXIT.OK


def command(options: Namespace) -> str:
    """What to type for the same result; the folder of the output does not matter."""
    words = ["fenchel", "reproduce", options.what, "--configuration", options.configuration]
    words += [f"--{flag}" for flag in ("quick", "full", "draw") if getattr(options, flag)]
    for name in ("size", "repetitions", "methods", "budget", "sizes"):
        value = getattr(options, name)
        if value is not None:
            words += [f"--{name}", *map(str, value if isinstance(value, list) else [value])]
    return " ".join([*words, "--seed", str(options.seed)])
