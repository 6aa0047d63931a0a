"""AWV and ridge regression on a growing Nystrom subspace (pkawv Algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oklnumba.components.dictionaries import UNIFORM, joining_rule
from oklnumba.components.kernels import Kernel, check_kernel
from oklnumba.core.checks import require_count
from oklnumba.core.health import Part, Upper, part_of
from oklnumba.core.state import (
    AHEAD,
    Coins,
    Reserving,
    aligned_zeros,
    grown,
    padded,
    refuse_outside,
    spread,
    sweep_room,
)
from oklnumba.hot.awv import RIDGE
from oklnumba.hot.nystrom_awv import (
    PAST,
    RANK,
    nystrom_awv_forecasts,
    nystrom_awv_rounds,
    nystrom_rows,
)
from oklnumba.hot.primitives.jit import ATOMS, DONE
from oklnumba.learners.awv import Ridge, discounted
from oklnumba.learners.base.matrices import kors_part, span_part
from oklnumba.learners.base.player import Trace, per_round
from oklnumba.learners.base.sharing import rows_of

DICTIONARY = ("counts", "atoms", "weights", "kors", "span", "R", "past", "labels", "Phi", "coins")
DICTIONARY += ("rooms", "work", "columns", "seen")


class NystromAWV(Ridge):
    """PKAWV on a growing Nystrom subspace, chosen by KORS (pkawv Algorithm 2, section 3.2).

    At round t KORS decides whether x_t joins the dictionary; the forecast is that of AWV on the
    span of the dictionary, x_t included if it joined, over all past rounds.

    O(m^2) time a round for m atoms, and O(t m) once for each new atom: the column over past rounds
    needs the past, 8 t (m + d) bytes for coordinates and inputs. ``max_size`` bounds it: once the
    dictionary has that size nothing of the past is kept, and memory and time stay flat.

    Parameters
    ----------
    kernel : Kernel
    lam : float > 0
        Regularisation of the regressor.
    mu : float > 0
        Regularisation (alpha) of KORS: the accuracy of the subspace. Theorem 6 wants mu <= lam.
    beta : float > 0
        Oversampling of KORS.
    eps : float in (0, 1)
        Accuracy of KORS.
    forecaster : {"awv", "ridge"}
    sampler : {"kors", "kors_listed"} or float in (0, 1]
        What joins the dictionary. "kors_listed" has the weights 1/p on both sides of the printed
        code (errata 16), so that dictionaries are smaller; a number is the probability of uniform
        sampling, which refuses mu, beta and eps other than the default.
    max_size : int >= 1, optional
        Largest dictionary.
    seed : int
        Of the coins.
    discount : float in (0, 1]
        Weight of a round in the next one's past, in all sums: 2 ** (-1 / h) for a half-life of h
        rounds; 1 forgets nothing.
        KORS forgets nothing.

    Remarks
    -------
    Errata 16 to 20: weights 1/sqrt(p) on each side, mu apart from lam, labels (Y_{t-1}, 0), and x_t
    may enter before its own forecast. In place of cholup on K'K + lam K_mm we use coordinates in
    which K_mm is the identity, which are far better conditioned. K_mm has 1e-14 k(x, x) added to
    its diagonal (NUGGET), so that no digits are lost on nearly coincident
    atoms, as time series have them; an atom that is off the span by no more than these leave
    counts in ``size`` and adds no direction. The certificate is against the best function of the
    present space on each prefix; its bound adds what each growth of the space took off that
    function's loss.

    With ``discount`` < 1 as in PKAWV, on a space that grows: for a new direction the column over
    the past has the weights discount^(t - s) of the coming round t, and the direction brings the
    penalty lam v^2 of its own coordinate v, as if it had stood at the floor all the time. The
    penalties of earlier floors have no part in it. So the forecast is the argmin of the discounted
    loss over the whole past with the penalties as they stand, and A exact, in every round.

    Forecasts shrink new points: where labels have little noise, "ridge" loses less. On y = sin(x_1
    + ... + x_5), 1000 rounds, mu = 0.1, the squared errors add up to 56, 67 and 126 at lam = 1, 0.1
    and 0.01, those of "ridge" to 39, 15 and 11 (docs/awv_or_ridge.md).

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> run = okl.run(okl.NystromAWV(okl.Gaussian(1.0), seed=0), X, np.sin(3 * X[:, 0]))
    >>> round(run.mean_loss, 3), int(run.sizes[-1])
    (0.074, 38)
    """

    _STATE = {
        "counts": ("counts",), "totals": ("outputs", "totals"),
        "atoms": ("d", ATOMS), "weights": (ATOMS,), "kors": (ATOMS, ATOMS),
        "span": (RANK,), "R": (RANK, RANK), "U": (RANK, RANK), "inv_d": (RANK,),
        "c": ("outputs", RANK),
        "past": ("d", PAST), "labels": ("outputs", PAST), "Phi": (PAST, RANK),
    }  # fmt: skip
    _INTEGERS = frozenset({"counts", "span"})
    _COINS = ("coins",)
    _OLD_NAMES = {"kors": "C"}
    _several = True
    _SHARES_ROOM = {RANK: ATOMS}
    _ROWS = 504  # rounds that the dictionary sees at most before they are played
    _in_threads = _follows = _leans = True
    _OWN = (*Ridge._OWN, "_lead")
    _lead: NystromAWV | None  # whose dictionary it has, None: its own

    def __init__(
        self,
        kernel: Kernel,
        *,
        lam: float = 1.0,
        mu: float = 1.0,
        beta: float = 1.0,
        eps: float = 0.5,
        forecaster: str = "awv",
        sampler: str | float = "kors",
        max_size: int | None = None,
        seed: int = 0,
        discount: float = 1.0,
    ):
        self.kernel = kernel
        self.lam = lam
        self.mu = mu
        self.beta = beta
        self.eps = eps
        self.forecaster = forecaster
        self.sampler = sampler
        self.max_size = max_size
        self.seed = seed
        self.discount = discount

    def _check_params(self) -> None:
        super()._check_params()
        check_kernel(self.kernel)
        joining_rule(self.sampler, self.mu, self.beta, self.eps, self.seed)
        if not isinstance(self.sampler, str):
            self._refuse_ignored(UNIFORM, "mu", "beta", "eps")
        if self.max_size is not None:
            require_count("max_size", self.max_size, 1)

    def _start(self, d: int) -> None:
        rule = joining_rule(self.sampler, self.mu, self.beta, self.eps, self.seed)
        self._kernel, self._lead = self.kernel._code(), None
        largest = np.inf if self.max_size is None else float(self.max_size)
        self._setting = float(self.discount), rule, largest
        self._coins = Coins(self.seed)
        self._make_state(d=d, counts=3, outputs=self._outputs, totals=6)
        self._totals[:, RIDGE] = self._ridge
        shape = self._ROWS, self._outputs
        self._proof = np.empty(self._ROWS), np.empty(shape)
        self._out = np.empty(shape), *self._proof
        self._reserve({ATOMS: 1, PAST: 1})

    def _space(self) -> str:
        space = f"the span of the {self.size} atoms of the dictionary"
        return discounted(space, self.discount)

    def _room(self, axis: int, least: int) -> int:
        old = self._rooms[axis]
        return (
            max(least, 256, 2 * old)
            if axis == PAST
            else spread(padded(max(least, 40, old * 3 // 2)))
        )

    def _buffers(self, rooms: dict[int, int]) -> dict[str, np.ndarray]:
        buffers = super()._buffers(rooms)
        cap = rooms[ATOMS]
        if cap > self._rooms[ATOMS]:
            buffers = self._filled(buffers) | {"work": aligned_zeros(8, cap)}
            n = min(rows_of(2 * cap), self._ROWS)  # no fewer than AHEAD: see _ahead
            ranks, sizes = np.zeros((2, n + 1), dtype=np.int64)
            borders, gains = aligned_zeros(AHEAD, cap), np.zeros((AHEAD, self._outputs))
            buffers["seen"] = aligned_zeros(n, cap), ranks, borders, gains, sizes
        return buffers | {"columns": np.empty((2, rooms[PAST]))}

    def _filled(self, buffers: dict[str, Any]) -> dict[str, Any]:
        """Return buffers with a factor in a larger room: A = lam I where no direction is yet."""
        old, U = len(self._inv_d), buffers["U"]
        np.fill_diagonal(U[old:, old:], 1.0)
        buffers["inv_d"][old:] = 1.0 / float(self.lam)
        return buffers | {"sweeps": sweep_room(U)}

    def _reserve(self, needed: dict[int, int]) -> None:
        if self._lead is None:
            super()._reserve(needed)
        else:
            self._lead._reserve(needed)
            self._lean_on(self._lead)

    def _lean_on(self, lead: NystromAWV) -> None:
        """Have the dictionary of a learner that differs in lam or the forecaster, as it is now."""
        cap, own = lead._rooms[ATOMS], {}
        if len(self._inv_d) < cap:
            with Reserving(self):
                larger = {"U": grown(self._U, cap, cap), "inv_d": grown(self._inv_d, cap)}
                larger["c"] = grown(self._c, self._outputs, cap)
                own = {f"_{name}": one for name, one in self._filled(larger).items()}
        shared = {f"_{name}": vars(lead)[f"_{name}"] for name in DICTIONARY}
        vars(self).update(shared | own | {"_lead": lead})

    def _dictionary_arrays(self) -> tuple:
        """Return the arguments of the compiled loops from ``kernel`` to ``work``."""
        return (
            self._kernel, self._setting, self._counts,
            (self._atoms, self._weights, self._kors, self._span, self._R),
            (self._past, self._labels, self._Phi),
            (self._work, self._columns),
        )  # fmt: skip

    def _ahead(self, n: int) -> int:
        return min(n, AHEAD) if self.size == self.max_size else super()._ahead(n)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        coins = self._coins.take(len(X))
        self._play_rounds(len(X), lambda first: self._play_from(first, X, y, coins, trace))

    def _play_from(
        self, first: int, X: np.ndarray, y: np.ndarray, coins: np.ndarray, trace: Trace
    ) -> tuple[int, int]:
        """Play rounds from row ``first``; return the rounds played, and a status."""
        n, status = len(X), DONE
        while first < n and status == DONE:
            count, why = self._look(first, X, y, coins)
            part = trace if count == n else trace.rows(first, first + count)
            played, status = self._play_seen(y[first : first + count], part)
            first, status = first + played, status or why
        return first, status

    def _look(self, first: int, X: np.ndarray, y: np.ndarray, coins: np.ndarray) -> tuple[int, int]:
        """Let the dictionary see rounds from row ``first``; return how many, and a status."""
        Y = y.reshape(len(X), self._outputs)
        count, status = nystrom_rows(X, Y, coins, first, *self._dictionary_arrays(), self._seen)
        if self.max_size is not None and self.size == self.max_size and self._rooms[PAST] > 1:
            self._drop_past()
        return count, status

    def _play_seen(self, y: np.ndarray, trace: Trace) -> tuple[int, int]:
        """Play rounds that the dictionary has seen; return the rounds played, and a status."""
        shape = len(y), self._outputs
        out = trace.predictions.reshape(shape), *self._out, trace.sizes
        played, status = nystrom_awv_rounds(
            self._seen, y.reshape(shape), float(self.lam), (self._U, self._inv_d, self._c),
            self._fading(), self._sweeps, self._ridge, out,
        )  # fmt: skip
        if status == DONE:  # by the loop that those who follow have, for its last bits
            self._certify(y, *self._proof, trace)
        return played, status

    def _shared_rows(self, X: np.ndarray, y: np.ndarray) -> tuple[int, int]:
        """Return what ``_play_features`` takes, of this one and of all that lean on it."""
        return self._look(0, X, y, self._coins.take(len(X)))

    def _play_features(self, Z: tuple[int, int], y: np.ndarray, trace: Trace) -> None:
        if self._lead is not None:
            self._lean_on(self._lead)
        count, why = Z
        played, status = self._play_seen(y[:count], trace.rows(0, count))
        self._check(status or why, played)
        self._played += played

    def _drop_past(self) -> None:
        """Free what only a growing dictionary needs."""
        self._counts[PAST] = 0
        self._past = np.zeros((len(self._past), 1))
        self._labels = np.zeros((self._outputs, 1))
        self._Phi = np.zeros((1, self._Phi.shape[1]))
        self._columns = np.empty((2, 1))
        self._rooms[PAST] = 1

    def _check_state(self) -> None:
        refuse_outside("span", self._used("span"), 0, self.size - 1)
        refuse_outside("counts", self._counts[[RANK]], 0, self.size)

    def _matrices(self) -> list[Part]:
        m, rank = int(self._counts[ATOMS]), int(self._counts[RANK])
        if rank == 0:
            return []
        atoms, rule, scales = self._used("atoms").T, self._setting[1], self._label_scales()
        matrix = Upper(self._U, rank, 1.0 / self._inv_d[:rank])
        ws = [matrix.half_solve(c) for c in self._c]
        own = part_of("lam I + sum z z'", matrix, ws, scales, self._past_column(rank))
        spanning = atoms[self._used("span")]
        parts = [own, span_part(self.kernel, spanning, self._R, ws, scales, 1.0 - rank / m)]
        if rule[3] == 0.0:  # no fixed probability
            parts.append(kors_part(self.kernel, atoms, self._used("weights"), self._kors, rule[0]))
        return parts

    def _past_column(self, rank: int) -> Callable[[int], np.ndarray] | None:
        """Return what makes a column of A anew, while the whole past is kept with equal weights."""
        Phi = self._used("Phi")
        if self.discount != 1.0 or len(Phi) < self._played:
            return None
        return lambda i: Phi.T @ Phi[:, i] + float(self.lam) * (np.arange(rank) == i)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        self._reserve({ATOMS: self.size + 1})  # a coin may keep x for the length of its forecast
        forecasts = per_round(len(X), self._outputs)
        rows = forecasts.reshape(len(X), self._outputs)
        nystrom_awv_forecasts(
            X, self._coins.next, *self._dictionary_arrays(), float(self.lam),
            (self._U, self._inv_d, self._c), self._ridge, rows,
        )  # fmt: skip
        return forecasts
