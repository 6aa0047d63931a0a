"""Pros-N-KONS and CON-KONS: the online Newton step on the span of a KORS dictionary.

After Calandriello, Lazaric and Valko 2017, "Efficient second-order online kernel learning with
adaptive embedding".
"""

from __future__ import annotations

import numpy as np

from oklnumba.components.dictionaries import UNIFORM, joining_rule
from oklnumba.components.kernels import Kernel, check_kernel
from oklnumba.core.checks import require
from oklnumba.core.health import Part, Upper, part_of
from oklnumba.core.state import Coins, aligned_zeros, padded, refuse_outside
from oklnumba.hot.primitives.jit import ATOMS
from oklnumba.hot.pros_n_kons import RANK, RESTARTS, pros_n_kons_forecasts, pros_n_kons_rounds
from oklnumba.learners.base.matrices import kors_part, span_part
from oklnumba.learners.base.player import Trace
from oklnumba.learners.kons import Curved
from oklnumba.learners.newton import NEWTON


class ProsNKONS(Curved):
    """Pros-N-KONS and CON-KONS: the online Newton step on the span of a KORS dictionary.

    After Calandriello, Lazaric and Valko 2017 (NIPS), Algorithm 1. KORS decides whether x_t joins
    the dictionary; then the projected Newton step of KONS is played in the dictionary's span, with
    A = alpha I + sum (eta / 2) g g'. When the dictionary grows, Pros-N-KONS starts again (w = 0,
    A = alpha I), and CON-KONS (``restart=False``) goes on with w and A.

    O(m^2) time a round and 8 m (d + 3 m) bytes for m atoms, whatever the number of rounds.

    Parameters
    ----------
    kernel : Kernel
    loss : {"squared", "squared_hinge", "logistic"}
        Squared: labels in [-C, C]; the others: labels -1 and +1.
    C : float > 0
        Forecasts are in [-C, C].
    alpha : float > 0
        Regularisation.
    eta : float > 0, optional
        Curvature that is used; None: the curvature sigma of the loss on [-C, C].
    mu : float > 0
        Regularisation (alpha) of KORS: the accuracy of the subspace.
    beta : float > 0
        Oversampling of KORS.
    eps : float in (0, 1)
        Accuracy of KORS.
    sampler : {"kors", "kors_listed"} or float in (0, 1]
        What joins the dictionary. "kors_listed" has the weights 1/p on both sides of the printed
        code (errata 16), so that dictionaries are smaller; a number is the probability of uniform
        sampling, which refuses mu, beta and eps other than the default.
    restart : bool
        False: CON-KONS.
    seed : int
        Of the coins.

    Remarks
    -------
    The embedding of the paper, Sigma^-1 U' k, is replaced by R^-T k with K = R' R, which differs by
    a rotation, grows by one entry an atom, and leaves all forecasts as they are; K has 1e-14
    k(x, x) added to its diagonal (NUGGET). Restarts hurt much on short
    streams: a forecast of 0 and a fresh A for each new atom.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> learner = okl.ProsNKONS(okl.Gaussian(1.0))
    >>> run = okl.run(learner, X, np.sin(3 * X[:, 0]))
    >>> round(run.mean_loss, 3), learner.size, learner.restarts
    (0.299, 38, 37)
    >>> con_kons = okl.ProsNKONS(okl.Gaussian(1.0), restart=False)
    >>> round(okl.run(con_kons, X, np.sin(3 * X[:, 0])).mean_loss, 3)
    0.07
    """

    _STATE = {
        "counts": ("counts",), "atoms": ("d", ATOMS), "weights": (ATOMS,), "kors": (ATOMS, ATOMS),
        "span": (RANK,), "R": (RANK, RANK), "U": (RANK, RANK), "inv_d": (RANK,), "c": (RANK,),
    }  # fmt: skip
    _INTEGERS = frozenset({"counts", "span"})
    _COINS = ("coins",)
    _OLD_NAMES = {"kors": "dictionary"}
    _SHARES_ROOM = {RANK: ATOMS}
    _FIRST_ROOM = 32
    _REMEDY = "raise alpha or mu, lower eta, or scale the inputs"

    def __init__(
        self,
        kernel: Kernel,
        *,
        loss: str = "squared",
        C: float = 1.0,
        alpha: float = 1.0,
        eta: float | None = None,
        mu: float = 1.0,
        beta: float = 1.0,
        eps: float = 0.5,
        sampler: str | float = "kors",
        restart: bool = True,
        seed: int = 0,
    ):
        self.kernel = kernel
        self.loss = loss
        self.C = C
        self.alpha = alpha
        self.eta = eta
        self.mu = mu
        self.beta = beta
        self.eps = eps
        self.sampler = sampler
        self.restart = restart
        self.seed = seed

    @property
    def restarts(self) -> int:
        """How often a new atom made w and A start again (the first atom does not count)."""
        return int(self._counts[RESTARTS]) if self._width is not None else 0

    def _check_params(self) -> None:
        super()._check_params()
        check_kernel(self.kernel)
        self._check_curvature()
        joining_rule(self.sampler, self.mu, self.beta, self.eps, self.seed)
        if not isinstance(self.sampler, str):
            self._refuse_ignored(UNIFORM, "mu", "beta", "eps")
        require(isinstance(self.restart, bool), "restart", self.restart, "True or False")

    def _start(self, d: int) -> None:
        rule = joining_rule(self.sampler, self.mu, self.beta, self.eps, self.seed)
        C_alpha_eta = float(self.C), float(self.alpha), self._newton_step()
        self._setting = *C_alpha_eta, rule, float(self.restart)
        self._kernel = self.kernel._code()
        self._coins = Coins(self.seed)
        self._make_state(d=d, counts=3)
        self._reserve({ATOMS: 1})

    def _room(self, axis: int, least: int) -> int:
        return padded(super()._room(axis, least))

    def _buffers(self, rooms: dict[int, int]) -> dict[str, np.ndarray]:
        buffers = super()._buffers(rooms)
        old, cap = self._rooms[ATOMS], rooms[ATOMS]
        np.fill_diagonal(buffers["U"][old:, old:], 1.0)  # A = alpha I where there is no direction
        buffers["inv_d"][old:] = 1.0 / float(self.alpha)
        return buffers | {"work": aligned_zeros(7, cap)}

    def _arrays(self) -> tuple:
        """Return the arguments of the compiled loops from ``setting`` to ``work``."""
        return (
            self._setting, self._counts,
            (self._atoms, self._weights, self._kors, self._span, self._R),
            (self._U, self._inv_d, self._c), self._work,
        )  # fmt: skip

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        coins, loss, out = self._coins.take(len(X)), self._loss_code, trace[:2]
        self._play_rounds(
            len(X),
            lambda first: pros_n_kons_rounds(
                X, y, coins, first, self._kernel, loss, *self._arrays(), out
            ),
        )

    def _check_state(self) -> None:
        refuse_outside("span", self._used("span"), 0, self.size - 1)
        refuse_outside("counts", self._counts[[RANK]], 0, self.size)

    def _matrices(self) -> list[Part]:
        m, rank = int(self._counts[ATOMS]), int(self._counts[RANK])
        if rank == 0:
            return []
        atoms, rule, scales = self._used("atoms").T, self._setting[3], [float(self.C)]
        matrix = Upper(self._U, rank, 1.0 / self._inv_d[:rank])
        ws = [matrix.half_solve(self._c)]
        spanning = atoms[self._used("span")]
        parts = [
            part_of(NEWTON, matrix, ws, scales),
            span_part(self.kernel, spanning, self._R, ws, scales, 1.0 - rank / m),
        ]
        if rule[3] == 0.0:  # no fixed probability
            parts.append(kors_part(self.kernel, atoms, self._used("weights"), self._kors, rule[0]))
        return parts

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        pros_n_kons_forecasts(X, self._coins.next, self._kernel, *self._arrays(), forecasts)
        return forecasts
