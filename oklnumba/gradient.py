"""First-order learners, on features and on budgeted dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from oklnumba import hotloops, losses
from oklnumba.checks import require, require_count, require_nonnegative, require_positive
from oklnumba.features import Features, FourierFeatures, check_features
from oklnumba.kernels import Kernel, kernel_code
from oklnumba.learner import Coins, Learner, Trace, aligned_zeros, grown


class Expansion(Learner):
    """A learner whose function is sum_j a_j k(atom_j, .): what all of them share.

    A subclass calls ``_start_expansion`` in ``_start`` and has ``_rounds``, which plays rows from
    one on and may ask for room; ``_ints[0]`` counts the atoms.
    """

    _FIRST = 64  # atoms that buffers have room for at first
    _factor = 1.0  # of all coefficients
    _fixed_loss: str | None = None  # where the algorithm has one loss only
    _REMEDY = "lower eta, or scale the inputs and labels"

    def _loss(self) -> losses.Loss:
        return losses.get(self._fixed_loss) if self._fixed_loss else super()._loss()

    @property
    def size(self) -> int:
        """Atoms that are stored; 0 before any data."""
        return int(self._ints[0]) if self._width is not None else 0

    @property
    def atoms(self) -> np.ndarray:
        """The dictionary, shape (m, d); the order is that of ``coefficients``."""
        if self._width is None:
            return np.zeros((0, 0))
        return self._atoms[:, : int(self._ints[0])].T.copy()

    @property
    def coefficients(self) -> np.ndarray:
        """The coefficients of the atoms, shape (m,)."""
        if self._width is None:
            return np.zeros(0)
        return self._factor * self._a[: int(self._ints[0])]

    @property
    def norm(self) -> float:
        """The RKHS norm of the function, from its definition: O(m^2) time."""
        if self.size == 0:
            return 0.0
        a, atoms = self.coefficients, self.atoms
        return float(np.sqrt(max(a @ self.kernel(atoms) @ a, 0.0)))

    def _start_expansion(
        self, d: int, kernel: Kernel, largest: float, ints: int = 1, reals: int = 1
    ) -> None:
        self._code, self._par = kernel_code(kernel)
        self._largest = largest  # atoms, inf where there is no budget
        self._ints = np.zeros(ints, dtype=np.int64)
        self._reals = np.zeros(reals)
        self._atoms, self._a = np.zeros((d, 0)), np.zeros(0)
        self._make_room(int(min(self._FIRST, largest)))

    def _make_room(self, cap: int) -> None:
        """Enlarge the buffers to ``cap`` atoms; subclasses with more buffers add theirs."""
        self._atoms = grown(self._atoms, len(self._atoms), cap)
        self._a = grown(self._a, cap)
        self._work = np.zeros((2, cap))

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        first, status = self._rounds(X, y, 0, trace)
        while status == hotloops.NEED_ROOM:
            self._make_room(int(min(2 * len(self._a), self._largest)))
            first, status = self._rounds(X, y, first, trace)
        self._check(status, first, self._REMEDY)
        self._played += len(X)

    def _rounds(self, X: np.ndarray, y: np.ndarray, first: int, trace: Trace) -> tuple[int, int]:
        """Play rows from ``first`` on; return the rows played, and a status."""
        raise NotImplementedError

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        hotloops.expansion_forecasts(
            X, self._code, self._par, self._atoms, self._a, int(self._ints[0]),
            self._factor, self._work[0],
            forecasts,
        )  # fmt: skip
        return forecasts

    def _state(self) -> dict[str, Any]:
        m = int(self._ints[0])
        return {
            "atoms": self._atoms[:, :m],
            "a": self._a[:m],
            "ints": self._ints,
            "reals": self._reals,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._ints[:], self._reals[:] = state["ints"], state["reals"]
        m = len(state["a"])
        if m > len(self._a):
            self._make_room(m)
        self._atoms[:, :m], self._a[:m] = state["atoms"], state["a"]


def check_lam(lam: Any, eta: float) -> None:
    """Raise ValueError unless lam is a regularisation for which a step shrinks, and no more."""
    require_nonnegative("lam", lam)
    require(eta * lam < 1.0, "lam", lam, f"less than 1 / eta = {1.0 / eta:g}")


def check_budget(budget: Any) -> float:
    """Return a budget, infinity for None; ValueError where it is less than 2."""
    if budget is None:
        return np.inf
    require_count("budget", budget, 2)
    return float(budget)


class KernelOGD(Expansion):
    """Kernel online gradient descent: f <- (1 - eta lam) f - eta l'(f(x), y) k(x, .).

    NORMA (Kivinen, Smola and Williamson 2004) where lam > 0. With ``radius`` U the regret against
    |f| <= U is at most U^2 / (2 eta) + eta / 2 sum l'^2 k(x, x) (Zinkevich 2003), of order sqrt(n)
    for eta of order 1 / sqrt(n).

    O(m d) time a round for m atoms. Without a budget every round with a loss adds one.

    Parameters
    ----------
    kernel : Kernel
    loss : str
        A loss of losses.py.
    eta : float > 0
        Step size.
    lam : float >= 0
        Regularisation, less than 1 / eta.
    budget : int >= 2, optional
        Keep the newest atoms only (NORMA's truncation).
    radius : float > 0, optional
        Project on the ball |f| <= radius after each step.

    Remarks
    -------
    The forecast is made before the function shrinks (kafbox shrinks first). One common factor holds
    the shrinking and the projections. NORMA's nu-trick is left out.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.KernelOGD(okl.Gaussian(1.0), eta=0.5)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] * X[:, 1]))
    >>> bool(run.mistake_rate < 0.1)
    True
    """

    def __init__(
        self,
        kernel: Kernel,
        loss: str = "hinge",
        eta: float = 0.1,
        lam: float = 0.0,
        budget: int | None = None,
        radius: float | None = None,
    ):
        self.kernel = kernel
        self.loss = loss
        self.eta = eta
        self.lam = lam
        self.budget = budget
        self.radius = radius

    @property
    def _factor(self) -> float:
        return float(self._reals[0])

    def _start(self, d: int) -> None:
        require_positive("eta", self.eta)
        check_lam(self.lam, self.eta)
        budget = check_budget(self.budget)
        radius = np.inf
        if self.radius is not None:
            require_positive("radius", self.radius)
            radius = float(self.radius)
        self._setting = float(self.eta), float(self.lam), budget, radius
        self._loss_code = self._loss().code
        self._start_expansion(d, self.kernel, budget, ints=2, reals=2)
        self._reals[0] = 1.0

    def _make_room(self, cap: int) -> None:
        super()._make_room(cap)
        self._work = np.zeros((3, max(cap, len(self._atoms))))

    def _rounds(self, X: np.ndarray, y: np.ndarray, first: int, trace: Trace) -> tuple[int, int]:
        return hotloops.kernel_ogd_rounds(
            X, y, first, self._code, self._par, self._loss_code, self._setting, self._ints,
            self._reals, self._atoms, self._a, self._work, trace.predictions, trace.sizes,
        )  # fmt: skip


class BOGD(Expansion):
    """Bounded online gradient descent: at a full budget one atom is dropped at random.

    Zhao, Wang, Wu, Jin and Hoi 2012. The others are scaled so that the function stays the same in
    expectation. BOGD drops uniformly; BOGD++ (``weighted``) drops atoms of small weight |a_i|
    sqrt(k(x_i, x_i)) more often.

    O(m d) time a round for m atoms; memory bounded by the budget.

    Parameters
    ----------
    kernel : Kernel
    loss : str
        A loss of losses.py.
    eta : float > 0
        Step size.
    lam : float >= 0
        Regularisation, less than 1 / eta.
    budget : int >= 2
        Most atoms.
    gamma : float > 0, optional
        At a full budget all coefficients are scaled so that none exceeds eta gamma.
    seed : int
        Of the coins, one a round.
    weighted : bool
        BOGD++.

    Remarks
    -------
    As in the authors' code, the cap rescales all coefficients rather than cutting the largest. With
    p_i = 1 - s |a_i| sqrt(k_ii) of BOGD++ a single p_i may be negative: it is cut at 0 and the
    others renormalised, which keeps the expectation.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.BOGD(okl.Gaussian(1.0), budget=50, weighted=True)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] + X[:, 1]))
    >>> bool(run.mistake_rate < 0.2), learner.size
    (True, 50)
    """

    def __init__(
        self,
        kernel: Kernel,
        loss: str = "hinge",
        eta: float = 0.1,
        lam: float = 0.0,
        budget: int = 400,
        gamma: float | None = None,
        seed: int = 0,
        weighted: bool = False,
    ):
        self.kernel = kernel
        self.loss = loss
        self.eta = eta
        self.lam = lam
        self.budget = budget
        self.gamma = gamma
        self.seed = seed
        self.weighted = weighted

    def _start(self, d: int) -> None:
        require_positive("eta", self.eta)
        check_lam(self.lam, self.eta)
        require_count("budget", self.budget, 2)
        if self.gamma is not None:
            require_positive("gamma", self.gamma)
        require_count("seed", self.seed, 0)
        gamma = np.inf if self.gamma is None else float(self.gamma)
        self._setting = (
            float(self.eta), float(self.lam), float(self.budget), gamma, float(self.weighted)
        )  # fmt: skip
        self._loss_code = self._loss().code
        self._coins = Coins(self.seed)
        self._diagonal = np.zeros(0)
        self._start_expansion(d, self.kernel, float(self.budget))

    def _make_room(self, cap: int) -> None:
        super()._make_room(cap)
        self._diagonal = grown(self._diagonal, cap)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        self._drawn = self._coins.take(len(X))
        super()._play(X, y, trace)
        del self._drawn

    def _rounds(self, X: np.ndarray, y: np.ndarray, first: int, trace: Trace) -> tuple[int, int]:
        return hotloops.bogd_rounds(
            X, y, self._drawn, first, self._code, self._par, self._loss_code, self._setting,
            self._ints, self._atoms, self._a, self._diagonal, self._work, trace.predictions,
            trace.sizes,
        )  # fmt: skip

    def _state(self) -> dict[str, Any]:
        diagonal = self._diagonal[: self._ints[0]]
        return super()._state() | {"diagonal": diagonal, "coins": self._coins.state()}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._diagonal[: len(state["diagonal"])] = state["diagonal"]
        self._coins.restore(state["coins"])


class Projectron(Expansion):
    """Projectron and Projectron++: the kernel perceptron on a dictionary that ALD keeps small.

    Orabona, Keshet and Caputo 2009. At a mistake x_t joins the dictionary if it is farther than
    ``threshold`` from its span, else the update is projected on the span. Projectron++
    (``aggressive``) also takes projected steps where the margin is below 1.

    O(m d) time a round for m atoms, O(m^2) at a mistake; the dictionary stays finite on bounded
    inputs.

    Parameters
    ----------
    kernel : Kernel
    threshold : float >= 0
        eta of the paper, a distance in the RKHS.
    budget : int >= 2, optional
        Most atoms; from then on every update is projected. With threshold=0 the budget alone rules.
    aggressive : bool
        Projectron++.

    Remarks
    -------
    The distance itself is compared with the threshold, as in the paper; the author's code (DOGMA)
    compares its square. An empty dictionary accepts any point. Where threshold is 0 the term
    distance / threshold of Projectron++ has 1/4 sqrt((B + 1) / ln(B + 1)) for 1 / threshold, as in
    the budgeted versions in use, or is infinite without a budget.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.Projectron(okl.Gaussian(1.0), aggressive=True)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] * X[:, 1]))
    >>> bool(run.mistake_rate < 0.1), learner.size < 40
    (True, True)
    """

    _fixed_loss = "hinge"
    _REMEDY = "raise threshold, or scale the inputs"

    def __init__(
        self,
        kernel: Kernel,
        threshold: float = 0.1,
        budget: int | None = None,
        aggressive: bool = False,
    ):
        self.kernel = kernel
        self.threshold = threshold
        self.budget = budget
        self.aggressive = aggressive

    def _start(self, d: int) -> None:
        require_nonnegative("threshold", self.threshold)
        budget = check_budget(self.budget)
        slack = np.inf
        if self.threshold > 0:
            slack = 1.0 / float(self.threshold)
        elif self.budget is not None:
            slack = 0.25 * float(np.sqrt((budget + 1) / np.log(budget + 1)))
        self._setting = float(self.threshold), budget, float(self.aggressive), slack
        self._R = np.zeros((0, 0))
        self._start_expansion(d, self.kernel, budget)

    def _make_room(self, cap: int) -> None:
        super()._make_room(cap)
        self._R = grown(self._R, cap, cap)

    def _rounds(self, X: np.ndarray, y: np.ndarray, first: int, trace: Trace) -> tuple[int, int]:
        return hotloops.projectron_rounds(
            X, y, first, self._code, self._par, self._setting, self._ints, self._atoms, self._a,
            self._R, self._work, trace.predictions, trace.sizes,
        )  # fmt: skip

    def _state(self) -> dict[str, Any]:
        m = self._ints[0]
        return super()._state() | {"R": self._R[:m, :m]}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        m = len(state["R"])
        self._R[:m, :m] = state["R"]


class KRLS(Expansion):
    """Kernel recursive least squares with ALD (Engel, Mannor and Meir 2004).

    x_t joins the dictionary where its squared distance to the span is more than ``threshold``; the
    coefficients are those of least squares over all past points, each projected on the span that
    there was in its round.

    O(m d + m^2) time a round for m atoms; the dictionary stays finite on bounded inputs.

    Parameters
    ----------
    kernel : Kernel
    threshold : float >= 0
        nu of the paper, a squared distance in the RKHS.

    Remarks
    -------
    The inverse of the kernel matrix and the matrix P of the paper are replaced by two triangular
    factors, in coordinates in which the kernel matrix is the identity: the same coefficients, and
    no digits lost. An empty dictionary accepts any point. No regulariser, as published.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.KRLS(okl.Gaussian(1.0), threshold=0.001)
    >>> run = okl.run(learner, X, np.sin(3 * X[:, 0]) * X[:, 1])
    >>> bool(run.mean_loss < 0.01), learner.size < 60
    (True, True)
    """

    _fixed_loss = "squared"
    _REMEDY = "raise threshold, or scale the inputs and labels"

    def __init__(self, kernel: Kernel, threshold: float = 0.01):
        self.kernel = kernel
        self.threshold = threshold

    def _start(self, d: int) -> None:
        require_nonnegative("threshold", self.threshold)
        self._R, self._Q, self._z = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0)
        self._start_expansion(d, self.kernel, np.inf)

    def _make_room(self, cap: int) -> None:
        super()._make_room(cap)
        self._R, self._Q = grown(self._R, cap, cap), grown(self._Q, cap, cap)
        self._z = grown(self._z, cap)

    def _rounds(self, X: np.ndarray, y: np.ndarray, first: int, trace: Trace) -> tuple[int, int]:
        return hotloops.krls_rounds(
            X, y, first, self._code, self._par, float(self.threshold), self._ints, self._atoms,
            self._a, self._R, self._Q, self._z, self._work, trace.predictions, trace.sizes,
        )  # fmt: skip

    def _state(self) -> dict[str, Any]:
        m = self._ints[0]
        return super()._state() | {"R": self._R[:m, :m], "Q": self._Q[:m, :m], "z": self._z[:m]}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        m = len(state["z"])
        self._R[:m, :m], self._Q[:m, :m], self._z[:m] = state["R"], state["Q"], state["z"]


class FOGD(Learner):
    """Fourier online gradient descent: w <- w - eta l'(w.z, y) z (Lu et al. 2016, Alg. 1).

    O(r d) time a round for r features. Fourier features are made inside the loop, a few rounds at a
    time; other maps are written in blocks first.

    Parameters
    ----------
    features : Features, optional
        None: FourierFeatures(n_frequencies, sigma, seed).
    loss : str
        A loss of losses.py.
    eta : float > 0
        Step size; of order 1/sqrt(n) for n rounds.
    sigma, n_frequencies, seed
        Of the Fourier features.

    Remarks
    -------
    z(x).z(x) = 1 here; code that leaves z unscaled has a step n_frequencies times smaller for the
    same update.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> run = okl.run(okl.FOGD(loss="hinge", eta=0.5, n_frequencies=50), X, np.sign(X[:, 0]))
    >>> bool(run.mistake_rate < 0.1)
    True
    """

    _ROWS = 128  # rounds whose features are kept at a time

    def __init__(
        self,
        features: Features | None = None,
        loss: str = "hinge",
        eta: float = 0.1,
        sigma: float = 1.0,
        n_frequencies: int = 400,
        seed: int = 0,
    ):
        self.features = features
        self.loss = loss
        self.eta = eta
        self.sigma = sigma
        self.n_frequencies = n_frequencies
        self.seed = seed

    @property
    def size(self) -> int:
        """Number of features; 0 before any data."""
        return len(self._w) if self._width is not None else 0

    def _start(self, d: int) -> None:
        require_positive("eta", self.eta)
        features = self.features
        if features is None:
            features = FourierFeatures(self.n_frequencies, self.sigma, self.seed)
        check_features(features)
        self._code = self._loss().code
        self._fused = False
        if isinstance(features, FourierFeatures):
            self._fused = True
            self._frequencies, self._scale = features._frequencies(d)
            r, rows = features.size(d), hotloops.ROWS_AT_ONCE
        else:
            self._write, r = features._writer(d)
            rows = self._ROWS
            self._par = np.zeros(8)  # of gradient descent with a constant step
            self._par[hotloops.ETA], self._par[hotloops.RADIUS] = float(self.eta), np.inf
        self._w = aligned_zeros(r)
        self._Z = aligned_zeros(rows, r)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        trace.sizes[:] = len(self._w)
        if self._fused:
            played, status = hotloops.fogd_rounds(
                X, y, self._frequencies, self._w, self._code, (float(self.eta), self._scale),
                self._Z, trace.predictions,
            )  # fmt: skip
            self._check(status, played, "lower eta, or scale the labels")
            self._played += len(X)
            return
        for start in range(0, len(X), self._ROWS):
            stop = min(start + self._ROWS, len(X))
            Z = self._Z[: stop - start]
            self._write(X[start:stop], Z)
            played, status = hotloops.first_order_rounds(
                Z, y[start:stop], self._code, hotloops.GRADIENT_STEP, self._par, np.zeros(2),
                self._w, np.empty(0), np.empty(0), trace.predictions[start:stop],
            )  # fmt: skip
            self._check(status, played, "lower eta, or scale the labels")
            self._played += stop - start

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        if self._fused:
            hotloops.fogd_forecasts(X, self._frequencies, self._w, self._scale, self._Z, forecasts)
            return forecasts
        for start in range(0, len(X), self._ROWS):
            part = X[start : start + self._ROWS]
            Z = self._Z[: len(part)]
            self._write(part, Z)
            hotloops.product_rows(Z, self._w, forecasts[start : start + self._ROWS])
        return forecasts

    def _state(self) -> dict[str, Any]:
        return {"w": self._w}

    def _restore(self, state: dict[str, Any]) -> None:
        self._w[:] = state["w"]


NULL_EIGENVALUE = 1e-10  # share of the largest below which an eigenvalue of a map is rounding
NULL_SINGULAR = 1.5e-8  # the same for singular values of a sketch, as in R's ginv


def leading(matrix: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading eigenvalues that are not null, largest first, and their vectors."""
    values, vectors = scipy.linalg.eigh(matrix)
    order = np.argsort(values)[::-1][:rank]
    order = order[values[order] > NULL_EIGENVALUE * max(values[order[0]], 0.0)]
    return values[order], vectors[:, order]


class _Mapped(Expansion):
    """What NOGD and SkeGD share: kernel gradient descent, then linear descent on a feature map.

    On features z = W k(x, atoms) the function w.z is the expansion with coefficients W' w.
    """

    _waiting = 0.0  # 1.0 where a new map waits for the next round with a loss

    def _start_mapped(self, d: int, period: float) -> None:
        require_positive("eta", self.eta)
        require_count("budget", self.budget, 2)
        require_count("rank", self.rank, 1)
        domain = f"at most budget = {self.budget}"
        require(self.rank <= self.budget, "rank", self.rank, domain)
        self._setting = float(self.eta), float(self.budget), period, self._waiting
        self._loss_code = self._loss().code
        self._W = np.zeros((0, 0))
        self._start_expansion(d, self.kernel, float(self.budget), ints=4)

    @property
    def size(self) -> int:
        """Atoms that are stored; 0 before any data."""
        return int(self._ints[3]) if self._width is not None else 0

    def _rounds(self, X: np.ndarray, y: np.ndarray, first: int, trace: Trace) -> tuple[int, int]:
        while True:
            first, status = hotloops.mapped_gradient_rounds(
                X, y, first, self._code, self._par, self._loss_code, self._setting, self._ints,
                self._atoms, self._a, self._W, self._work, trace.predictions, trace.sizes,
            )  # fmt: skip
            if status != hotloops.NEED_MAP:
                return first, status
            first = self._make_map(X, y, first, trace)

    def _make_map(self, X: np.ndarray, y: np.ndarray, t: int, trace: Trace) -> int:
        """Make the map when row t has been forecast; return the next row to play."""
        raise NotImplementedError

    def _finite_kernel(self, atoms: np.ndarray, t: int) -> np.ndarray:
        """Return the kernel matrix of the atoms when row t - 1 completed them."""
        K = self.kernel(atoms)
        if not np.isfinite(K).all():
            self._check(hotloops.NOT_FINITE, t - 1, "scale the inputs")
        return K

    def _adopt_map(self, W: np.ndarray) -> None:
        """Take a map over the first atoms; rows as wide as the buffers."""
        self._W = np.zeros((len(W), len(self._a)))
        self._W[:, : W.shape[1]] = W

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"W": self._W[:, : int(self._ints[0]) if len(self._W) else 0]}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        if len(state["W"]):
            self._adopt_map(state["W"])


class NOGD(_Mapped):
    """Nystrom online gradient descent (Lu, Hoi, Wang, Zhao and Liu 2016, Alg. 2).

    Kernel gradient descent until the dictionary has ``budget`` atoms; then gradient descent on the
    leading ``rank`` Nystrom features of these atoms, from the projection of the function so far.

    O(B d) time a round, O(B rank) more where there is a loss; memory bounded by the budget B.

    Parameters
    ----------
    kernel : Kernel
    loss : str
        A loss of losses.py.
    eta : float > 0
        Step size, of both phases.
    budget : int >= 2
        Atoms of the dictionary.
    rank : int >= 1
        Directions kept, at most the budget.

    Remarks
    -------
    One step size for both phases, where the paper has two; eigenvalues of at most 1e-10 times the
    largest are dropped. The linear function w.z is kept as an expansion over the atoms, so that a
    forecast costs no projection.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.NOGD(okl.Gaussian(1.0), eta=0.5, budget=50, rank=20)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] * X[:, 1]))
    >>> bool(run.mistake_rate < 0.1), learner.size
    (True, 50)
    """

    def __init__(
        self,
        kernel: Kernel,
        loss: str = "hinge",
        eta: float = 0.1,
        budget: int = 400,
        rank: int = 80,
    ):
        self.kernel = kernel
        self.loss = loss
        self.eta = eta
        self.budget = budget
        self.rank = rank

    def _start(self, d: int) -> None:
        self._start_mapped(d, np.inf)

    def _make_map(self, X: np.ndarray, y: np.ndarray, t: int, trace: Trace) -> int:
        B = int(self._ints[0])
        values, V = leading(self._finite_kernel(self.atoms, t), int(self.rank))
        self._a[:B] = V @ (V.T @ self._a[:B])  # w = Lambda^{1/2} V' a
        self._adopt_map(V.T / np.sqrt(values)[:, None])
        self._ints[1] = 1
        return t


class SkeGD(_Mapped):
    """Sketched online gradient descent (Zhang and Liao 2019).

    Kernel gradient descent until the dictionary has ``budget`` atoms; then gradient descent on
    features phi(x) = Q' k(x, sampled atoms), where Q comes from a count sketch S_p (budget x
    sketch) and a column sample S_m of the kernel matrix K: with Phi_pp = S_p' K S_p ~ V_k Sigma_k
    V_k' and Phi_pm = S_p' K S_m, Q = pinv(Phi_pm) V_k Sigma_k^{1/2}.

    O(c d) time a round for c columns, O(c rank) more where there is a loss.

    Parameters
    ----------
    kernel : Kernel
    loss : str
        A loss of losses.py.
    eta : float > 0
        Step size.
    budget : int >= 2
        Atoms before the map is made.
    sketch : int >= 1
        Columns of the count sketch, a multiple of ``blocks``.
    columns : int >= 1
        Atoms sampled for the map, at most the budget.
    blocks : int >= 1
        Blocks of the count sketch; each row has one entry +-1 / sqrt(blocks) in each.
    rank : int >= 1
        Features, at most sketch and columns.
    period : int >= 1, optional
        Rounds with a loss between two updates of the sketches, each of which stores one more atom
        and rebuilds the map; None: the map is made once, and memory is bounded by the budget.
    seed : int
        Of the sketch and the sample.

    Remarks
    -------
    As in the code that the authors passed on: a new map keeps the forecast of the current point and
    nothing else, w = f(x) phi(x) / |phi(x)|^2; only the atoms of the update rounds enter the
    sketches. Their period of 0.3 n needs the number of rounds n: the default makes one map. Our
    first map is cut to rank k like the later ones.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.SkeGD(okl.Gaussian(1.0), eta=0.5, budget=50, sketch=40, columns=20, rank=15)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] + X[:, 1]))
    >>> bool(run.mistake_rate < 0.1), learner.size
    (True, 50)
    """

    _waiting = 1.0

    def __init__(
        self,
        kernel: Kernel,
        loss: str = "hinge",
        eta: float = 0.1,
        budget: int = 400,
        sketch: int = 300,
        columns: int = 60,
        blocks: int = 4,
        rank: int = 40,
        period: int | None = None,
        seed: int = 0,
    ):
        self.kernel = kernel
        self.loss = loss
        self.eta = eta
        self.budget = budget
        self.sketch = sketch
        self.columns = columns
        self.blocks = blocks
        self.rank = rank
        self.period = period
        self.seed = seed

    def _start(self, d: int) -> None:
        require_count("budget", self.budget, 2)
        for name in ("sketch", "columns", "blocks", "rank"):
            require_count(name, getattr(self, name), 1)
        require_count("seed", self.seed, 0)
        if self.period is not None:
            require_count("period", self.period, 1)
        domain = f"a multiple of blocks = {self.blocks}"
        require(self.sketch % self.blocks == 0, "sketch", self.sketch, domain)
        domain = f"at most budget = {self.budget}"
        require(self.columns <= self.budget, "columns", self.columns, domain)
        least = min(self.sketch, self.columns)
        domain = f"at most sketch and columns, that is {least}"
        require(self.rank <= least, "rank", self.rank, domain)
        self._start_mapped(d, np.inf if self.period is None else float(self.period))
        self._stored = np.zeros((d, 0))  # all atoms; those of the function are the sampled ones
        self._S = np.zeros((0, int(self.sketch)))
        self._sampled = self._sample()
        self._pp = np.zeros((0, 0))
        self._pm = np.zeros((0, 0))

    def _sketch_row(self, i: int) -> np.ndarray:
        """Return row i of the count sketch; it depends on the seed and i only."""
        rng = np.random.default_rng([int(self.seed), i + 1])
        blocks, width = int(self.blocks), int(self.sketch // self.blocks)
        row = np.zeros(int(self.sketch))
        places = np.arange(blocks) * width + rng.integers(0, width, blocks)
        row[places] = rng.choice([-1.0, 1.0], blocks) / np.sqrt(blocks)
        return row

    def _sample(self) -> np.ndarray:
        """Return the sampled columns; they depend on the seed only."""
        rng = np.random.default_rng([int(self.seed), 0])
        return rng.choice(int(self.budget), int(self.columns), replace=False)

    def _make_map(self, X: np.ndarray, y: np.ndarray, t: int, trace: Trace) -> int:
        x, forecast = X[t : t + 1], trace.predictions[t]
        c = int(self.columns)
        if self._ints[1] == 0:
            atoms = self.atoms
            K = self._finite_kernel(atoms, t)
            self._S = np.array([self._sketch_row(i) for i in range(len(atoms))])
            self._pp = self._S.T @ K @ self._S
            self._pm = self._S.T @ K[:, self._sampled]
            self._stored = np.ascontiguousarray(atoms.T)
            self._atoms[:, :c] = self._stored[:, self._sampled]
            self._ints[0], self._ints[1] = c, 1
        else:
            psi = self.kernel(self._stored.T, x)[:, 0]
            s, psi_s = self._sketch_row(self._stored.shape[1]), self._S.T @ psi
            cross = np.outer(s, psi_s)
            self._pm += np.outer(s, psi[self._sampled])
            self._pp += cross + cross.T + self.kernel.diag(x)[0] * np.outer(s, s)
            self._stored = np.concatenate([self._stored, x.T], axis=1)
            self._S = np.concatenate([self._S, s[None]])
            self._ints[3] += 1
        values, V = leading(self._pp, int(self.rank))
        inverse = scipy.linalg.pinv(self._pm, rtol=NULL_SINGULAR)
        self._adopt_map((inverse @ (V * np.sqrt(values))).T)
        row = np.zeros(len(self._a))
        row[:c] = self.kernel(x, self._atoms[:, :c].T)[0]
        phi = self._W @ row
        square = phi @ phi
        self._a[:] = 0.0
        if square > NULL_EIGENVALUE * self.kernel.diag(x)[0]:
            self._a[:] = self._W.T @ phi * (forecast / square)
        step = float(self.eta) * self._loss().derivative(forecast, y[t])
        hotloops.mapped_step(self._a, self._W, row, step, c)
        self._ints[2] = 0
        trace.sizes[t] = self._ints[3]
        return t + 1

    def _state(self) -> dict[str, Any]:
        return super()._state() | {
            "stored": self._stored,
            "S": self._S,
            "sampled": self._sampled,
            "pp": self._pp,
            "pm": self._pm,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._stored, self._S, self._sampled = state["stored"], state["S"], state["sampled"]
        self._pp, self._pm = state["pp"], state["pm"]


class BAO2KS(Learner):
    """B(AO)2KS: budgeted optimistic kernel learning with a reservoir as its hint.

    Liao and Li 2021; hinge loss, |f| <= U. The hint is the mean gradient of a uniform sample of the
    past (the reservoir). Two algorithms have this name, and both are here:

    - one kernel: the baseline of the POMDR paper. Where there is a loss, x_t joins with probability
      p = d / (beta (d + |hint|)), d = |grad - hint|, and its step is divided by p;
    - several kernels: each round plays a kernel drawn from exponential weights and updates a second
      one, drawn uniformly, with its gradient; the others follow the hint.

    A function whose dictionary exceeds the budget starts again from 0. O(m d + M d) time a round
    for m atoms; memory bounded by the budget.

    Parameters
    ----------
    kernels : list of Kernel, or Kernel
    radius : float > 0
        U.
    eta : float > 0, optional
        Learning rate; None: 10 / sqrt(T).
    budget : int >= 2
        Most atoms of a function.
    hints : int >= 1, optional
        M, the size of the reservoir; None: ln T, rounded.
    beta : float > 0
        Larger, and fewer examples join (one kernel).
    horizon : int >= 1, optional
        T; None: the current round.
    seed : int
        Of the coins, three a round.

    Remarks
    -------
    After the authors' code: without a loss the one-kernel form does not move; the observed loss (1
    - y f) / (1 + U) may be negative; epochs double the accuracy of the weights when eps^2 times the
    loss in the epoch passes K ln(100 K). A reservoir without a horizon grows with ln t, so its
    sample is uniform up to that. The budget applies to each kernel in the second form too, where
    the paper has none.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.BAO2KS([okl.Gaussian(0.5), okl.Gaussian(2.0)], horizon=2000)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] + X[:, 1]))
    >>> bool(run.mistake_rate < 0.2), learner.probabilities.shape
    (True, (2,))
    """

    MOST_HINTS = 64  # room of the reservoir where ``hints`` is None: ln T is at most 44
    CONFIDENCE = 0.01

    def __init__(
        self,
        kernels: Any,
        radius: float = 30.0,
        eta: float | None = None,
        budget: int = 400,
        hints: int | None = None,
        beta: float = 6.0,
        horizon: int | None = None,
        seed: int = 0,
    ):
        self.kernels = kernels
        self.radius = radius
        self.eta = eta
        self.budget = budget
        self.hints = hints
        self.beta = beta
        self.horizon = horizon
        self.seed = seed

    def _loss(self) -> losses.Loss:
        return losses.get("hinge")

    @property
    def size(self) -> int:
        """Atoms of all functions; 0 before any data."""
        return int(self._counts.sum()) if self._width is not None else 0

    @property
    def restarts(self) -> int:
        """Times that a function started again from 0."""
        return int(self._ints[1]) if self._width is not None else 0

    @property
    def probabilities(self) -> np.ndarray:
        """With which each kernel is played, shape (K,), before small ones are frozen."""
        K = 1 if isinstance(self.kernels, Kernel) else len(self.kernels)
        return self._p.copy() if self._width is not None else np.full(K, 1.0 / K)

    @property
    def norms(self) -> np.ndarray:
        """The norms of the functions f' that the rounds maintain, shape (K,)."""
        return np.sqrt(self._kept[:, 0]) if self._width is not None else np.zeros(0)

    def _start(self, d: int) -> None:
        kernels = [self.kernels] if isinstance(self.kernels, Kernel) else self.kernels
        if not isinstance(kernels, list | tuple) or not kernels:
            raise ValueError(f"kernels must be a kernel or a list of some, but is {kernels!r}")
        codes = [kernel_code(kernel, "kernels") for kernel in kernels]
        require_positive("radius", self.radius)
        require_count("budget", self.budget, 2)
        require_positive("beta", self.beta)
        require_count("seed", self.seed, 0)
        if self.eta is not None:
            require_positive("eta", self.eta)
        for name in ("hints", "horizon"):
            if getattr(self, name) is not None:
                require_count(name, getattr(self, name), 1)
        K, M = len(codes), int(self.hints or self.MOST_HINTS)
        cap = int(self.budget) + 1 + M
        self._codes = np.array([code for code, _ in codes])
        self._pars = np.array([par for _, par in codes])
        self._setting = (
            float(self.radius), float(self.eta or 0.0), float(self.budget), float(self.hints or 0),
            float(self.beta), float(self.horizon or 0), self.CONFIDENCE,
        )  # fmt: skip
        self._coins = Coins(self.seed)
        self._ints = np.zeros(2, dtype=np.int64)
        self._counts = np.zeros(K, dtype=np.int64)
        self._reals = np.array([1.0, 0.0])
        self._kept, self._L, self._p = np.zeros((K, 3)), np.zeros(K), np.full(K, 1.0 / K)
        self._atoms, self._a = np.zeros((K, d, cap)), np.zeros((K, cap))
        self._V, self._labels = np.zeros((d, M)), np.zeros(M)
        self._place = np.full((K, M), -1)
        self._work = np.zeros((3, max(cap, d)))

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        coins = self._coins.take(3 * len(X)).reshape(-1, 3)
        played, status = hotloops.bao2ks_rounds(
            X, y, coins, self._played, self._codes, self._pars, self._setting, self._ints,
            self._counts, self._reals, self._kept, self._p, self._L, self._atoms, self._a, self._V,
            self._labels, self._place, self._work, trace.predictions, trace.sizes,
        )  # fmt: skip
        self._check(status, played, "lower eta or radius, or scale the inputs")
        self._played += len(X)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        hotloops.bao2ks_forecasts(
            X, self._coins.next, self._played, self._codes, self._pars, self._setting, self._ints,
            self._counts, self._kept, self._p, self._atoms, self._a, self._V, self._labels,
            self._work, forecasts,
        )  # fmt: skip
        return forecasts

    _SAVED = ("ints", "counts", "reals", "kept", "p", "L", "V", "labels", "place")

    def _state(self) -> dict[str, Any]:
        state = {name: getattr(self, f"_{name}") for name in self._SAVED}
        # Beyond the atoms in use the buffers hold what is no longer there.
        m = int(self._counts.max())
        atoms, a = self._atoms[:, :, :m].copy(), self._a[:, :m].copy()
        for i, count in enumerate(self._counts):
            atoms[i, :, count:], a[i, count:] = 0.0, 0.0
        return state | {"atoms": atoms, "a": a, "coins": self._coins.state()}

    def _restore(self, state: dict[str, Any]) -> None:
        for name in self._SAVED:
            getattr(self, f"_{name}")[:] = state[name]
        m = state["a"].shape[1]
        self._atoms[:, :, :m], self._a[:, :m] = state["atoms"], state["a"]
        self._coins.restore(state["coins"])
