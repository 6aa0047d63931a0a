"""PKAWV on Taylor features whose degree grows with the logarithm of the rounds."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from oklnumba.components.features import TaylorFeatures, check_features
from oklnumba.core.checks import require_count, shown
from oklnumba.core.health import Part
from oklnumba.core.state import Reserving, refuse_outside
from oklnumba.hot.awv import BEST, GROWTH, LARGEST, LOG_DET, LOSS
from oklnumba.hot.primitives.jit import ATOMS
from oklnumba.learners.awv import PKAWV, Ridge
from oklnumba.learners.base.player import Trace

# Entries of the counts after ATOMS: rounds whose inputs are kept, degree of the features.
PAST, DEGREE = 1, 2
MOST_DOUBLINGS = 64  # of the rounds, a degree each


class GrowingPKAWV(Ridge):
    """PKAWV on Taylor features that gain a degree whenever the rounds have doubled.

    Theorem 4 of pkawv (Jezequel, Gaillard, Rudi 2019) asks for a degree of order log(n / lam), so
    for n in advance; section 3.1 has it "increased slowly over time". After rounds ``first``, 2
    ``first``, 4 ``first``, ... the degree grows by one, as long as there are at most ``max_size``
    features. From there on forecasts are those of PKAWV (Algorithm 1) with the larger degree, fed
    with the same rounds from the start, to the bit.

    O(r^2) time a round for r features. A growth after t rounds goes over them once more with the
    new features, O(t r^2), as long as the t rounds until the next one take. The past takes 8 t (d +
    1) bytes (up to twice that in buffers) while the basis may grow; then it is freed, and memory is
    O(r^2).

    Parameters
    ----------
    features : TaylorFeatures
        With the degree to begin with.
    lam : float > 0
        Regularisation.
    forecaster : {"awv", "ridge"}
    first : int >= 1
        Rounds before the first growth.
    max_size : int >= 1
        Number of features that growth does not exceed.
    discount : float in (0, 1]
        As in PKAWV.

    Remarks
    -------
    Ours; the paper says neither when nor how. One degree a doubling is 1.44 log n, Theorem 4 has 2
    log n: the certificate tells what it costs. It is against the best function of the present space
    on each prefix, and its bound adds what each growth took off that function's loss; ``size`` and
    ``run.sizes`` after a round that ends with a growth are those of the grown space. Against the
    whole RKHS: ``theory.growing_bound``. Where labels have little noise, "ridge" loses less, as in
    PKAWV.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> learner = okl.GrowingPKAWV(okl.TaylorFeatures(degree=1), first=100)
    >>> run = okl.run(learner, X, np.sin(3 * X[:, 0]))
    >>> run.sizes[[98, 99, 199, 399, 499]]
    array([ 3,  6, 10, 15, 15])
    """

    _STATE = {"counts": ("counts",), "past": (PAST, "d"), "labels": ("outputs", PAST)}
    _several = _in_threads = True
    _grown: tuple[PKAWV, Trace] | None = None  # the next features, just before they are due

    def __init__(
        self,
        features: TaylorFeatures,
        *,
        lam: float = 1.0,
        forecaster: str = "awv",
        first: int = 64,
        max_size: int = 1000,
        discount: float = 1.0,
    ):
        self.features = features
        self.lam = lam
        self.forecaster = forecaster
        self.first = first
        self.max_size = max_size
        self.discount = discount

    @property
    def size(self) -> int:
        """Number of features; 0 before any data."""
        return self._inner.size if self._width is not None else 0

    def _check_params(self) -> None:
        super()._check_params()
        check_features(self.features)
        if not isinstance(self.features, TaylorFeatures):
            raise ValueError(
                "features must be TaylorFeatures, whose degrees are nested, "
                f"but is {shown(self.features)}; PKAWV takes any"
            )
        require_count("first", self.first, 1)
        require_count("max_size", self.max_size, 1)

    def _start(self, d: int) -> None:
        self._make_state(counts=3, d=d, outputs=self._outputs)
        self._take(self._fresh(self.features.degree))

    def _space(self) -> str | None:
        return self._inner._space() if self._width is not None else None

    def _fresh(self, degree: int) -> PKAWV:
        """Return PKAWV with features of a degree, before its first round."""
        params = self.features.get_params(deep=False) | {"degree": degree}
        inner = PKAWV(
            TaylorFeatures(**params),
            lam=self.lam,
            forecaster=self.forecaster,
            discount=self.discount,
        )
        inner._open(self._past.shape[1], self._outputs)
        return inner

    def _take(self, inner: PKAWV) -> None:
        self._inner = inner
        self._counts[ATOMS], self._counts[DEGREE] = inner.size, inner.features.degree

    def _may_grow(self) -> bool:
        return self._fits(int(self._counts[DEGREE]) + 1)

    def _fits(self, degree: int) -> bool:
        return comb(self._past.shape[1] + degree, degree) <= self.max_size

    def _next_growth(self) -> int:
        """Return the round after which the degree grows next, if it may."""
        after = int(self.first)
        while after <= self._played:
            after *= 2
        return after

    def _ahead(self, n: int) -> int:
        if not self._may_grow():
            return n
        after = self._next_growth()
        rows = min(n, after - self._played)
        self._reserve({PAST: int(self._counts[PAST]) + rows})
        if self._played + rows == after and self._grown is None:
            with Reserving(self):  # what the growth takes, before the round after which it is
                grown = self._fresh(int(self._counts[DEGREE]) + 1)
                self._grown = grown, Trace.empty(after, True, self._outputs)
        return rows

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        start = 0
        while start < len(X):
            to_grow, after = self._may_grow(), self._next_growth()
            stop = start + self._ahead(len(X) - start)
            part, labels = X[start:stop], y[start:stop]
            if to_grow:
                self._keep(part, labels)
            self._inner._played = self._played  # which a state that was loaded does not tell
            self._play_inner(self._inner, part, labels, trace.rows(start, stop))
            self._played += stop - start
            if to_grow and self._played == after:
                self._grow(trace.rows(stop - 1, stop))
            start = stop

    def _keep(self, X: np.ndarray, y: np.ndarray) -> None:
        kept = int(self._counts[PAST])
        total = kept + len(y)
        self._past[kept:total], self._labels[:, kept:total] = X, y.T
        self._counts[PAST] = total

    def _play_inner(self, inner: PKAWV, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        try:
            inner._play(X, y, trace)
        except FloatingPointError as error:
            self._broken = str(error)
            raise

    def _grow(self, last: Trace) -> None:
        """Take one degree more over all rounds so far, the last of which left this trace."""
        X, y = self._used("past"), self._used("labels").T.copy()
        y = y if self._outputs > 1 else y[:, 0]
        grown, trace = self._grown
        self._grown = None
        self._play_inner(grown, X, y, trace)
        # Its totals are those of a run of its own; only the best function's loss is also ours.
        totals, old = grown._totals, self._inner._totals
        gain = old[:, BEST] - totals[:, BEST]
        for entry in (LOSS, LOG_DET, LARGEST):
            totals[:, entry] = old[:, entry]
        totals[:, GROWTH] = old[:, GROWTH] + gain
        last.comparator.reshape(-1)[:] = totals[:, BEST]
        last.bound.reshape(-1)[:] += gain
        last.sizes[0] = grown.size
        self._take(grown)
        if not self._may_grow():  # the past was for growing
            self._counts[PAST] = 0
            self._past, self._labels = np.zeros((0, X.shape[1])), np.zeros((self._outputs, 0))
            self._rooms[PAST] = 0

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        return self._inner._forecast(X)

    def _matrices(self) -> list[Part]:
        # Its log det is that of all spaces there were.
        return [part._replace(drift=None) for part in self._inner._matrices()]

    def _state(self) -> dict[str, Any]:
        return super()._state() | self._inner._state()

    def _output_axes(self) -> dict[str, int]:
        return super()._output_axes() | self._inner._output_axes()

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._take(self._fresh(int(self._counts[DEGREE])))
        self._inner._broken = self._broken or self._fault
        self._inner._restore(state)

    def _check_state(self) -> None:
        first, degree = int(self.features.degree), int(self._counts[DEGREE])
        refuse_outside("counts", self._counts[[DEGREE]], first, first + MOST_DOUBLINGS)
        if degree > first and not self._fits(degree):
            raise ValueError(f"its features have the degree {degree}, beyond max_size")
