"""The arguments of the command, and its help."""

from __future__ import annotations

import argparse
from typing import Any

import fenchel
from fenchel.cli import fit, predict, reproduce
from fenchel.cli.files import FORMATS
from fenchel.losses import LOSSES
from fenchel.reproduce.configurations import CONFIGURATIONS
from fenchel.solvers.registry import SOLVERS

EXAMPLES = """examples:
  fenchel fit train.svm --alpha 1e-3 --model model.npz
  fenchel predict model.npz test.svm --score
  fenchel reproduce table1 --quick

exit codes:
  0  all went well
  1  the input or the data are at fault
  2  wrong usage
  3  the model was fitted and written, but not to the tolerance
  130  interrupted (a fit that was interrupted writes its best model so far)
  141  the reader of the output went away
"""

FIT = """examples:
  fenchel fit train.svm --alpha 1e-3 --model model.npz
  fenchel fit train.csv --target species --loss softmax --alpha 0.1 --alpha-scale max
  fenchel fit X.npy --labels y.txt --class-weight balanced --max-time 60 --history checks.csv -v

The certificate is printed when the fit is over: the smallest possible objective lies between
"at least" and "objective". Without --model nothing is written but the history.
"""

PREDICT = """examples:
  fenchel predict model.npz test.svm > labels.txt
  fenchel predict model.npz test.csv --target species --score
  fenchel predict model.npz X.npy --top 5 --output best.csv
  fenchel predict model.npz test.svm.gz --proba --output probabilities.csv
"""

REPRODUCE = """examples:
  fenchel reproduce table1 --quick
  fenchel reproduce table1 --configuration paper --output results
  fenchel reproduce figure1 --configuration authors --methods full-smd mirror-prox
  fenchel reproduce figure1 --configuration paper --size 50 --full

--configuration paper has the settings printed in the paper, authors those of its authors'
program (they differ). Every method of figure1 has a budget of CPU seconds, and ends at the most
iterations that fit; --full lifts it. A method whose file is in the output is not run again.
"""


class _Parser(argparse.ArgumentParser):
    """Wrong usage in one line; the help is one option away."""

    def error(self, message: str) -> Any:
        self.exit(2, f"fenchel: usage: {message} (see {self.prog} --help)\n")


def make_parser() -> argparse.ArgumentParser:
    """The parser; ``run`` of what it returns is the function to call."""
    parser = _Parser(
        prog="fenchel",
        description="Sparse multiclass linear classifiers with a duality-gap certificate.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"fenchel {fenchel.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_fit(_command(commands, "fit", "fit a model and certify it", FIT))
    _add_predict(_command(commands, "predict", "predict with a fitted model", PREDICT))
    _add_reproduce(
        _command(commands, "reproduce", "make the paper's table or figure again", REPRODUCE)
    )
    return parser


def _command(commands: Any, name: str, summary: str, epilog: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary.capitalize() + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _add_data(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("data").add_argument
    add(
        "data",
        metavar="DATA",
        help="file with the samples: svmlight (.svm, .libsvm, .txt), .csv, .tsv (these also with "
        ".gz or .bz2), .npz, .npy",
    )
    add("--format", choices=FORMATS, help="what DATA is, if its name does not say")
    add(
        "--separator",
        type=_character,
        metavar="CHARACTER",
        help="between two cells of a table, such as ';' (default: a comma in .csv, a tab in .tsv)",
    )
    add(
        "--target",
        metavar="COLUMN",
        help="column of the labels in .csv and .tsv: a name or a number from 1 (default: that of "
        "the model, or the last)",
    )
    add("--labels", metavar="FILE", help="labels in a file of their own: .npy, or one a line")
    add(
        "--index-base",
        choices=["auto", "0", "1"],
        default="auto",
        help="the number of the first feature in svmlight (default: auto, that of the model, or 0 "
        "if there is a feature 0, else 1)",
    )


def _add_fit(parser: argparse.ArgumentParser) -> None:
    _add_data(parser)
    add = parser.add_argument_group("model").add_argument
    add("--loss", choices=sorted(LOSSES), default="hinge")
    add("--alpha", type=float, default=1e-3, metavar="A", help="the penalty (default: 1e-3)")
    add(
        "--alpha-scale",
        choices=["absolute", "max"],
        default="absolute",
        help="max: alpha is a fraction of the smallest penalty whose solution is zero",
    )
    add("--penalty", choices=["l1", "group"], default="l1")
    add("--positive", action="store_true", help="no negative coefficients")
    add("--no-intercept", action="store_true", help="no constant for each class")
    add("--class-weight", metavar="W", help="balanced, or factors such as spam=2,ham=1")
    add = parser.add_argument_group("run").add_argument
    add(
        "--tol",
        type=float,
        default=1e-3,
        metavar="T",
        help="stop at a gap of T times the objective at zero (default: 1e-3)",
    )
    add("--solver", choices=["auto", *sorted(SOLVERS)], default="auto")
    add("--max-time", type=float, metavar="SECONDS")
    add("--max-iter", type=int, metavar="N")
    add("--seed", type=int, default=0, help="of randomised solvers (default: 0)")
    add = parser.add_argument_group("output").add_argument
    add("--model", metavar="FILE", help="write the model here")
    add("--history", metavar="CSV", help="write the checks of the certificate here")
    add("-v", "--verbose", action="store_true", help="show the checks as they come")
    parser.set_defaults(run=fit.run)


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="file that fit wrote")
    _add_data(parser)
    output = parser.add_argument_group("output")
    add = output.add_mutually_exclusive_group().add_argument
    add("--proba", action="store_true", help="probabilities of all classes")
    add("--decision", action="store_true", help="scores of all classes")
    add("--top", type=int, metavar="K", help="the K best classes and their scores")
    add("--score", action="store_true", help="the accuracy on the labels of DATA, and nothing else")
    output.add_argument("--output", metavar="FILE", help="write there, not to standard output")
    parser.set_defaults(run=predict.run)


def _add_reproduce(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("what", choices=["table1", "figure1"])
    add(
        "--configuration",
        choices=list(CONFIGURATIONS),
        default="authors",
        help="whose settings (default: authors)",
    )
    add(
        "--output",
        default="reproduce-output",
        metavar="FOLDER",
        help="for the results (default: reproduce-output)",
    )
    add("--quick", action="store_true", help="a small problem, in seconds")
    add(
        "--size",
        type=_positive(int),
        metavar="N",
        help="n = d = k of figure1, with lam = 1/N (default: 1000; --quick has its own, 120)",
    )
    add("--full", action="store_true", help="figure1 without budgets: many hours")
    add(
        "--repetitions",
        type=_positive(int),
        metavar="N",
        help="of the randomised methods (default: 10; 2 with --quick)",
    )
    add("--methods", nargs="+", metavar="NAME", help="only these of figure1 (default: all)")
    add(
        "--budget",
        type=_positive(float),
        metavar="SECONDS",
        help="CPU seconds for each method of figure1",
    )
    add("--sizes", nargs="+", type=_positive(int), metavar="N", help="only these of table1")
    add("--draw", action="store_true", help="run nothing: summarise and draw the files of figure1")
    add("--seed", type=int, default=0, help="of the data (default: 0)")
    parser.set_defaults(run=reproduce.run)


def _positive(number: type) -> Any:
    def parse(text: str) -> Any:
        value = number(text)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"{text} is not positive")
        return value

    parse.__name__ = f"positive {number.__name__}"
    return parse


def _character(text: str) -> str:
    if len(text) != 1 or text in '"\r\n':
        raise argparse.ArgumentTypeError(f"{text!r} is not one character that can separate cells")
    return text
