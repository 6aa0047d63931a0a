"""PKAWV on Taylor features whose degree grows with the logarithm of the rounds."""

from math import comb
from typing import Annotated, Any, NamedTuple

import numpy as np

from oklnumba.components.features import TaylorFeatures, check_features
from oklnumba.core.arrays import FEATURE_ROWS
from oklnumba.core.checks import require
from oklnumba.core.inputs import cut_blocks
from oklnumba.core.params import KW_ONLY, choice, clone, count, discount_factor, positive, required
from oklnumba.hot.awv import BEST, EXCESS, GROWTH, LARGEST, LOSS
from oklnumba.hot.primitives.factor import Factor
from oklnumba.hot.primitives.jit import UNBOUNDED, Array, Integers
from oklnumba.learners.awv import FORECASTERS, TOTALS, FeatureRidge, describe_space
from oklnumba.learners.base.engine import Facts, Trace

PAST, DEGREE = range(2)  # entries of the counts: rounds in ``past``, and the degree


def _check_taylor(name: str, value: Any) -> TaylorFeatures:
    nested = isinstance(check_features(name, value), TaylorFeatures)
    require(nested, name, value, "TaylorFeatures, whose degrees are nested (PKAWV takes any)")
    return clone(value)


class GrowingState(NamedTuple):
    """AWV or ridge regression on features, and the past while they may grow."""

    factor: Factor
    totals: Annotated[Array, "outputs", "totals", UNBOUNDED]
    counts: Annotated[Integers, "counts"]
    past: Annotated[Array, PAST, "d"]
    labels: Annotated[Array, "outputs", PAST]


class GrowingPKAWV(FeatureRidge[GrowingState]):
    """PKAWV on Taylor features that gain a degree whenever the rounds have doubled.

    Theorem 4 of pkawv (Jezequel, Gaillard, Rudi 2019) asks for a degree of order log(n / lam), so
    for n beforehand. Here the degree grows by one after ``first``, 2 ``first``, 4 ``first``, ...
    rounds. From then on forecasts are, bit for bit, those of PKAWV (Algorithm 1) with the larger
    degree on the same rounds from the start.

    O(r^2) time per round for r features. A growth after t rounds plays them again, in about the
    time of the t rounds until the next growth. While the basis may grow, the past takes 8 t (d + 1)
    bytes (up to twice that in buffers); then memory is O(r^2).

    Parameters
    ----------
    features : TaylorFeatures
        With the degree to begin with.
    lam, forecaster, discount
        As in PKAWV.
    first : int >= 1
        Rounds before the first growth.
    max_size : int >= 1
        Most features.

    Remarks
    -------
    Ours; section 3.1 has the degree "increased slowly over time" and says neither when nor how. One
    degree per doubling is 1.44 log n; Theorem 4 has 2 log n. The certificate is against the best
    function of the present space on each prefix. Its bound includes the loss that each growth took
    off that function. Against the whole RKHS: ``theory.growing_bound``.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> learner = okl.GrowingPKAWV(okl.TaylorFeatures(degree=1), first=100)
    >>> run = okl.run(learner, X, np.sin(3 * X[:, 0]))
    >>> run.sizes[[98, 99, 199, 399, 499]]
    array([ 3,  6, 10, 15, 15])
    """

    _layout = GrowingState

    features: TaylorFeatures = required(_check_taylor)
    _: KW_ONLY
    lam: float = positive(1.0)
    forecaster: str = choice(FORECASTERS, "awv")
    first: int = count(64, least=1)
    max_size: int = count(1000, least=1)
    discount: float = discount_factor(1.0)

    def _start(self, d: int) -> None:
        self._start_degree(d, self._hyper.features.degree)

    def _start_degree(self, d: int, degree: int) -> None:
        """Make the state for features of a degree, before the first round."""
        p = self._hyper
        features = TaylorFeatures(degree, sigma=p.features.sigma, center=p.features.center)
        self._start_factor(features._writer(d), p.discount, totals=TOTALS, counts=2, d=d)
        self._start_forecaster(p.forecaster)
        self._counts[DEGREE] = degree

    def _facts(self) -> Facts:
        return describe_space(
            self, f"the {self._r} Taylor features of degree {self._counts[DEGREE]}"
        )

    def _may_grow(self) -> bool:
        d, degree = self._lengths["d"], int(self._counts[DEGREE]) + 1
        return comb(d + degree, degree) <= self._hyper.max_size

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        first, start = self._hyper.first, 0
        while start < len(X):
            growing, after = self._may_grow(), first << (self._played // first).bit_length()
            stop = min(len(X), start + after - self._played) if growing else len(X)
            part, labels = X[start:stop], y[start:stop]
            if growing:
                self._store(part, labels.T)
            super()._play(part, labels, trace.rows(start, stop))
            if growing and self._played == after:
                self._add_degree(trace.rows(stop - 1, stop))
            start = stop

    def _store(self, X: np.ndarray, Y: np.ndarray) -> None:
        """Append inputs (n, d) and labels (outputs, n) to the past."""
        first = int(self._counts[PAST])
        stop = first + len(X)
        self._reserve({PAST: stop})
        self._state.past[first:stop], self._state.labels[:, first:stop] = X, Y
        self._counts[PAST] = stop

    @np.errstate(invalid="ignore")  # squares of labels beyond 1e154
    def _add_degree(self, last: Trace) -> None:
        """Add a degree, for all rounds so far; ``last`` is the trace of the last one."""
        n, before = int(self._counts[PAST]), self._state
        X, Y, old = before.past[:n], before.labels[:, :n], before.totals
        self._start_degree(X.shape[1], int(self._counts[DEGREE]) + 1)
        self._store(X, Y)
        self._played, trace = 0, self._trace(len(X))
        for rows, block in cut_blocks(X, FEATURE_ROWS):
            super()._play(block, Y.T[rows].copy(), trace.rows(rows.start, rows.stop))
        # The totals are those of the replay; only the best function's loss is also that of the run.
        totals = self._state.totals
        gain = old[:, BEST] - totals[:, BEST]
        for entry in (LOSS, EXCESS, LARGEST):
            totals[:, entry] = old[:, entry]
        totals[:, GROWTH] = old[:, GROWTH] + gain
        _, comparator, bound = last.certificate
        comparator.reshape(-1)[:] = totals[:, BEST]
        bound.reshape(-1)[:] += gain
        last.sizes[0] = self._r
        if not self._may_grow():
            self._free(PAST)

    def _restore(self, state: dict[str, Any]) -> None:
        self._start_degree(self._lengths["d"], int(state["counts"][DEGREE]))
        super()._restore(state)
