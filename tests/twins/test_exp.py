"""The vectorising exponential against numpy's."""

import numpy as np
import pytest
from numba import njit

from fenchel.kernels.exp import SMALL, TINY, exp, exp_bounded, exp_small, exp_tiny


@njit
def each(x, out):
    for i in range(x.size):
        out[i] = exp(x[i])


@njit
def each_bounded(x, out):
    for i in range(x.size):
        out[i] = exp_bounded(x[i])


@njit
def each_small(x, out):
    for i in range(x.size):
        out[i] = exp_small(x[i])


@njit
def each_tiny(x, out):
    for i in range(x.size):
        out[i] = exp_tiny(x[i])


def ulps(found, expected):
    return np.abs(found - expected) / np.spacing(expected)


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        (each, -745.0, 709.7),
        (each, -1.0, 1.0),
        (each_bounded, -700.0, 700.0),
        (each_small, -SMALL, SMALL),
        (each_tiny, -TINY, TINY),
    ],
)
def test_within_two_ulps(function, low, high):
    x = np.random.default_rng(0).uniform(low, high, 1_000_000)
    out = np.empty_like(x)
    function(x, out)
    assert ulps(out, np.exp(x)).max() <= 2.0


def test_special_values():
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 709.782, 709.79, 1e300, -1e300, 1e-300,
                  -708.5, -740.0, -745.13, -745.14, -750.0])  # fmt: skip
    out = np.empty_like(x)
    each(x, out)
    with np.errstate(over="ignore", under="ignore"):
        expected = np.exp(x)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(expected))
    np.testing.assert_allclose(out[~np.isnan(x)], expected[~np.isnan(x)], rtol=1e-15, atol=5e-324)
    assert out[3] == 0.0
    assert out[-1] == 0.0
    assert np.isinf(out[6])


def test_small_steps_do_not_drift():
    # a biased last bit would show after 10^6 multiplications as 1e-10
    c, product = 1e-3, 1.0
    for _ in range(500_000):
        product *= exp(c)
        product *= exp(-c)
    assert abs(product - 1.0) < 2e-11
