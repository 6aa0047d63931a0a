"""Against every f at once, of any norm: Kernel-AWV with each lam of a grid, aggregated.

docs/guarantees.md: the regret against f is at most lam |f|^2 + B^2 log det(I + K / lam) + 2 B^2
log N for the lam of the grid that makes this least, which nobody has to know.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oklnumba as okl
from tests.checks import COMPILED
from tests.streams import inputs, labels

KERNEL = okl.Gaussian(0.7)
LAMS = 4.0 ** np.arange(-6, 7)
N = 60
pytestmark = pytest.mark.filterwarnings("ignore:the kernel is 0 between nearly all")


def play(X, y, lams=LAMS):
    """Return the loss of the grid of lams."""
    grid = okl.Experts([okl.KernelAWV(KERNEL, lam=lam) for lam in lams], B=np.abs(y).max())
    return np.square(okl.run(grid, X, y).predictions - y).sum()


def share_of_bound(X, y, loss, lams=LAMS):
    """Return the largest regret, divided by its bound, against f of all norms that matter.

    The best f of each norm is a ridge regression, with some penalty.
    """
    (values, V), B = np.linalg.eigh(KERNEL(X)), np.abs(y).max()
    values = np.maximum(values, 0.0)
    dets = np.log1p(values / lams[:, None]).sum(axis=1)
    penalties = np.geomspace(1e-6, 1e6, 25)[:, None]
    a = V.T @ y / (values + penalties)  # of f in the eigenvectors; penalty * a is what it misses
    norms, losses = (values * a**2).sum(axis=1), ((penalties * a) ** 2).sum(axis=1)
    bounds = (lams * norms[:, None] + B**2 * dets).min(axis=1) + 2 * B**2 * np.log(len(lams))
    return ((loss - losses) / bounds).max()


KINDS = "uniform", "clustered", "repeated", "sorted", "far apart"


@st.composite
def streams(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = inputs(draw(st.sampled_from(KINDS)), N, 2, rng)
    y = labels(draw(st.sampled_from(["function", "coins", "alternating", "drifting"])), X, rng)
    return X, y * draw(st.sampled_from([1e-3, 1.0, 1e3])) + 0.0


@pytest.mark.slow
@settings(max_examples=100 if COMPILED else 10)
@given(streams())
def test_the_bound_holds_against_every_norm_at_once(stream):
    X, y = stream
    if y.any():
        assert share_of_bound(X, y, play(X, y)) <= 1.0


def test_half_of_the_bound_does_not_hold():
    y = np.random.default_rng(0).choice([-1.0, 1.0], N)
    X = 100.0 * np.arange(N)[:, None]
    assert 0.5 < share_of_bound(X, y, play(X, y)) <= 1.0


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
def test_one_lam_alone_exceeds_it(size):
    """The control: with lam = 1 a function of large norm is learned too slowly, at any scale."""
    X = np.random.default_rng(1).uniform(-1, 1, (400, 2))
    y = size * np.sin(20.0 * X[:, 0])
    grid, alone = play(X, y), play(X, y, [1.0])
    assert share_of_bound(X, y, grid) <= 1.0 < share_of_bound(X, y, alone)
