"""The first call of a process: CPU seconds and functions compiled, without and with a cache.

    python benchmarks/cold_start.py [JOB ...]

Every job runs in two new processes with a cache of their own, empty for the first of them. Counted
are our kernels and the parts of numba's numpy that they compile.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import scipy.sparse as sp
from numba.core import event
from sklearn.datasets import load_digits


def digits(loss: str) -> None:
    X, y = load_digits(return_X_y=True)
    solve(X / 16, y, loss=loss, lam=1e-3)


def text(loss: str) -> None:
    """Sparse data like text: few of many words in a row."""
    rng = np.random.default_rng(0)
    X = sp.random_array((2000, 3000), density=0.01, format="csr", rng=rng)
    U = rng.standard_normal((3000, 8)) * (rng.random((3000, 8)) < 0.05)
    solve(X, np.argmax(X @ U, axis=1), loss=loss, lam=2e-3)


def demo(loss: str) -> None:
    from fenchel.demo import fit, tasks

    for task in tasks():
        fit(task)


LOSSES = "hinge", "softmax", "sparsemax"
JOBS = {f"{job.__name__}-{loss}": (job, loss) for job in (digits, text) for loss in LOSSES}
JOBS["demo"] = demo, "hinge"


def in_new_process(job: str, cache: str) -> str:
    """Seconds of the import and of the call, and the number of functions that it compiled."""
    command = [sys.executable, __file__, "--here", job]
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", default=JOBS, metavar="JOB", help=", ".join(JOBS))
    parser.add_argument("--here", action="store_true", help="one job in this process")
    options = parser.parse_args()
    if options.here:
        global solve
        began = time.process_time()
        from fenchel import solve

        imported = time.process_time()
        job, loss = JOBS[options.jobs[0]]
        with event.install_recorder("numba:compile") as recorder:
            job(loss)
        called = time.process_time()
        compiled = sum(happened.is_start for _, happened in recorder.buffer)
        print(f"{imported - began:8.2f}{called - imported:8.2f}{compiled:10d}")
        return
    print(f"{'job':<18}{'cache':<8}{'import':>8}{'call':>8}{'compiled':>10}")
    for name in options.jobs:
        with tempfile.TemporaryDirectory() as cache:
            for state in ("empty", "warm"):
                print(f"{name:<18}{state:<8}{in_new_process(name, cache)}", end="", flush=True)


if __name__ == "__main__":
    main()
