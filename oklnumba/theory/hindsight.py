"""The best functions in hindsight, and regret against them."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oklnumba.components import losses
from oklnumba.core import checks, inputs
from oklnumba.core.display import repr_fields
from oklnumba.theory.arguments import checks_arguments
from oklnumba.theory.certified import conjugate_gradients, extend_to_rkhs
from oklnumba.theory.comparators import GAP, Comparator, best_weights, extend_state, refuse_gap
from oklnumba.theory.matrix import EPS, factor_kernel, rounding_share, square_root
from oklnumba.theory.passes import Replay, as_source, solve_in_passes

EXACT_ROUNDS = 20_000  # with one factor: a kernel matrix of 3.2 GB
EVERY_ROUND = 2_000  # with other losses than squared: most rounds for regret after each round
COLUMNS = 64  # rounds whose residuals are solved for together
SHARE = 1e-4  # of the objective: with features the solver stops at this width of the interval
NARROW = 1e-3  # of the objective: so narrow, no more landmarks are tried
WIDE = 0.1  # of the objective: a wider interval gives a warning


class RegretCurve(NamedTuple):
    """Regret at some rounds of a run, against functions chosen in hindsight.

    Attributes
    ----------
    rounds : ndarray of int, shape (k,)
        Rounds played.
    prefix, prefix_penalised : ndarray of shape (k,)
        Against the loss of f_t, the best penalised function of the rounds so far, and against its
        loss + lam |f_t|^2.
    final, final_penalised : ndarray of shape (k,)
        The same against f_n, the best penalised function of the whole run.
    low, high : ndarray of shape (k,)
        Bounds on ``prefix_penalised`` against the exact best function, rounding included. The
        other regrets are against the solver's functions. They are as near to the exact ones as the
        penalised objective tells, because f_t is unique.
    """

    rounds: np.ndarray
    prefix: np.ndarray
    prefix_penalised: np.ndarray
    final: np.ndarray
    final_penalised: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def __repr__(self) -> str:
        last = {name: a[-1].item() for name, a in self._asdict().items() if len(a)}
        return repr_fields(self, points=len(self.rounds), **last)


class Hindsight:
    """The best penalised functions of a stream, computed once for any number of runs.

    f_t = argmin_f sum_{s<=t} loss(f(x_s), y_s) + lam |f|^2 over the RKHS, for any round t, with an
    interval that holds the minimum, rounding included:

    - squared loss, up to EXACT_ROUNDS = 20,000 rounds: one Cholesky factor L L' = K + lam I serves
      all rounds; with u = L^-1 y the minimum after t rounds is lam sum_{s<=t} u_s^2. O(n^3) time,
      8 n^2 bytes;
    - other losses, up to EXACT_ROUNDS: at each wanted round, in coordinates of a pivoted factor of
      K, SciPy's L-BFGS-B, which starts from the last solution; up to rank r = 500 Newton's method
      first, and of losses with a kink an interior-point method. O(n r) memory;
    - longer streams, or with ``landmarks``: the best function of the span of M landmarks, in
      O(n M^2) time and O(M^2) memory. Squared loss takes two passes over the rows for all wanted
      rounds together, other losses some twenty for each. The interval, in the whole RKHS, is an
      estimate by random frequencies plus 4.5 standard errors for kernels of |x - z|, to hold with a
      probability of 0.999; for others it is certain but wide, unless the landmarks span the RKHS;
    - with ``features``: at each wanted round conjugate gradients on (I + K / lam) a = y,
      preconditioned by ridge regression on the features. For other losses a function of the RKHS
      from the dual variables of the best one of the features' span, by one product with K. O(t^2 d)
      time per product on all cores, O(t) memory, no kernel matrix.

    Before work of more than a minute with landmarks, a line on stderr says how long it will take.

    Parameters
    ----------
    X, y : array_like of shape (n, d) and (n,)
        Or X alone, a stream that can be played again: ``okl.stream(path, label=...)``, or a
        function that returns an iterator of pairs (X, y).
    lam : float > 0
        Of the penalty lam |f|^2; for a theorem with lam / 2 |f|^2 pass half of its lam.
    features : Features, optional
        For solving without a kernel matrix. The functions are still those of the whole RKHS. The
        better the features approximate the kernel, the narrower the interval; an interval wider
        than a tenth of the objective gives a warning.
    landmarks : int >= 1 or array_like of shape (M, d), optional
        How many, which are drawn from 10,000 random rows by their distance to the span of those
        drawn before, or the landmarks. None, on long streams: 500, 1000, 2000, until the interval
        is at most a thousandth of the objective.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    >>> y, kernel = np.sin(3 * X[:, 0]), okl.Gaussian(1.0)
    >>> best = okl.theory.Hindsight(kernel, X, y, 1.0)
    >>> for learner in (okl.KernelAWV(kernel), okl.KernelRidge(kernel)):
    ...     print(best.regret(okl.run(learner, X, y).predictions, at=2).prefix_penalised.round(2))
    [3.78 4.25]
    [3.26 3.58]
    """

    @checks_arguments()
    def __init__(
        self, kernel: Any, X: Any, y: ArrayLike | None = None, lam: float = 1.0,
        loss: str = "squared", features: Any = None, landmarks: int | ArrayLike | None = None,
    ):  # fmt: skip
        self.kernel, self.lam, self.loss = kernel, lam, loss
        self._rule, self._warned = losses.get(loss), False
        self._solved: dict[int, tuple[float, ...]] = {}  # round: loss, objective, lower, upper
        self._last: Any = None  # the comparator of the whole stream
        self._minima: np.ndarray | None = None
        self._solver: Callable[[list[int]], Iterable[Comparator]]  # one of four methods below
        if landmarks is not None:
            if checks.number(landmarks):
                landmarks = checks.require_count("landmarks", landmarks, 1)
            else:
                landmarks = inputs.as_inputs(landmarks, name="landmarks")
        if y is not None:
            X = inputs.as_inputs(X)
            self._X, self.labels = X, inputs.as_labels(y, len(X), self._rule.classes)
        in_passes = landmarks is not None or y is None or len(X) > EXACT_ROUNDS
        if features is not None and (landmarks is not None or y is None):
            raise ValueError("features are for arrays X and y without landmarks; leave them out")
        if features is None and in_passes:
            source = as_source(X) if y is None else lambda: [(X, self.labels)]
            self._rows, self._landmarks = Replay(source, self._rule.classes), landmarks
            self.labels, self._solver = self._rows.y, self._solve_in_passes
        elif features is not None:
            self._features, self._solver = features, self._solve_on_features
        elif loss == "squared":
            L = factor_kernel(kernel, X, lam)
            u = scipy.linalg.solve_triangular(L, self.labels, lower=True, check_finite=False)
            self._factor, self._minima = (L, u), lam * np.cumsum(u**2)
            self._solver = self._solve_by_factor
        else:
            self._root, self._solver = square_root(kernel, X), self._solve_by_root

    def __repr__(self) -> str:
        return repr_fields(
            self, kernel=self.kernel, rounds=self.rounds, lam=self.lam, loss=self.loss
        )

    @property
    def rounds(self) -> int:
        """Rounds of the stream."""
        return len(self.labels)

    def comparator(self) -> Comparator:
        """Return the best function of the whole stream: loss, norm, predictions and interval."""
        self._solve(np.array([self.rounds]))
        return self._last

    @np.errstate(under="ignore")
    def regret(
        self, predictions: ArrayLike, at: int | ArrayLike | None = None
    ) -> np.ndarray | RegretCurve:
        """Return the regret of forecasts for this stream, a RegretCurve or an array (n,).

        With ``at``, increasing rounds or a number of evenly spaced rounds, the last included:
        against the best function so far and the final one, penalised and not. Without: after every
        round, against the best penalised function so far, if one factor gives all of them (squared
        loss, no features), else the curve of the last round alone.
        """
        predictions = inputs.as_values(predictions, self.rounds, "predictions")
        losses_so_far = np.cumsum(self._rule.value(predictions, self.labels))
        if at is None and self._minima is not None:
            return losses_so_far - self._minima
        at = self._choose_rounds(1 if at is None else at)
        self._solve(np.append(at, self.rounds))
        played, last = losses_so_far[at - 1], self._last
        loss, objective, lower, upper = np.array([self._solved[int(t)] for t in at]).T
        final = played - np.cumsum(self._rule.value(last.predictions, self.labels))[at - 1]
        rounding = EPS * (at + 2) * (played + upper)  # of sums of losses, and their difference
        return RegretCurve(
            at, played - loss, played - objective, final, final - self.lam * last.norm**2,
            low=played - upper - rounding, high=played - lower + rounding,
        )  # fmt: skip

    def _choose_rounds(self, at: int | ArrayLike) -> np.ndarray:
        """Return rounds as an increasing array; an integer is a number of evenly spaced rounds."""
        n = self.rounds
        if isinstance(at, int | float | str | np.integer):
            at = checks.require_count("at", at, 1)
            return np.unique(np.linspace(0, n, min(int(at), n) + 1).round().astype(int)[1:])
        rounds = inputs.as_numbers(at, "at")
        valid = rounds.ndim == 1 and rounds.size > 0 and np.asarray(at).dtype.kind in "iu"
        inside = valid and rounds[0] >= 1 and rounds[-1] <= n and (np.diff(rounds) > 0).all()
        checks.require(inside, "at", at, f"increasing rounds from 1 to {n}")
        return rounds.astype(np.int64)

    @np.errstate(under="ignore")
    def _solve(self, at: np.ndarray) -> None:
        """Find the best functions after the rounds ``at``, each only once."""
        left = [int(t) for t in np.unique(at) if int(t) not in self._solved]
        for t, best in zip(left, self._solver(left), strict=True):
            value = float(np.clip(best.loss + self.lam * best.norm**2, best.lower, best.upper))
            self._solved[t] = best.loss, value, best.lower, best.upper
            if t == self.rounds:
                self._last = best
            width = best.upper - best.lower
            if width > WIDE * best.upper and not self._warned:
                self._warned = True
                checks.warn(
                    f"after round {t} the best objective is uncertain by "
                    f"{100 * width / best.upper:.0f} %, so the regret is too; pass more landmarks, "
                    "features that hold more of the kernel, or raise lam"
                )

    def _solve_in_passes(self, at: list[int]) -> Iterable[Comparator]:
        stream = self.kernel, self._rows, self.lam, self._rule
        return solve_in_passes(*stream, self._landmarks, at, NARROW) if at else []

    def _solve_on_features(self, at: list[int]) -> Iterator[Comparator]:
        for t in at:
            stream = self.kernel, self._X[:t], self.labels[:t], self.lam, self._features
            if self.loss == "squared":
                yield conjugate_gradients(*stream, SHARE)
            else:
                yield extend_to_rkhs(*stream, self._rule)

    def _solve_by_factor(self, at: list[int]) -> Iterator[Comparator]:
        """Solve for the residuals lam L_t^-T u_t of the best functions, COLUMNS at a time."""
        L, u = self._factor
        n, d = self._X.shape
        trace = float(self.kernel.diag(self._X).sum()) + n * self.lam
        # The error of K + lam I and its factor has at most this norm, times lam. It changes the
        # minimum lam y'(K + lam I)^-1 y by at most this share.
        off = (rounding_share(self.kernel, n, d) + 8.0 * EPS * n) * trace / self.lam
        for start in range(0, len(at), COLUMNS):
            some = at[start : start + COLUMNS]
            columns = np.zeros((n, len(some)), order="F")
            for k, t in enumerate(some):
                columns[:t, k] = u[:t]
            residuals = self.lam * scipy.linalg.solve_triangular(
                L, columns, lower=True, trans=1, overwrite_b=True, check_finite=False
            )
            for k, t in enumerate(some):
                e, y = residuals[:t, k], self.labels[:t]
                least = float(self._minima[t - 1])  # type: ignore[index]
                norm = float(np.sqrt(max(float(e @ (y - e)) / self.lam, 0.0)))
                bounds = max(least * (1.0 - off), 0.0), least * (1.0 + off)
                yield Comparator(float(e @ e), norm, y - e, *bounds)

    def _solve_by_root(self, at: list[int]) -> Iterator[Comparator]:
        """Solve in coordinates F with F F' = K to rounding, starting from the last solution."""
        F, state, last = self._root, None, 0
        n, d = self._X.shape
        # K - F F' and rounding, as a share of (sum |a_i| sqrt(k(x_i, x_i)))^2
        off = rounding_share(self.kernel, n, d) + 8.0 * EPS * (n + F.shape[1])
        roots = np.sqrt(self.kernel.diag(self._X))
        for t in at:
            start = None if state is None else extend_state(state, self._rule, last, t)
            best, weights = best_weights(F[:t], self.labels[:t], self.lam, self._rule, start)
            state, last = weights.state, t
            loose = off * float(roots[:t] @ np.abs(weights.dual)) ** 2 / (4.0 * self.lam)
            yield best._replace(lower=max(best.lower - loose, 0.0), upper=best.upper + loose)


@checks_arguments()
def comparator(
    kernel: Any, X: ArrayLike, y: ArrayLike, lam: float, loss: str = "squared",
    features: Any = None,
) -> Comparator:  # fmt: skip
    """Return argmin_f sum loss(f(x), y) + lam |f|^2 over the RKHS, and an interval of the minimum.

    As ``Hindsight(kernel, X, y, lam, loss).comparator()``. With ``features`` it is the argmin over
    their span, in O(n r^2), and the interval is that of the span.

    Examples
    --------
    >>> best = okl.theory.comparator(okl.Linear(), [[1.0], [2.0]], [1.0, 1.0], 1.0, loss="hinge")
    >>> round(best.loss, 6), round(best.norm, 6)
    (0.5, 0.5)
    """
    X = inputs.as_inputs(X)
    if features is None:
        return Hindsight(kernel, X, y, lam, loss).comparator()
    rule = losses.get(loss)
    y = inputs.as_labels(y, len(X), rule.classes)
    return best_weights(features.transform(X), y, lam, rule)[0]


@checks_arguments()
def norm_ball_comparator(
    kernel: Any, X: ArrayLike, y: ArrayLike, radius: float, loss: str = "hinge"
) -> Comparator:
    """Return argmin of sum loss(f(x), y) over |f| <= radius: loss, norm and predictions.

    SciPy's brentq finds the lam at which the ``comparator`` has the norm ``radius``, to a relative
    1e-6; the norm never exceeds ``radius``. If it is smaller where no function of that norm has a
    loss smaller by a relative 1e-6, or at lam = 1e-6, that function is returned.

    Examples
    --------
    >>> best = okl.theory.norm_ball_comparator(okl.Linear(), [[1.0], [2.0]], [1.0, 1.0], 0.5)
    >>> round(best.loss, 4), round(best.norm, 4)
    (0.5, 0.5)
    """
    X = inputs.as_inputs(X)
    rule = losses.get(loss)
    y = inputs.as_labels(y, len(X), rule.classes)
    F = square_root(kernel, X)
    solutions: dict[float, Comparator] = {}
    start: list[np.ndarray | None] = [None]
    cure = f"lower radius={radius!r}"  # there is no lam to raise

    def excess(log_lam: float) -> float:
        best, weights = best_weights(F, y, 10.0**log_lam, rule, start[0], cure)
        refuse_gap(best, weights.gap, rule, GAP, cure)
        solutions[log_lam], start[0] = best, weights.state
        return best.norm / radius - 1.0

    low = high = 0.0
    if excess(0.0) > 0.0:
        while excess(high) > 0.0:
            low, high = high, high + 1.0
    else:
        while excess(low) <= 0.0:
            best = solutions[low]
            # No function in the ball has a loss smaller by more than this, or than all of it.
            gain = min(10.0**low * (radius**2 - best.norm**2), best.loss)
            if low <= -6.0 or gain <= GAP * (1.0 + best.loss):
                return best
            low, high = low - 1.0, low
    root = scipy.optimize.brentq(excess, low, high, xtol=1e-7, rtol=1e-7)
    best = solutions[root]
    if best.norm <= radius:
        return best
    return min((b for b in solutions.values() if b.norm <= radius), key=lambda b: b.loss)


@checks_arguments()
def regret(
    predictions: ArrayLike, kernel: Any, X: ArrayLike, y: ArrayLike, lam: float,
    loss: str = "squared",
) -> np.ndarray:  # fmt: skip
    """Return the regret after each round against the best penalised function of that prefix, (n,).

    Squared loss: one factor serves every prefix (see ``Hindsight``), for at most 20,000 rounds.
    Other losses: one solve per round, for at most 2,000.

    Examples
    --------
    >>> okl.theory.regret([0.0, 0.0], okl.Linear(), [[1.0], [1.0]], [1.0, 3.0], 2.0).round(6)
    array([0.333333, 4.      ])
    """
    X = inputs.as_inputs(X)
    max_rounds = EXACT_ROUNDS if loss == "squared" else EVERY_ROUND
    if len(X) > max_rounds:
        raise ValueError(
            f"X has {len(X)} rows, but the {loss} regret after every round is for at most "
            f"{max_rounds}; name some: Hindsight(kernel, X, y, lam, loss).regret(predictions, at)"
        )
    best = Hindsight(kernel, X, y, lam, loss)
    if loss == "squared":
        return np.asarray(best.regret(predictions))
    return best.regret(predictions, at=len(X)).prefix_penalised  # type: ignore[union-attr]
