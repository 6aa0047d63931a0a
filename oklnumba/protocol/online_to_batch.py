"""One fixed function out of an online run."""

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.core import checks, inputs
from oklnumba.core.guard import locked
from oklnumba.core.health import Part, name_members
from oklnumba.core.params import KW_ONLY, count, random_seed, required
from oklnumba.core.state import Stateful
from oklnumba.learners.base.learner import Learner, Trace
from oklnumba.learners.base.traits import Refusal, Traits
from oklnumba.learners.base.wrapper import RowWrapper, check_member

FAR = 2**62  # a round that is never reached


class OnlineToBatch(RowWrapper):
    """One fixed function out of an online run: f_r of a uniformly drawn round r, or their mean.

    For an i.i.d. stream the expected excess risk of f_r is at most the regret bound divided by n
    (Helmbold and Warmuth 1995; pomdr Theorem 3 for POMDR), and so is that of the mean of several
    draws, for convex losses: ``risk_bound``.

    Parameters
    ----------
    learner : Learner
        Its hyper-parameters are used; it is not played itself.
    draws : int >= 1
        Rounds drawn, with replacement; the forecast is the mean of their functions.
    seed : int
        Of the draws.

    Attributes
    ----------
    rounds_ : ndarray of int, shape (draws,)
        The rounds drawn, from 1 to n, in increasing order.

    Remarks
    -------
    Nobody need know how many rounds will come: a draw at round r moves on to round t with
    probability 1/t (a reservoir, Vitter 1985), so after any n rounds it is uniform on 1, ..., n,
    independent of the data and of the other draws; about draws * log n functions are copied on the
    way. A time limit ends at a round that the clock chose: then the bound holds as far as the clock
    did not look at the data.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (3000, 2))
    >>> y = np.sign(X[:, 0] * X[:, 1])
    >>> batch = okl.OnlineToBatch(okl.POMDR(okl.Gaussian(1.0)), draws=20).fit(X[:2000], y[:2000])
    >>> bool((np.sign(batch.predict(X[2000:])) != y[2000:]).mean() < 0.1)
    True
    """

    _can_widen, _half_width = False, None  # ``predict`` is of other functions

    learner: Learner = required(check_member)
    _: KW_ONLY
    draws: int = count(1, least=1)
    seed: int = random_seed(0)

    @property
    def _traits(self) -> Traits:
        return super()._traits._replace(
            is_member=False,
            outputs_at_once=False,
            needs_each_label="OnlineToBatch",
            needs_last_label=Refusal("OnlineToBatch"),
        )

    @property
    @locked
    def rounds_(self) -> np.ndarray:
        """The rounds drawn, in increasing order, shape (draws,)."""
        self._refuse_unseen()
        return np.sort(self._drawn)

    @locked
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget what was played before, and play this stream; return self."""
        self._checked_params()
        rows = inputs.as_rows(X)
        self._as_labels(y, rows.shape[0])  # bad input changes nothing
        return self.reset().partial_fit(X, y)

    def _start(self, d: int) -> None:
        super()._start(d)
        self._rng = np.random.default_rng(self._hyper.seed)
        self._drawn = np.zeros(self._hyper.draws, dtype=np.int64)
        self._next = np.ones_like(self._drawn)  # the rounds that the draws move to
        self._functions: dict[int, Learner] = {}

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        start = 0
        while start < len(X):
            if self._next.min() == self._played + 1:
                self._draw(self._played + 1)
            stop = min(len(X), start + int(self._next.min()) - 1 - self._played)
            super()._play(X[start:stop], y[start:stop], trace.rows(start, stop))
            start = stop

    def _draw(self, t: int) -> None:
        """Move the draws that are due to round t, and say when each moves again.

        It stays until s with probability t/s, the product of 1 - 1/j for j = t + 1, ..., s.
        """
        now = copy.deepcopy(self._inner)
        for i in np.flatnonzero(self._next == t):
            self._drawn[i] = t
            later = t / (1.0 - self._rng.random()) + 1.0  # above s with probability t/s
            self._next[i] = int(min(later, FAR))
        self._functions[t] = now
        self._functions = {r: self._functions[r] for r in np.unique(self._drawn).tolist()}

    def risk_bound(self, regret_bound: float) -> float:
        """Return regret_bound / n, a bound on the expected excess risk (pomdr Theorem 3).

        If the n examples are i.i.d., E[loss(f(x), y)] of ``predict``'s f on a new example exceeds
        that of any function g by at most this, in the mean over streams and draws, where
        ``regret_bound`` bounds the regret against g over all n rounds.

        The bound is in the loss of the learner, which must be convex if ``draws`` is more than 1:
        ``theory.pomdr_bound(kernel, X, y, radius)`` for POMD and POMDR, U^2 / (2 eta) + eta n D / 2
        for KernelOGD with a radius U, lam = 0, no budget and the hinge loss, D = max k(x, x). Where
        it is against sum loss + lam |g|^2, as in ``run.certificate``, add lam |g|^2.

        Remarks
        -------
        A bound that looks at the stream, as ``theory.pomdr_bound`` does, holds in the mean over
        streams: Theorem 3 has E[A_T]. The theorem promises no excess risk with high probability.
        Its second bound, of runs with removals, needs ``budget`` in ``theory.pomdr_bound``: the
        printed one is for a learning rate that looks ahead (errata 62).

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
        >>> learner = okl.KernelOGD(okl.Gaussian(1.0), eta=0.25, radius=5.0)
        >>> batch = okl.OnlineToBatch(learner).fit(X, np.sign(X[:, 0]))
        >>> batch.risk_bound(5.0**2 / (2 * 0.25) + 0.25 * 400 / 2)
        0.25
        """
        self._refuse_unseen()
        return checks.require_nonnegative("regret_bound", regret_bound) / self._played

    @locked
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the mean forecast of the functions drawn for the rows of X, shape (n,)."""
        self._refuse_unseen()
        X = inputs.as_rows(X, self._width, schema=self._schema, least=0)  # f_1 takes any width
        rounds, times = np.unique(self._drawn, return_counts=True)
        parts = zip(rounds.tolist(), times.tolist(), strict=True)
        total = sum(count * self._functions[r].predict(X) for r, count in parts)
        return np.asarray(total) / len(self._drawn)

    def _refuse_unseen(self) -> None:
        self._refuse_fault()
        if not self._played:
            raise ValueError("OnlineToBatch has seen no data; call fit(X, y) first")

    def _matrices(self) -> list[Part]:
        functions = self._functions.items()
        parts = name_members((f"the function of round {r}", f._diagnose()) for r, f in functions)
        return parts + self._inner._diagnose()

    def _end_fit(self) -> None:
        self._inner._end_fit()  # functions stay as they were drawn

    def _nested(self) -> dict[str, Stateful]:
        return super()._nested() | {f"function{r}": f for r, f in self._functions.items()}

    def _export(self) -> dict[str, Any]:
        rng = self._rng.bit_generator.state
        return super()._export() | {"drawn": self._drawn, "next": self._next, "rng": rng}

    def _restore(self, state: dict[str, Any]) -> None:
        self._drawn, self._next = np.array(state["drawn"]), np.array(state["next"])
        for r in np.unique(self._drawn).tolist():
            self._functions[r] = copy.deepcopy(self._inner)  # as yet without data
        super()._restore(state)
        self._rng.bit_generator.state = state["rng"]
