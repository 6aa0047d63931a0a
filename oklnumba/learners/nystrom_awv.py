"""AWV and ridge regression on a growing Nystrom subspace (pkawv Algorithm 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from oklnumba.checks import require_count, require_positive
from oklnumba.dictionaries import check_kors
from oklnumba.hot.jit import NEED_ROOM
from oklnumba.hot.nystrom_awv import nystrom_awv_forecasts, nystrom_awv_rounds
from oklnumba.kernels import Kernel, kernel_code
from oklnumba.learners.awv import RAISE_LAM, _Ridge
from oklnumba.learners.learner import Coins, Trace, aligned_zeros, grown, padded


class NystromAWV(_Ridge):
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
    max_size : int >= 1, optional
        Largest dictionary.
    seed : int
        Of KORS's coins.

    Remarks
    -------
    Errata 16 to 20: weights 1/sqrt(p) on each side, mu apart from lam, labels (Y_{t-1}, 0), and x_t
    may enter before its own forecast. In place of cholup on K'K + lam K_mm we use coordinates in
    which K_mm is the identity, which are far better conditioned. An atom that lies in the span to
    rounding (NULL_DIRECTION in hot/) counts in KORS and in ``size`` and adds no direction.
    The certificate is against the best function of the present space on each prefix; its bound adds
    what each growth of the space took off that function's loss.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> run = okl.run(okl.NystromAWV(okl.Gaussian(1.0), seed=0), X, np.sin(3 * X[:, 0]))
    >>> round(run.mean_loss, 3), int(run.sizes[-1])
    (0.074, 38)
    """

    def __init__(
        self,
        kernel: Kernel,
        lam: float = 1.0,
        mu: float = 1.0,
        beta: float = 1.0,
        eps: float = 0.5,
        forecaster: str = "awv",
        max_size: int | None = None,
        seed: int = 0,
    ):
        self.kernel = kernel
        self.lam = lam
        self.mu = mu
        self.beta = beta
        self.eps = eps
        self.forecaster = forecaster
        self.max_size = max_size
        self.seed = seed

    @property
    def size(self) -> int:
        """Atoms in the dictionary."""
        return int(self._counts[1]) if self._width is not None else 0

    def _start(self, d: int) -> None:
        require_positive("lam", self.lam)
        check_kors(self.mu, "mu", self.beta, self.eps, self.seed)
        self._check_forecaster()
        if self.max_size is not None:
            require_count("max_size", self.max_size, 1)
        self._code, self._par = kernel_code(self.kernel)
        largest = np.inf if self.max_size is None else float(self.max_size)
        self._setting = tuple(
            float(v) for v in (self.lam, self.mu, self.beta, self.eps, largest, self._ridge)
        )
        self._coins = Coins(self.seed)
        self._counts = np.zeros(3, dtype=np.int64)  # rounds kept, dictionary size, rank of its span
        self._atoms = np.zeros((d, 0))
        self._weights = np.zeros(0)
        self._span = np.zeros(0, dtype=np.int64)
        self._C = self._R = self._U = np.zeros((0, 0))
        self._inv_d = self._c = np.zeros(0)
        self._past = np.zeros((d, 0))
        self._labels = np.zeros(0)
        self._Phi = np.zeros((0, 0))
        self._start_totals()
        self._reserve_atoms(32)
        self._reserve_rounds(256)

    def _reserve_atoms(self, size: int) -> None:
        """Make room for ``size`` atoms and one more, which a pure forecast may need."""
        old = len(self._weights)
        if size + 1 <= old:
            return
        cap = padded(max(size + 1, old * 3 // 2))
        self._atoms = grown(self._atoms, len(self._atoms), cap)
        self._weights = grown(self._weights, cap)
        self._span = grown(self._span, cap)
        self._C, self._R = grown(self._C, cap, cap), grown(self._R, cap, cap)
        self._U = grown(self._U, cap, cap)
        np.fill_diagonal(self._U[old:, old:], 1.0)
        self._inv_d = grown(self._inv_d, cap)
        self._inv_d[old:] = 1.0 / float(self.lam)
        self._c = grown(self._c, cap)
        self._Phi = grown(self._Phi, len(self._Phi), cap)
        self._work = aligned_zeros(8, cap)

    def _reserve_rounds(self, rounds: int) -> None:
        """Make room for the past of ``rounds`` rounds, while the dictionary may still grow."""
        if rounds <= len(self._labels):
            return
        cap = max(rounds, 2 * len(self._labels))
        self._past = grown(self._past, len(self._past), cap)
        self._labels = grown(self._labels, cap)
        self._Phi = grown(self._Phi, cap, self._Phi.shape[1])
        self._column = np.empty(cap)

    def _arrays(self) -> tuple:
        """Return the arguments of the compiled loops from ``code`` to ``column``."""
        return (
            self._code, self._par, self._setting, self._counts, self._atoms, self._weights, self._C,
            self._span, self._R, self._past, self._labels, self._Phi, self._U, self._inv_d, self._c,
            self._work, self._column,
        )  # fmt: skip

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        n = len(X)
        coins = self._coins.take(n)
        shrinks, growth = np.empty(n), np.zeros(n)
        first = 0
        while True:
            first, status = nystrom_awv_rounds(
                X, y, coins, first, *self._arrays(), trace.predictions, trace.sizes, shrinks, growth
            )
            if status != NEED_ROOM:
                break
            self._reserve_atoms(int(self._counts[1]) + 1)
            self._reserve_rounds(int(self._counts[0]) + 1)
        self._check(status, first, RAISE_LAM)
        if self.size == self.max_size and len(self._labels) > 1:
            self._drop_past()
        self._certify(y, shrinks, growth, trace)
        self._played += n

    def _drop_past(self) -> None:
        """Free what only a growing dictionary needs."""
        self._counts[0] = 0
        self._past = np.zeros((len(self._past), 1))
        self._labels = np.zeros(1)
        self._Phi = np.zeros((1, self._Phi.shape[1]))
        self._column = np.empty(1)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        self._reserve_atoms(int(self._counts[1]) + 1)
        forecasts = np.empty(len(X))
        nystrom_awv_forecasts(X, self._coins.next, *self._arrays(), forecasts)
        return forecasts

    def _state(self) -> dict[str, Any]:
        t, m, rank = self._counts
        return {
            "counts": self._counts, "atoms": self._atoms[:, :m], "weights": self._weights[:m],
            "span": self._span[:rank], "C": self._C[:m, :m], "R": self._R[:rank, :rank],
            "U": self._U[:rank, :rank], "inv_d": self._inv_d[:rank], "c": self._c[:rank],
            "past": self._past[:, :t], "labels": self._labels[:t], "Phi": self._Phi[:t, :rank],
            "totals": self._totals, "coins": self._coins.state(),
        }  # fmt: skip

    def _restore(self, state: dict[str, Any]) -> None:
        t, m, rank = (int(v) for v in state["counts"])
        self._reserve_atoms(m)
        self._reserve_rounds(t)
        self._counts = state["counts"]
        self._atoms[:, :m], self._weights[:m] = state["atoms"], state["weights"]
        self._span[:rank] = state["span"]
        self._C[:m, :m], self._R[:rank, :rank] = state["C"], state["R"]
        self._U[:rank, :rank] = state["U"]
        self._inv_d[:rank], self._c[:rank] = state["inv_d"], state["c"]
        self._past[:, :t], self._labels[:t] = state["past"], state["labels"]
        self._Phi[:t, :rank] = state["Phi"]
        self._totals = state["totals"]
        self._coins.restore(state["coins"])
